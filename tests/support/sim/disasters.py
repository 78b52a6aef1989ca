"""Attacks: clusters, stores, nodes, and what an agent rests on, are lost, replaced, restored or doubled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE, NODE, POD, SERVICE_ACCOUNT, WORKER_CLUSTER
from gatelift_sandbox.embedded.store import Copy
from support.sim.cluster import ACCEPT, ELSEWHERE, SYSTEM, TEAM, SimCluster
from support.sim.doubts import has_yet_to_end
from support.sim.draws import a_worker, later
from support.sim.election import SimLease
from support.sim.persons import fence, recover, say_restored, status_of
from support.sim.switchboard import KEY_DIGEST

if TYPE_CHECKING:
    from support.sim.world import SimWorld

STATE_LABEL = "gatelift.dev/agent-state"
SECOND_LEASES = (f"{ELSEWHERE}/gatelift-agent", f"{SYSTEM}/another")


def worker_cluster_made_anew(world: SimWorld) -> bool:
    """Delete a WorkerCluster and make it again, approved with the same key."""
    name, _ = a_worker(world)
    if world.home.look(WORKER_CLUSTER, name) is None:
        return False
    world.home.delete(WORKER_CLUSTER, name)

    def again() -> None:
        if world.home.look(WORKER_CLUSTER, name) is not None:
            later(world, again, 2.0)
            return
        world.home.create(WORKER_CLUSTER, {"metadata": {"name": name}, "spec": {}})
        world.home.change(WORKER_CLUSTER, name, {"status": {"keyDigest": KEY_DIGEST}}, "status")

    later(world, again)
    return True


def gone_for_good(world: SimWorld) -> bool:
    """Lose a cluster with all that runs on it; it never comes back."""
    left = [each for each in world.names if world.workers[each].name not in world.lost_for_good]
    if len(left) < 2:
        return False
    name, worker = a_worker(world)
    destroy(world, name, worker)

    def told() -> None:
        fence(world, name)
        if world.troubled:
            later(world, told)

    later(world, told)
    return True


def destroy(world: SimWorld, name: str, worker: SimCluster) -> None:
    """End all processes and containers of a cluster."""
    world.lost_for_good.add(worker.name)
    world.net.sever(worker.name)
    for agent in world.alive(name):
        if agent.cluster is worker:
            agent.kill()
    worker.end()
    world.truth.destroyed(worker.name)
    world.account.destroyed(worker.name)


def another_cluster_under_a_name(world: SimWorld) -> bool:
    """Cut a cluster off and enrol a new one under its name; the former one runs on."""
    name, former = a_worker(world)
    if former.name != name:
        return False
    world.net.sever(former.name)
    for agent in world.alive(name):
        world.time.say("chaos", f"{agent.name} runs on without a network")
    world.former[name] = world.alive(name)
    made = SimCluster(world.time, world.faults, f"{name}-anew", known_as=name, noted=world.noted)
    world.truth.known_as[made.name] = name
    world.follow(made)
    world.workers[name], world.leases[name], world.agents[name] = made, SimLease(), []
    world.start_agent(name)
    world.unjudged.add("another_cluster_under_a_name")
    return True


def worker_restored(world: SimWorld) -> bool:
    """Restore a worker's etcd, with the agents' Lease, from a copy that was made some time ago.

    While no agent runs there, or under their feet. Not while a person's word that nothing of before will run there
    again has yet to be carried out: the copy may run it, and who restores it makes that word untrue (HD-243).
    """
    name, worker = a_worker(world)
    copy, lease = worker.store.copy(), replace(world.leases[name])

    def back() -> None:
        if not world.troubled or worker.name in world.lost_for_good or world.workers[name] is not worker:
            return
        if has_yet_to_end(world, name):
            later(world, back, 5.0)
            return
        if world.time.chance(0.5):
            for agent in world.alive(name):
                agent.kill()
            later(world, lambda: world.alive(name) or world.start_agent(name))
        put_back(world, worker, copy, f"worker {name}")
        world.leases[name].restore(lease)
        recover(world)  # what it does not explain, a leader whose record may be old leaves to a person

    later(world, back, 60.0)
    return True


def home_restored(world: SimWorld) -> bool:
    """Restore the management cluster's etcd, with the managers' Lease, from a copy that was made some time ago.

    While no manager runs, as the page says; the first time perhaps under their feet. A person recovers it, and says
    that it was restored where not each cluster is connected, or another one has a name by now: who could prove it may
    be away. Each cluster has had a session by then: before that the record knows of nobody to wait for (decision 19).
    """
    if not all(status_of(world, name).get("session") for name in world.names):
        return False
    copy, lease, served = world.home.store.copy(), replace(world.manager_lease), dict(world.workers)

    def back() -> None:
        if not world.troubled:
            return
        if world.home.restores or world.time.chance(0.5):
            for manager in world.managers:
                manager.kill()
        connected = all(status_of(world, name).get("connected") for name in world.names)
        home_put_back(world, copy, lease)
        if not (connected and served == world.workers):
            say_restored(world)
        recover(world)
        if "workloads_finalizer_edited" in world.attacks:
            # Twice around everything: what was remembered of a Workload that vanished went with the backup, and an end
            # of it at a worker may wait to be forgotten. Safety is judged all the same.
            world.unjudged.add("home_restored beside workloads_finalizer_edited")

    later(world, back, 60.0)
    return True


def home_put_back(world: SimWorld, copy: Copy, lease: SimLease) -> None:
    """Put the management cluster back to a copy, and the managers' Lease with it."""
    put_back(world, world.home, copy, "home")
    world.manager_lease.restore(lease)


def put_back(world: SimWorld, cluster: SimCluster, copy: Copy, what: str) -> None:
    """Put a cluster back to a copy; the checks are told, since no process of ours did that."""
    world.time.say("chaos", f"{what} is restored to a copy of {copy.version}")
    granted = world.truth.granted() if cluster is world.home else None
    cluster.restore(copy)
    world.truth.restored(granted)
    if cluster is world.home:
        world.members.restored(world.home.views(POD))
    world.account.restored(world.time.now)


# --- what an agent rests on -------------------------------------------------------------------------------------------


def namespace_deleted(world: SimWorld) -> bool:
    """Delete the namespace of the work on a worker; its owner makes it again."""
    _, worker = a_worker(world)
    if worker.look(NAMESPACE, TEAM) is None:
        return False
    worker.delete(NAMESPACE, TEAM)

    def again() -> None:
        if worker.look(NAMESPACE, TEAM) is not None:
            later(world, again, 5.0)
            return
        worker.create(NAMESPACE, {"metadata": {"name": TEAM, "labels": {ACCEPT: "true"}}})
        worker.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": TEAM}})

    later(world, again)
    return True


def agents_lease_deleted(world: SimWorld) -> bool:
    """Delete the agent's Lease."""
    name, _ = a_worker(world)
    world.leases[name].delete()
    return True


def agents_state_deleted(world: SimWorld) -> bool:
    """Delete what an agent has written down of itself."""
    _, worker = a_worker(world)
    found = [each for each in worker.all(CONFIG_MAP) if STATE_LABEL in each["metadata"].get("labels", {})]
    for each in found:
        worker.delete(CONFIG_MAP, each["metadata"]["name"], namespace=SYSTEM)
    if found:
        world.unjudged.add("agents_state_deleted")
    return bool(found)


def second_lease(world: SimWorld) -> bool:
    """Install an agent of the same identity once more in a cluster: in another namespace, or with another Lease."""
    name, _ = a_worker(world)
    if len(world.alive(name)) > 1:
        return False
    first = world.alive(name)
    agent = world.start_agent(name, SimLease(name=world.time.rng.choice(SECOND_LEASES)))
    stays = 60.0
    if first and world.time.chance(0.5):  # the first one alone reaches no manager, so that the second takes over
        cut, stays = first[0].name, 240.0
        world.time.say("chaos", f"cuts {cut} off alone")
        world.net.partition(cut)
        world.time.after(world.time.between(60.0, 200.0), lambda: world.net.mend(cut))

    def over() -> None:
        agent.kill()
        if not world.alive(name):
            world.start_agent(name)  # the first one has died meanwhile, and its Deployment starts another

    later(world, over, stays)
    return True


def node_lost(world: SimWorld) -> bool:
    """Cut a worker's node off its API server for a while; what runs there runs on."""
    _, worker = a_worker(world)
    name = f"{worker.name}-node"
    if worker.look(NODE, name) is None:
        return False
    worker.cut_node(name, lost=True)
    later(world, lambda: worker.cut_node(name, lost=False), 60.0)
    return True
