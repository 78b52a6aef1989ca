"""What people are shown of queues against what the manager's engine has, once nothing is under way.

An object is still when the manager knows its newest version, and no request for it is out and nothing will look at it
again: what it then shows wrongly it shows for ever. Neighbours: `sim.shown` asks once a simulated second,
`world` after each advance of a unit test's time.
"""

from __future__ import annotations

from typing import Any

from gatelift.core.api.agenda import Key, Look
from gatelift.core.state.api_requests import UNSENT
from gatelift.core.state.core import INFORM, Core
from gatelift_admission.entries.entry import Phase
from gatelift_admission.told.statuses import QueueFigures
from gatelift_admission.values.amounts import parse
from gatelift_kube.objects.kueue import FlavorUsage
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, ObjectKey, ObjectRef, Resource

Doc = dict[str, Any]
Cells = dict[tuple[str, str], tuple[int, int]]
"""Total and borrowed by flavor and resource."""
LOOKS = {CLUSTER_QUEUE: Look.CLUSTER_QUEUE, LOCAL_QUEUE: Look.LOCAL_QUEUE, WORKLOAD: Look.WORKLOAD}
COUNTS = ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")


def moves(core: Core, resource: Resource, key: ObjectKey, document: Doc) -> bool:
    """Say whether the manager has yet to hear of an object's newest version, waits for an answer, or looks again."""
    return is_moving(core, ObjectRef(resource, key), Key(LOOKS[resource], key), document["metadata"]["resourceVersion"])


def is_moving(core: Core, ref: ObjectRef, look: Key, version: str) -> bool:
    """Say the same of an object of which this is the newest version."""
    known: Any = core.known(ref)
    if known is None or known.metadata.resource_version != version:
        return True
    uid = known.metadata.uid
    return (
        core.agenda.waits(look)
        or core.inflight.busy(ref)
        or (ref in core.unsent and core.agenda.waits(UNSENT))
        or (core.agenda.waits(INFORM) and any(look == asks.key for asks in core.budget._line._shares))
        or _stands_in_line(core, look)
        or core.is_marked_later(uid)
        or core.ledger.engine.phase(uid) is Phase.ASSUMED
    )


def _stands_in_line(core: Core, look: Key) -> bool:
    """Say whether a write that follows a cluster's word waits for its turn, which is called."""
    lines = core.words._lines.items()
    named = {word.cluster for word, budget in lines if any(look == asks.key for asks in budget._line._shares)}
    return any(core.agenda.waits(Key(Look.WORDS, ObjectKey("", cluster))) for cluster in named)


def queue_is_wrong(core: Core, resource: Resource, key: ObjectKey, document: Doc) -> list[str]:
    """Return what a queue shows that is not what the engine has."""
    return queue_differs(core, resource, key, shown_by(document))


def queue_differs(core: Core, resource: Resource, key: ObjectKey, shown: Doc) -> list[str]:
    """Say the same of a queue that shows this, by `shown_by`."""
    engine = core.ledger.engine
    figures = engine.cluster_queue_status(key.name) if resource == CLUSTER_QUEUE else engine.local_queue_status(key)
    has = _had_by(figures) if figures is not None else None
    found = [] if shown == has else [f"{resource.kind} {key.name} shows {shown}; the engine has {has}"]
    waits = [
        entry.uid
        for entry in engine.state.entries.values()
        if entry.queue and key in (entry.local_queue, ObjectKey("", entry.queue))
    ]
    if has is not None and has["pendingWorkloads"] != len(waits):
        found.append(f"{resource.kind} {key.name} counts {has['pendingWorkloads']}; in it wait {waits}")
    return found


def shown_by(queue: Doc) -> Doc:
    """Return what a queue shows, in the form in which it is compared."""
    status: Doc = queue.get("status", {})
    active: Doc = next((one for one in status.get("conditions", []) if one["type"] == "Active"), {})
    return {
        **{count: status.get(count, 0) for count in COUNTS},
        **{part: _cells(status.get(part, [])) for part in ("flavorsReservation", "flavorsUsage")},
        "active": (active.get("status"), active.get("reason"), active.get("message")),
    }


def _had_by(figures: QueueFigures) -> Doc:
    active = figures.active
    return {
        "pendingWorkloads": figures.pending_workloads,
        "reservingWorkloads": figures.reserving_workloads,
        "admittedWorkloads": figures.admitted_workloads,
        "flavorsReservation": _totals(figures.flavors_reservation),
        "flavorsUsage": _totals(figures.flavors_usage),
        "active": ("True" if active.status else "False", active.reason, active.message),
    }


def _cells(flavors: list[Doc]) -> Cells:
    return {
        (flavor["name"], one["name"]): (parse(one["total"], one["name"]), parse(one.get("borrowed", "0"), one["name"]))
        for flavor in flavors
        for one in flavor["resources"]
    }


def _totals(flavors: tuple[FlavorUsage, ...]) -> Cells:
    return {
        (flavor.name, one.name): (parse(str(one.total), one.name), parse(str(one.borrowed), one.name))
        for flavor in flavors
        for one in flavor.resources
    }
