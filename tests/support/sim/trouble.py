"""What users do and what breaks in a simulated world, one thing after the other, as the seed says."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, NAMESPACE, POD, WORKER_CLUSTER, WORKLOAD
from support.sim.agent import SimAgent
from support.sim.by_hand import is_queued, make_again
from support.sim.cluster import ACCEPT, TEAM
from support.sim.persons import fence
from support.sim.world import QUEUES, SimWorld


class Trouble:
    """Draws users' actions and breakages until the world is calm."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self._users: list[tuple[int, Callable[[], None]]] = [
            (10, world.make),
            (2, self.delete_owner),
            (2, self.switch_active),
            (1, self.delete_workload),
            (1, self.stop_queue),
            (2, self.delete_on_worker),
            (3, self.touch),
            (1, self.cordon),
            (1, self.close_namespace),
        ]
        self._breakages: list[tuple[int, Callable[[], None]]] = [
            (3, self.crash_agent),
            (2, self.pause_agent),
            (1, self.second_replica),
            (3, self.crash_manager),
            (3, self.pause_manager),
            (1, self.second_manager),
            (4, self.cut),
            (3, self.break_stream),
            (1, self.lose_api),
            (1, self.lose_worker),
        ]
        if world.crews is not None:
            crews = world.crews
            self._users += [
                (4, crews.make),
                (3, crews.replace),
                (2, crews.surplus),
                (4, crews.delete_member),
                (1, crews.say_final),
                (1, crews.delete_workload),
                (2, crews.deactivate),
            ]
        if world.resizers is not None:
            resizers = world.resizers
            self._users += [
                (6, resizers.make),
                (12, resizers.resize),
                (3, resizers.resize_quickly),
                (2, resizers.delete),
                (1, resizers.delete_a_slice),
            ]
        world.time.moment = self._moment

    def begin(self) -> None:
        """Go on until the calm."""
        for _ in range(3):
            self.world.make()
        if self.world.crews is not None:
            self.world.crews.begin()
        if self.world.resizers is not None:
            self.world.resizers.make()
        self._again(self.world.plan.user_every, self._users)
        self._again(self.world.plan.break_every, self._breakages)

    def _again(self, every: float, choices: list[tuple[int, Callable[[], None]]]) -> None:
        time = self.world.time
        if every <= 0:
            return

        def act() -> None:
            if not self.world.troubled:
                return
            weights = [weight for weight, _ in choices]
            (chosen,) = time.rng.choices([each for _, each in choices], weights)
            self.world.counts[chosen.__name__] += 1
            chosen()
            self._again(every, choices)

        time.after(time.between(0.1, 2 * every), act)

    def _moment(self, what: str) -> None:
        """Let something break just after a moment at which that hurts."""
        time, plan = self.world.time, self.world.plan
        if not self.world.troubled:
            return
        message, _, cluster = what.partition(" ")
        if message in {"Commit", "Confirm", "Stop"} and cluster in self.world.names and time.chance(plan.strand):
            time.after(time.between(0.0, 0.06), lambda: self.strand(cluster) if self.world.troubled else None)
        elif time.chance(plan.strike):
            weights = [weight for weight, _ in self._breakages]
            (chosen,) = time.rng.choices([each for _, each in self._breakages], weights)
            time.after(time.between(0.0, 0.03), lambda: chosen() if self.world.troubled else None)

    def _some(self, found: list[Any]) -> Any:
        return self.world.time.rng.choice(found) if found else None

    def _later(self, seconds: float, act: Callable[[], object]) -> None:
        """Undo a breakage later; the calm undoes all that are left."""
        self.world.time.after(seconds, lambda: act() if self.world.troubled else None)

    # --- users ------------------------------------------------------------------------------------------------------

    def delete_owner(self) -> None:
        """Delete a pod or a Job."""
        resource = self._some([POD, JOB])
        chosen = self._some(self.world.home.all(resource))
        if chosen is not None:
            name = chosen["metadata"]["name"]
            self.world.time.say("user", f"deletes {resource.kind} {name}")
            self.world.home.delete(resource, name)
            if is_queued(chosen) and self.world.time.chance(0.5):
                make_again(self.world, resource, chosen)

    def delete_workload(self) -> None:
        """Delete the Workload of an object that stays: it is stopped, and gets another one."""
        chosen = self._some(self.world.home.all(WORKLOAD))
        if chosen is not None:
            self.world.time.say("user", f"deletes Workload {chosen['metadata']['name']}")
            self.world.home.delete(WORKLOAD, chosen["metadata"]["name"])

    def cordon(self) -> None:
        """Let a person cordon a worker for a while."""
        world, name = self.world, self._some(list(self.world.names))
        world.time.say("person", f"cordons {name}")
        world.home.change(WORKER_CLUSTER, name, {"spec": {"cordoned": True}})
        back = {"spec": {"cordoned": False}}
        self._later(world.time.between(0.1, 30.0), lambda: world.home.change(WORKER_CLUSTER, name, back))

    def close_namespace(self) -> None:
        """Let a worker's owner accept no work in the namespace for a while."""
        world = self.world
        worker = world.workers[self._some(list(self.world.names))]
        world.time.say("person", f"closes the namespace on {worker.name}")
        worker.change(NAMESPACE, TEAM, {"metadata": {"labels": {ACCEPT: None}}})
        back = {"metadata": {"labels": {ACCEPT: "true"}}}
        self._later(world.time.between(0.1, 30.0), lambda: worker.change(NAMESPACE, TEAM, back))

    def switch_active(self) -> None:
        """Deactivate a workload, and perhaps activate it again."""
        chosen = self._some(self.world.home.all(WORKLOAD))
        if chosen is None:
            return
        name, active = chosen["metadata"]["name"], chosen["spec"].get("active", True)
        self.world.time.say("user", f"sets active of {name} to {not active}")
        self.world.home.change(WORKLOAD, name, {"spec": {"active": not active}})
        if active:
            back = {"spec": {"active": True}}
            self._later(self.world.time.between(0.1, 20.0), lambda: self.world.home.change(WORKLOAD, name, back))

    def stop_queue(self) -> None:
        """Stop a queue for a while."""
        name, policy = self._some(sorted(QUEUES)), self._some(["Hold", "HoldAndDrain"])
        self.world.time.say("user", f"queue {name}: {policy}")
        self.world.home.change(CLUSTER_QUEUE, name, {"spec": {"stopPolicy": policy}})
        go_on = {"spec": {"stopPolicy": "None"}}
        self._later(self.world.time.between(0.1, 30.0), lambda: self.world.home.change(CLUSTER_QUEUE, name, go_on))

    def delete_on_worker(self) -> None:
        """Let somebody delete an object of ours on a worker."""
        worker = self.world.workers[self._some(list(self.world.names))]
        resource = self._some([POD, JOB])
        chosen = self._some(worker.all(resource))
        if chosen is not None:
            self.world.time.say("somebody", f"deletes {resource.kind} {chosen['metadata']['name']} on {worker.name}")
            worker.delete(resource, chosen["metadata"]["name"])

    def touch(self) -> None:
        """Let somebody annotate an object, so that versions move on."""
        cluster, resource = self._some(
            [
                (self.world.home, POD),
                (self.world.home, WORKLOAD),
                *((each, POD) for each in self.world.workers.values()),
            ]
        )
        chosen = self._some(cluster.all(resource))
        if chosen is not None:
            mark = {"metadata": {"annotations": {"example.com/touched": f"{self.world.time.now:.3f}"}}}
            cluster.change(resource, chosen["metadata"]["name"], mark)

    # --- breakages --------------------------------------------------------------------------------------------------

    def crash_agent(self) -> None:
        """Kill an agent; another starts."""
        world, name = self.world, self._some(list(self.world.names))
        agent = self._some(world.alive(name))
        if agent is None:
            return
        world.time.say("chaos", f"kills agent {agent.name}")
        agent.kill()
        self._later(world.time.between(0.1, 40.0), lambda: world.alive(name) or world.start_agent(name))

    def pause_agent(self) -> None:
        """Stop an agent's process for a while."""
        agent = self._some(self.world.alive(self._some(list(self.world.names))))
        if agent is None or agent.process.paused:
            return
        self.world.time.say("chaos", f"pauses agent {agent.name}")
        agent.pause()
        self._later(self.world.time.between(0.1, 90.0), agent.wake)

    def second_replica(self) -> None:
        """Start another replica of an agent."""
        name = self._some(list(self.world.names))
        if len(self.world.alive(name)) < 2:
            agent = self.world.start_agent(name)
            self.world.time.say("chaos", f"starts a replica {agent.name}")

    def crash_manager(self) -> None:
        """Kill a manager."""
        manager = self._some(self.world.managers)
        if manager is not None:
            self.world.time.say("chaos", f"kills manager {manager.name}")
            manager.kill()
            self._later(self.world.time.between(0.1, 20.0), lambda: self.world.managers or self.world.start_manager())

    def pause_manager(self) -> None:
        """Stop a manager's process for a while; often there is another."""
        manager = self._some(self.world.managers)
        if manager is None or manager.process.paused:
            return
        if self.world.time.chance(0.6):
            self.second_manager()
        self.world.time.say("chaos", f"pauses manager {manager.name}")
        manager.pause()
        self._later(self.world.time.between(0.1, 90.0), manager.wake)

    def second_manager(self) -> None:
        """Start a standby."""
        if len(self.world.managers) < 2:
            manager = self.world.start_manager()
            self.world.time.say("chaos", f"starts a standby {manager.name}")

    def cut(self) -> None:
        """Cut a worker off for seconds or minutes."""
        world, name = self.world, self._some(list(self.world.names))
        if world.workers[name].name in world.net.cut:
            return
        world.time.say("chaos", f"cuts {name} off")
        world.net.partition(world.workers[name].name)
        seconds = world.time.between(0.1, self._some([2.0, 30.0, 120.0]))
        self._later(seconds, lambda: world.net.mend(world.workers[name].name))

    def lose_worker(self, name: str = "") -> None:
        """Cut a worker off for long; a person may look there and say that nothing runs."""
        world, name = self.world, name or self._some(list(self.world.names))
        if world.workers[name].name in world.net.cut:
            return
        world.time.say("chaos", f"cuts {name} off for long")
        world.net.partition(world.workers[name].name)
        seconds = world.time.between(60.0, 150.0)
        for _ in range(4):
            self._later(world.time.between(55.0, seconds), lambda: fence(world, name))
        self._later(seconds, lambda: world.net.mend(world.workers[name].name))

    def strand(self, name: str) -> None:
        """Cut a worker off for long while its agent stands still, has no API server, or dies and comes back there."""
        world, time = self.world, self.world.time
        if world.workers[name].name in world.net.cut:
            return
        self.lose_worker(name)
        for agent in world.alive(name):
            back = time.between(0.1, 140.0)
            match time.rng.randrange(3):
                case 0:
                    agent.pause()
                    self._later(back, agent.wake)
                case 1:
                    agent.reach(reachable=False)
                    self._later(back, functools.partial(self._reaches_again, agent))
                case _:
                    agent.kill()
                    self._later(back, lambda: world.alive(name) or world.start_agent(name))

    def _reaches_again(self, agent: SimAgent) -> None:
        if not agent.process.dead:
            agent.reach(reachable=True)

    def break_stream(self) -> None:
        """Break the streams of a worker."""
        self.world.net.break_all(self.world.workers[self._some(list(self.world.names))].name)

    def lose_api(self) -> None:
        """Take an API server away from one process."""
        world = self.world
        process = self._some([*world.managers, *(each for name in world.names for each in world.alive(name))])
        if process is None:
            return
        world.time.say("chaos", f"{process.name} does not reach its API server")
        if process in world.managers:
            process.port.down = process.local.port.down = True
        else:
            process.reach(reachable=False)

        def back() -> None:
            if process.process.dead:
                return
            if hasattr(process, "reach"):
                process.reach(reachable=True)
            else:
                process.port.down = process.local.port.down = False

        self._later(world.time.between(0.5, 30.0), back)
