"""What is in use stays: Kueue's finalizer on ClusterQueues and ResourceFlavors, put on at first sight, taken off last.

A ClusterQueue that is deleted admits nothing more and stays, charged in its cohort, until nothing is reserved in it:
else what it had borrowed would be lent again while it runs. A ResourceFlavor stays as long as a ClusterQueue names it
or something holds quota of it (decision 42). A Workload gets it back before it is placed. Neighbours: `checks` and
`passes` look by key, `intake` says when, `admitting` asks for Workloads.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import metadata_patches
from gatelift.core.records.knowledge import key_of
from gatelift.core.state import api_requests, showing
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.core import Core
from gatelift_admission.charges.debts import CHARGED_IN
from gatelift_kinds.shared.markers import RESOURCE_IN_USE
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.kueue import ClusterQueue, ResourceFlavor, Workload
from gatelift_kube.values.resources import CLUSTER_QUEUE, RESOURCE_FLAVOR, ObjectKey, ObjectRef

MISSING_SAID_MAX = 8
"""Queues that a new leader misses and names: each may be made anew, and the log is for other things as well."""
NOTHING_SAID: Mapping[str, str] = {}
"""Purpose of the write that is due before a Workload without our finalizer is placed."""
_RESOURCES = {Look.CLUSTER_QUEUE: CLUSTER_QUEUE, Look.FLAVOR: RESOURCE_FLAVOR}


def queue(core: Core, key: Key, known: ClusterQueue) -> bool:
    """Keep a ClusterQueue while it is in use, and say on it where it is charged; say if a write was asked for."""
    engine, name = core.ledger.engine, key.object.name
    charged_in = engine.charged_in(name) if known.metadata.deletion_timestamp is None else None
    said = {CHARGED_IN: charged_in} if charged_in is not None else NOTHING_SAID
    return _keeps(core, key, known, used=engine.queue_is_used(name), said=said)


def workload(core: Core, known: Workload) -> bool:
    """Put the finalizer back on a Workload that is to be placed; True if a write was asked for.

    While nothing is reserved its user may take it off. What vanished with a placement and no leader to see it would be
    known to nobody (H21), so the winner is written only on a version that has it (HD-242); then a policy keeps it.
    """
    body = metadata_patches.kept_in_use(known.metadata, RESOURCE_IN_USE, NOTHING_SAID)
    if body is None:
        return False
    api_requests.patch_workload(core, known, body, Purpose.HOLD_WORKLOAD, status=False)
    return True


def _keeps(
    core: Core,
    key: Key,
    known: ClusterQueue | ResourceFlavor,
    *,
    used: bool,
    said: Mapping[str, str] = NOTHING_SAID,
) -> bool:
    """Put the finalizer on, or take it off what is being deleted and not `used`; say whether a write was asked for.

    The caller has looked whether the object is `blocked`. A write that failed rests alone: the status goes on.
    """
    meta, ref = known.metadata, ObjectRef(_RESOURCES[key.look], key.object)
    leaves = meta.deletion_timestamp is not None
    purpose = Purpose.LET_GO if leaves else Purpose.HOLD
    if leaves and used:
        return False
    taken_off = metadata_patches.finalizers_patch(meta, RESOURCE_IN_USE)
    body = taken_off if leaves else metadata_patches.kept_in_use(meta, RESOURCE_IN_USE, said)
    if body is None or core.resting.rests(ref, purpose, core.agenda, key, core.now):
        return False
    if not leaves and not core.may_inform(
        WriteAsk(key, purpose), core.now
    ):  # at first sight of an installation these may be many
        return False
    api_requests.patch(core, Decided(ref, meta.resource_version), PatchStep(body=body), purpose)
    return True


def flavor(core: Core, key: ObjectKey, now: float) -> None:
    """Look at a ResourceFlavor."""
    known = core.knowledge.flavors.get(key.name)
    ref, look = ObjectRef(RESOURCE_FLAVOR, key), Key(Look.FLAVOR, key)
    if known is not None and not api_requests.blocked(core, ref, look, now):
        _keeps(core, look, known, used=core.ledger.engine.flavor_is_used(key.name))


def flavor_seen(core: Core, known: ResourceFlavor) -> None:
    """Look at a ResourceFlavor soon; at one that is being deleted also whenever quota comes free."""
    key = key_of(known.metadata)
    if known.metadata.deletion_timestamp is not None:
        core.shown_queues.leaves(key)
    core.agenda.mark(Key(Look.FLAVOR, key))


def flavor_gone(core: Core, key: ObjectKey) -> None:
    """Forget a ResourceFlavor."""
    core.shown_queues.left(key)
    core.budget.leave(WriteAsk(Key(Look.FLAVOR, key), Purpose.HOLD))


def recall(core: Core) -> None:
    """Take what the queues say of where they are charged, and say which are not there though work runs in them."""
    missing = core.ledger.engine.recall()
    for name in missing[:MISSING_SAID_MAX]:
        core.note(texts.queue_gone_in_use(name), warning=True)


def queue_gone(core: Core, name: str) -> None:
    """Take note that a ClusterQueue is gone; somebody took the finalizer off one that is in use."""
    if core.ledger.engine.queue_is_used(name):
        core.note(texts.queue_gone_in_use(name), warning=True)
    showing.leaving(core)
