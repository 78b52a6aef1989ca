"""What would happen if a waiting workload were looked at now: what it lacks, who stands before it, who would leave.

For people, on an engine that only answers (a replica fed from the same objects): `settle` puts all where they belong
without deciding anything, `outlook` nominates one without taking anything. Neighbours: `explain`, `nomination`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry, Phase, effective_priority, has_failed_checks
from gatelift_admission.entries.standings import INADMISSIBLE
from gatelift_admission.feed import places
from gatelift_admission.flavors.assignment import AssignedPodSet, Mode
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.rounds.nomination import nominate
from gatelift_admission.state.known import State
from gatelift_admission.told.explain import FlavorVerdict
from gatelift_kube.values.resources import ObjectKey

AHEAD_MAX: Final = 5
"""Workloads named that stand before it: what a person can do something about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A workload that would have to leave; `reason` is that of its condition Preempted."""

    key: ObjectKey
    cluster_queue: str
    priority: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a waiting workload could expect. Places count from 1.

    `fits`: there is quota for it as things stand. `counts`: pods per pod set that it would get, where they are fewer
    than it asks for. `hindrance`: why no quota can help it, or why it is not looked at now; "" if nothing is wrong.
    """

    cluster_queue: str
    priority: int
    place: int
    waiting: int
    local_place: int
    local_waiting: int
    ahead: tuple[ObjectKey, ...]
    fits: bool
    borrows: bool
    verdicts: tuple[FlavorVerdict, ...]
    counts: tuple[tuple[str, int], ...]
    victims: tuple[Victim, ...]
    hindrance: str
    why: str = ""
    """Reason of its condition as things stand: of quota that is used, of more than there can be, of no such flavor."""


def settle(state: State) -> None:
    """Put all workloads where they belong, and decide nothing."""
    state.ensure()
    while state.review:
        _, entry = state.review.popitem(last=False)
        places.place(state, entry)


def outlook(state: State, uid: str) -> Outlook | None:
    """Return what a waiting workload could expect now; None if it is unknown, or does not wait in a ClusterQueue."""
    entry = state.entries.get(uid)
    queue = state.queues.get(entry.queue) if entry is not None else None
    if entry is None or queue is None or entry.phase is not Phase.PENDING:
        return None
    order = list(queue.pending.in_order())
    place = order.index(entry)
    fellows = [one for one in order if one.local_queue == entry.local_queue]
    hindrance = _hindrance(state, entry, queue)
    plan = nominate(state, entry, queue) if not hindrance or entry.standing is INADMISSIBLE else None
    return Outlook(
        cluster_queue=queue.name,
        priority=entry.priority,
        place=place + 1,
        waiting=len(order),
        local_place=fellows.index(entry) + 1,
        local_waiting=len(fellows),
        ahead=tuple(one.key for one in order[max(0, place - AHEAD_MAX) : place]),
        fits=plan is not None and plan.assignment.mode is Mode.FIT,
        borrows=plan is not None and plan.assignment.borrowing > 0,
        verdicts=_verdicts(plan),
        counts=_fewer(entry, plan),
        victims=_victims(state, plan),
        hindrance=hindrance,
        why=plan.assignment.reason if plan is not None and plan.assignment.mode is Mode.NO_FIT else "",
    )


def _hindrance(state: State, entry: Entry, queue: QueueModel) -> str:
    if not queue.admits:
        return texts.inactive("ClusterQueue", queue.name)
    if has_failed_checks(entry.workload):
        return texts.CHECKS_FAILED
    if not state.selects(queue, entry.key.namespace):
        return texts.NAMESPACE_MISMATCH
    if entry.obstacle:
        return entry.obstacle
    if state.chains.behind(entry, queue.name):
        return texts.BEHIND_SLICE
    if entry.standing is INADMISSIBLE:
        return "it waits until its backoff is over, or until somebody lets it queue again"
    return ""


def _verdicts(plan: Plan | None) -> tuple[FlavorVerdict, ...]:
    return tuple(verdict for one in (plan.assignment.pod_sets if plan is not None else ()) for verdict in _of(one))


def _of(one: AssignedPodSet) -> list[FlavorVerdict]:
    """Return what each flavor that was tried has to say, and what no flavor is asked about."""
    told = [
        FlavorVerdict(
            pod_set=one.name,
            flavor=attempt.flavor,
            fits=attempt.mode is Mode.FIT,
            borrows=attempt.level > 0,
            reasons=attempt.reasons,
        )
        for attempt in one.attempts
    ]
    known = {reason for verdict in told for reason in verdict.reasons}
    beside = tuple(reason for reason in one.reasons if reason not in known)
    if beside:
        told.append(FlavorVerdict(pod_set=one.name, flavor="", fits=False, borrows=False, reasons=beside))
    return told


def _fewer(entry: Entry, plan: Plan | None) -> tuple[tuple[str, int], ...]:
    if plan is None or not plan.possible:
        return ()
    asked = {one.name: one.count for one in entry.pod_sets}
    return tuple((one.name, one.count) for one in plan.assignment.pod_sets if one.count < asked.get(one.name, 0))


def _victims(state: State, plan: Plan | None) -> tuple[Victim, ...]:
    return tuple(
        Victim(
            key=one.entry.key,
            cluster_queue=one.entry.charged_queue,
            priority=effective_priority(one.entry.workload, boost=state.settings.priority_boost),
            reason=one.reason.value,
        )
        for one in (plan.targets if plan is not None else ())
    )
