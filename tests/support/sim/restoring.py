"""The management cluster of a scripted history restored from a backup: its objects and its Lease as they were.

The objects come back under new, higher versions, as after a restore that raises etcd's revisions; nothing but their
content tells that they are old. Every process there ends with the restore and starts anew.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import msgspec

from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER, WORKLOAD, Resource
from support.sim.cluster import Doc
from support.sim.election import SimLease
from support.sim.history import History

KEPT: tuple[Resource, ...] = (WORKER_CLUSTER, WORKLOAD, JOB, POD)


@dataclass(frozen=True)
class Backup:
    """What etcd held."""

    objects: dict[Resource, dict[tuple[str, str], bytes]]
    lease: SimLease


def backup(history: History) -> Backup:
    """Copy what the management cluster has now."""
    store = history.home.store
    found = {
        resource: {(one.namespace, one.name): bytes(one.raw) for one in store.all((resource.group, resource.plural))}
        for resource in KEPT
    }
    return Backup(found, replace(history.world.manager_lease))


def restore(history: History, kept: Backup) -> None:
    """Put the backup back. The outside check still knows every run; that records only grow it asks no more."""
    world, store = history.world, history.home.store
    truth = world.truth
    granted = truth.granted()
    truth._workload = functools.partial(_told_by_hand, truth._workload)  # type: ignore[method-assign]
    for manager in world.managers:
        manager.kill()
    history.home.by_hand = True
    try:
        for resource, objects in kept.objects.items():
            kind = store.kinds.of(resource)
            now = {(one.namespace, one.name): one for one in store.all(kind.storage)}
            for name, one in now.items():
                if name not in objects:
                    store._write(kind, one.document(), one, removed=True)  # around all rules, as etcd
            for name, raw in objects.items():
                document: Doc = msgspec.json.decode(raw)
                store._write(kind, document, now.get(name))
    finally:
        history.home.by_hand = False
    truth._lost = (truth._lost | granted) - truth.granted()  # that runs on, and no record charges it
    world.account.restored(world.time.now)
    lease, was = world.manager_lease, kept.lease
    lease.holder, lease.term, lease.counter, lease.tenures = was.holder, was.term, was.counter, was.tenures
    lease.settled = was.settled
    lease.version += 1


def cordon(history: History, cluster: str, *, on: bool = True) -> None:
    """Let a person take a cluster off the choice, or put it back."""
    history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": on}})


def moved_to_b(history: History) -> Backup:
    """Let a pod `one` run on a, be copied in the backup that is returned, and run on b since."""
    cordon(history, "b")
    history.pod("one")
    assert history.until_runs("one") == "a"
    history.passes(20.0)
    kept = backup(history)
    cordon(history, "a")
    cordon(history, "b", on=False)
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it has stopped", lambda: not history.runs("one"))
    history.edit("home", WORKLOAD, name, {"spec": {"active": True}})
    assert history.until_runs("one") == "b"
    history.passes(90.0)  # agents keep the counter once a minute
    return kept


def _told_by_hand(workload: object, change: object, *, by_hand: bool, late: bool) -> None:
    workload(change, by_hand=True, late=late)  # type: ignore[operator]
