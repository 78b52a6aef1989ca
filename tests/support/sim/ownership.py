"""Attacks on who owns what: deletions that orphan or wait, labels of Kueue and owner references edited by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.attribution import MANAGED, QUEUE
from support.sim.by_hand import changed, is_queued, ours
from support.sim.draws import a_worker, some

if TYPE_CHECKING:
    from support.sim.cluster import Doc, SimCluster
    from support.sim.world import SimWorld


def homes_deleted_orphaning(world: SimWorld) -> bool:
    """Let a user delete a Job of a queue with `--cascade=orphan`: its pods, and at home its Workload, stay."""
    return _deleted(world, world.home, _queued(world), "Orphan")


def homes_deleted_in_the_foreground(world: SimWorld) -> bool:
    """Let a user delete an object of a queue with `--cascade=foreground`: it stays until its dependents are gone."""
    return _deleted(world, world.home, _queued(world), "Foreground")


def workers_deleted_orphaning(world: SimWorld) -> bool:
    """Let somebody delete a Job of ours on a worker with `--cascade=orphan`."""
    _, worker = a_worker(world)
    return _deleted(world, worker, [(kind, each) for kind, each in ours(worker) if kind == JOB], "Orphan")


def workers_deleted_in_the_foreground(world: SimWorld) -> bool:
    """Let somebody delete an object of ours on a worker with `--cascade=foreground`."""
    _, worker = a_worker(world)
    return _deleted(world, worker, ours(worker), "Foreground")


def queue_label_edited(world: SimWorld) -> bool:
    """Take the queue's name off a user's object, around the webhook, or write another one.

    A Job goes to queues of its own kind alone, by `managedBy`: in others it waits for its user for ever, and says so.
    """
    found = some(world, _queued(world))
    if found is None:
        return False
    kind, document = found
    others = {"nowhere"} if kind == JOB else {*world.queues, "nowhere"}
    value = some(world, [None, *sorted(others - {document["metadata"]["labels"][QUEUE]})])
    return changed(world.home, kind, document, {"metadata": {"labels": {QUEUE: value}}})


def managed_label_edited(world: SimWorld) -> bool:
    """Take Kueue's mark of a managed pod off a user's pod."""
    found = some(world, [each for each in world.home.all(POD) if MANAGED in each["metadata"].get("labels", {})])
    return found is not None and changed(world.home, POD, found, {"metadata": {"labels": {MANAGED: None}}})


def workloads_owner_edited(world: SimWorld) -> bool:
    """Take the owner off a Workload, or say that an object is its owner that was never there."""
    found = some(world, world.home.all(WORKLOAD))
    if found is None or not found["metadata"].get("ownerReferences"):
        return False
    (owner, *_) = found["metadata"]["ownerReferences"]
    owners = some(world, [None, [{**owner, "uid": "never-there"}]])
    return changed(world.home, WORKLOAD, found, {"metadata": {"ownerReferences": owners}})


def pods_owner_edited(world: SimWorld) -> bool:
    """Take the Job off one of its pods as its owner, at home or on a worker.

    Not where a person has let that Job go, admitted by nobody: the pod is then one in no queue, as anybody makes them.
    """
    cluster = some(world, [world.home, *world.workers.values()])
    pods = cluster.all(POD) if cluster else []
    hands = world.truth.hands
    owned = [each for each in pods if each["metadata"].get("ownerReferences") and each["metadata"]["uid"] not in hands]
    found = some(world, owned)
    return found is not None and changed(cluster, POD, found, {"metadata": {"ownerReferences": None}})


def _queued(world: SimWorld) -> list[tuple[Any, Doc]]:
    """Return users' own objects of queues: not the pods that Jobs make."""
    return [(kind, each) for kind in (POD, JOB) for each in world.home.all(kind) if is_queued(each)]


def _deleted(world: SimWorld, cluster: SimCluster, among: list[tuple[Any, Doc]], propagation: str) -> bool:
    found = some(world, among)
    if found is None:
        return False
    kind, document = found
    name = document["metadata"]["name"]
    world.time.say("by hand", f"{kind.kind} {name} on {cluster.name} is deleted: {propagation}")
    cluster.delete(kind, name, propagation=propagation)
    return True
