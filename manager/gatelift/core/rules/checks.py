"""Status of admission checks (controller `kueue.x-k8s.io/multikueue`), queues and cohorts: what people look at first.

One write per object and `status_every` at most, out of the budget for writes that only inform; a check's condition
Active is a transition (queues admit by it) and is written at once. Neighbours: `passes` calls by key.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core.api import documents
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.records import occupied
from gatelift.core.rules import in_use, targets
from gatelift.core.state import api_requests, ghosts
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.core import Core
from gatelift_admission.told.statuses import QueueFigures
from gatelift_kinds.shared.markers import MULTIKUEUE_MANAGER
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.conditions import FALSE, TRUE, fitting, put, without
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, Cohort, FairSharingStatus, LocalQueue
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    ObjectKey,
    ObjectRef,
)

ACTIVE = "Active"
SATURATED = "AmountsSaturated"
"""Of a queue: figures of its status are the largest amount there is, and more is in use."""
SATURATED_SHOWN_MAX = 8
"""Cells that its message names: what a line on a screen holds."""
CHECK_ACTIVE = "The admission check is active"
NOT_TO_LOCAL = "Not dispatched to [local], the management cluster: it runs the work of queues without this check"


def mark_checks(core: Core) -> None:
    """Look at all checks when a cluster came or went; there are few of them."""
    for name, check in core.knowledge.checks.items():
        if check.spec.controller_name == MULTIKUEUE_MANAGER:
            core.agenda.mark(Key(Look.CHECK, ObjectKey("", name)))


def check(core: Core, key: ObjectKey, now: float) -> None:
    """Write whether a dispatching check has clusters to dispatch to."""
    known = core.knowledge.checks.get(key.name)
    ref = ObjectRef(ADMISSION_CHECK, key)
    if known is None or known.spec.controller_name != MULTIKUEUE_MANAGER:
        return
    if api_requests.blocked(core, ref, Key(Look.CHECK, key), now):
        return
    conditions = _with(known, _activity(core, known), core.wall.text(now))
    if conditions is not known.status.conditions:
        _write(core, ref, known, {"conditions": documents.conditions(conditions)})


def _activity(core: Core, known: AdmissionCheck) -> Condition:
    parameters = known.spec.parameters
    config = core.knowledge.config_of(known)
    generation = known.metadata.generation
    if config is None:
        named = "no parameters"
        if parameters is not None:
            exact = (parameters.api_group, parameters.kind) == (MULTIKUEUE_CONFIG.group, MULTIKUEUE_CONFIG.kind)
            wrong = f"{parameters.kind}.{parameters.api_group} is not MultiKueueConfig.{MULTIKUEUE_CONFIG.group}"
            named = f"MultiKueueConfig {parameters.name} does not exist" if exact else wrong
        return Condition(
            type=ACTIVE,
            status=FALSE,
            reason="BadConfig",
            message=f"Cannot load the AdmissionChecks parameters: {named}",
            observed_generation=generation,
        )
    clusters = targets.targets(core, (known.metadata.name,)).clusters
    missing = [name for name in clusters if core.view(name) is None]
    usable: list[str] = []
    inactive: list[str] = []
    for name in clusters:
        view = core.view(name)
        if view is not None:
            (usable if view.state is LinkState.CONNECTED and view.open else inactive).append(name)
    problem = targets.selector_problem(config)
    parts = [problem] if problem else []
    if LOCAL_CLUSTER in config.spec.clusters:
        parts.append(NOT_TO_LOCAL)
    if missing:
        parts.append(f"Missing clusters: [{' '.join(missing)}]")
    if inactive:
        parts.append(f"Inactive clusters: [{' '.join(inactive)}]")
    reason = "NoUsableClusters" if not usable else "SomeActiveClusters" if parts else ACTIVE
    return Condition(
        type=ACTIVE,
        status=TRUE if usable else FALSE,
        reason=reason,
        message=", ".join(parts) or (CHECK_ACTIVE if usable else "No clusters configured"),
        observed_generation=generation,
    )


def cluster_queue(core: Core, key: ObjectKey, now: float) -> None:
    """Write the finalizer or the status of a ClusterQueue."""
    known = core.knowledge.cluster_queues.get(key.name)
    figures = core.ledger.engine.cluster_queue_status(key.name)
    look = Key(Look.CLUSTER_QUEUE, key)
    if known is None or figures is None or api_requests.blocked(core, _ref(look), look, now):
        return
    if not in_use.queue(core, look, known):
        _show(core, look, known, figures, now)


def local_queue(core: Core, key: ObjectKey, now: float) -> None:
    """Write the status of a LocalQueue."""
    known = core.knowledge.local_queues.get(key)
    figures = core.ledger.engine.local_queue_status(key)
    if known is not None and figures is not None:
        _show(core, Key(Look.LOCAL_QUEUE, key), known, figures, now)


_RESOURCES = {Look.CLUSTER_QUEUE: CLUSTER_QUEUE, Look.LOCAL_QUEUE: LOCAL_QUEUE, Look.COHORT: COHORT}


def _ref(key: Key) -> ObjectRef:
    return ObjectRef(_RESOURCES[key.look], key.object)


def _show(core: Core, key: Key, known: ClusterQueue | LocalQueue, figures: QueueFigures, now: float) -> None:
    if api_requests.blocked(core, _ref(key), key, now):
        return
    active = Condition(
        type=ACTIVE,
        status=TRUE if figures.active.status else FALSE,
        reason=figures.active.reason,
        message=figures.active.message,
        observed_generation=known.metadata.generation,
    )
    status = msgspec.structs.replace(
        known.status,
        conditions=_with_ghost(core, key, _with(known, active, core.wall.text(now), _saturated(known, figures))),
        pending_workloads=figures.pending_workloads,
        reserving_workloads=figures.reserving_workloads,
        admitted_workloads=figures.admitted_workloads,
        flavors_reservation=figures.flavors_reservation,
        flavors_usage=figures.flavors_usage,
        fair_sharing=None if figures.weighted_share is None else FairSharingStatus(figures.weighted_share),
    )
    borrows = isinstance(known, ClusterQueue)
    document = documents.queue_status(status, borrows=borrows)
    if document == documents.queue_status(known.status, borrows=borrows):
        core.budget.leave(WriteAsk(key, Purpose.STATUS))
        return
    _inform(core, key, known, document, now)


def cohort(core: Core, key: ObjectKey, now: float) -> None:
    """Write the weighted share of a Cohort, where fair sharing is on."""
    known = core.knowledge.cohorts.get(key.name)
    share = core.ledger.engine.cohort_share(key.name)
    look = Key(Look.COHORT, key)
    if known is None or share is None or api_requests.blocked(core, _ref(look), look, now):
        return
    if known.status.fair_sharing is None or known.status.fair_sharing.weighted_share != share:
        _inform(core, look, known, {"fairSharing": documents.share(share)}, now)


def _with(
    known: AdmissionCheck | ClusterQueue | LocalQueue, active: Condition, wall: str, more: Condition | None = None
) -> tuple[Condition, ...]:
    """Return its conditions with Active (and one `more`), which have room whatever others have put there."""
    conditions = put(known.status.conditions, active, wall)
    if more is not None:
        conditions = put(conditions, more, wall)
    return fitting(conditions, frozenset({ACTIVE, SATURATED, occupied.CONDITION}))


def _with_ghost(core: Core, key: Key, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return a queue's conditions with what of a ClusterQueue may still be occupied after its quota was freed."""
    if key.look is not Look.CLUSTER_QUEUE:
        return conditions
    usage, old_from = ghosts.of_queue(core, key.object.name)
    if old_from is not None:
        core.agenda.wake(key, old_from)
    said = occupied.message(usage)
    if not said:
        return without(conditions, occupied.CONDITION)
    ghost = Condition(type=occupied.CONDITION, status=TRUE, reason=occupied.REASON, message=said)
    return fitting(put(conditions, ghost, core.wall.text(core.now)), frozenset({ACTIVE, SATURATED, occupied.CONDITION}))


def _saturated(known: ClusterQueue | LocalQueue, figures: QueueFigures) -> Condition | None:
    """Return the condition that says which figures are no sums any more; None where all are, and always were."""
    if not figures.saturated and all(one.type != SATURATED for one in known.status.conditions):
        return None
    shown = ", ".join(figures.saturated[:SATURATED_SHOWN_MAX])
    more = f" and {len(figures.saturated) - SATURATED_SHOWN_MAX} more" * (len(figures.saturated) > SATURATED_SHOWN_MAX)
    return Condition(
        type=SATURATED,
        status=TRUE if figures.saturated else FALSE,
        reason="BeyondLargestAmount" if figures.saturated else "WithinAmounts",
        message=f"More is used than there are amounts for, the largest is shown: {shown}{more}" if shown else "",
        observed_generation=known.metadata.generation,
    )


def _inform(
    core: Core, key: Key, known: ClusterQueue | LocalQueue | Cohort, status: dict[str, Any], now: float
) -> None:
    """Write a status that only informs: once per period and object, out of the budget for that."""
    due = core.shown_queues.due(key, core.settings.status_every)
    if due is not None and now < due:
        core.agenda.wake(key, due)
    elif core.may_inform(WriteAsk(key, Purpose.STATUS), now):
        core.shown_queues.written(key, now)
        _write(core, _ref(key), known, status, informs=True)


def _write(
    core: Core,
    ref: ObjectRef,
    known: AdmissionCheck | ClusterQueue | LocalQueue | Cohort,
    status: dict[str, Any],
    *,
    informs: bool = False,
) -> None:
    metadata = {"uid": known.metadata.uid, "resourceVersion": known.metadata.resource_version}
    step = PatchStep(body=msgspec.json.encode({"metadata": metadata, "status": status}), subresource="status")
    api_requests.patch(core, Decided(ref, known.metadata.resource_version), step, Purpose.STATUS, informs=informs)
