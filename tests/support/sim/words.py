"""Attacks: persons speak at any time, twice, as an agent greets, and the leader dies after what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD
from support.sim.draws import a_worker, later, some
from support.sim.persons import fence, nothing_runs, say_fenced, status_of

if TYPE_CHECKING:
    from support.sim.world import SimWorld

WRITES_MAX = 6
"""Writes before the last one of a process that dies after a write."""


def word_at_any_time(world: SimWorld) -> bool:
    """Say of a cluster in which nothing runs that it is fenced, lost or not, perhaps twice."""
    name, _ = a_worker(world)
    session = status_of(world, name).get("session", 0)
    if not session or not nothing_runs(world, name):
        return False

    def say() -> None:
        if nothing_runs(world, name):
            say_fenced(world, name, session)

    say()
    if world.time.chance(0.5):
        later(world, say, 5.0)
    return True


def word_as_it_greets(world: SimWorld) -> bool:
    """Cut a cluster off until it is lost, and say a true word of it just as it comes back."""
    name, worker = a_worker(world)
    if worker.name in world.net.cut:
        return False
    world.net.partition(worker.name)

    def back() -> None:
        fence(world, name)
        world.time.after(world.time.between(0.0, 1.0), lambda: fence(world, name))
        world.net.mend(worker.name)

    world.time.after(world.time.between(55.0, 130.0), back)
    return True


def leader_dies_after_a_write(world: SimWorld) -> bool:
    """Kill the leader just after one of its next writes has landed; a standby of any age may be there."""
    leader = some(world, [each for each in world.managers if each.elector.leads()])
    if leader is None:
        return False
    if world.time.chance(0.6) and len(world.managers) < 2:
        world.start_manager()
    leader.dies_after_write(world.time.rng.randint(1, WRITES_MAX), some(world, [WORKER_CLUSTER, WORKLOAD, None]))
    return True


def agent_dies_after_a_write(world: SimWorld) -> bool:
    """Kill an agent just after one of its next writes has landed; another one starts within seconds of it."""
    name, _ = a_worker(world)
    agent = some(world, world.alive(name))
    if agent is None:
        return False
    agent.dies_after_write(world.time.rng.randint(1, WRITES_MAX))

    def again() -> None:
        if not agent.process.dead:
            later(world, again)  # it has not written so often yet, and may still do so in the calm
        elif not world.alive(name):
            world.start_agent(name)

    later(world, again)
    return True
