"""Where one pod of a group stands, what it counts as, and when its finalizer may go: one table. Pure.

The states follow from the pod alone, and from what its worker says of it, so a new leader sees the same ones. Which
pods are too many, and whose place another one has taken, is said by `slots`: here that comes as a fact.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from gatelift_kinds.pod_group.marks import FALSE
from gatelift_kinds.shared import markers, pods, termination
from gatelift_kube.objects.conditions import FALSE as CONDITION_FALSE
from gatelift_kube.objects.core import Pod


class MemberState(enum.Enum):
    """Where a pod of a group stands."""

    WAITING = "waiting"
    """At our gate: nothing of it runs."""
    ACTIVE = "active"
    """Let go, here or at a worker; not deleted, not over."""
    LEAVING = "leaving"
    """Deleted, and it may still run."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Over without success, or gone without an end."""
    WITHDRAWN = "withdrawn"
    """Deleted before anything of it ran: there is nothing left of it."""
    SURPLUS = "surplus"
    """Beyond the count of its group, or of its role."""


class CountsAs(enum.Enum):
    """What a pod is to the count of its group."""

    PRESENT = "present"
    SLOT = "slot"
    """It keeps its slot; another pod may have it once this one has stopped."""
    ABSENT = "absent"
    REJECTED = "rejected"


class FinalizerGoes(enum.Enum):
    """When the finalizer of a pod may be taken off."""

    AT_ONCE = "at once"
    WHEN_STOPPED = "when it has stopped"
    WHEN_REPLACED = "when another pod has its slot, or the group ends"
    AT_THE_END = "when the group ends"


class Elsewhere(enum.Enum):
    """What is known of a pod's run at a worker."""

    NOWHERE = "nowhere"
    """It has no live placement at a worker: none was made, or all of that has stopped with an attempt of the past."""
    MAY_RUN = "may run"
    """Committed to a worker that has not said that this pod has stopped."""
    STOPPED = "stopped"
    """The worker of the live placement says that it stopped, and nobody here asked for that."""
    SUCCEEDED = "succeeded"
    """It succeeded at a worker: it has shown that, or the Workload keeps it where it cannot (`unshown_ends`)."""
    FAILED = "failed"
    """The same of one that failed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberFacts:
    """What decides. `bound`: it has or had a node. `evicted`: we ended it, with its Workload; no user did."""

    phase: str = ""
    gated: bool = False
    deleted: bool = False
    bound: bool = False
    elsewhere: Elsewhere = Elsewhere.NOWHERE
    surplus: bool = False
    evicted: bool = False
    retriable: bool = True


class MemberStanding(NamedTuple):
    """The answer: a row of the table."""

    state: MemberState
    counts_as: CountsAs
    running: bool
    finalizer: FinalizerGoes


ROWS = {
    MemberState.WAITING: (CountsAs.PRESENT, False, FinalizerGoes.AT_THE_END),
    MemberState.ACTIVE: (CountsAs.PRESENT, True, FinalizerGoes.AT_THE_END),
    MemberState.LEAVING: (CountsAs.SLOT, True, FinalizerGoes.WHEN_STOPPED),
    MemberState.SUCCEEDED: (CountsAs.PRESENT, False, FinalizerGoes.AT_THE_END),
    MemberState.FAILED: (CountsAs.ABSENT, False, FinalizerGoes.WHEN_REPLACED),
    MemberState.WITHDRAWN: (CountsAs.ABSENT, False, FinalizerGoes.AT_ONCE),
    MemberState.SURPLUS: (CountsAs.REJECTED, False, FinalizerGoes.AT_ONCE),
}
"""What a state counts as, whether the pod runs or may, and when its finalizer goes, but for `_of_the_deleted`."""
_OVER = {"Succeeded": MemberState.SUCCEEDED, "Failed": MemberState.FAILED}
_KEPT = {Elsewhere.SUCCEEDED: MemberState.SUCCEEDED, Elsewhere.FAILED: MemberState.FAILED}


def facts_of(pod: Pod, elsewhere: Elsewhere = Elsewhere.NOWHERE, *, surplus: bool = False) -> MemberFacts:
    """Return the facts that a pod of the management cluster shows; what its worker says is `elsewhere`."""
    return MemberFacts(
        phase=pod.status.phase,
        gated=any(gate.name == markers.ADMISSION_GATE for gate in pod.spec.scheduling_gates),
        deleted=pod.metadata.deletion_timestamp is not None,
        bound=bool(pod.spec.node_name),
        elsewhere=elsewhere,
        surplus=surplus,
        evicted=termination.is_said(pod.status.conditions),
        retriable=pod.metadata.annotations.get(markers.RETRIABLE_IN_GROUP) != FALSE,
    )


def standing(facts: MemberFacts) -> MemberStanding:
    """Return where a pod stands. Total: any facts have an answer."""
    state = _state(facts)
    if facts.surplus and state not in {MemberState.SUCCEEDED, MemberState.FAILED}:
        finalizer = FinalizerGoes.WHEN_STOPPED if _may_run(facts) else FinalizerGoes.AT_ONCE
        return MemberStanding(MemberState.SURPLUS, CountsAs.REJECTED, _may_run(facts), finalizer)
    counts_as, running, finalizer = ROWS[state]
    if state is MemberState.FAILED and facts.deleted:
        finalizer = _of_the_deleted(facts)
    return MemberStanding(state, counts_as, running, finalizer)


def failed_at(pod: Pod) -> str:
    """Return since when a pod is over: the earlier of its deletion and its containers' end, RFC 3339 in UTC.

    "" where it says neither: it goes before all that do.
    """
    ended = [
        one.last_transition_time
        for one in pod.status.conditions
        if one.type in {"ContainersReady", "Ready"} and one.status == CONDITION_FALSE and one.last_transition_time
    ]
    if not pods.over(pod):
        ended = []
    return min((*ended, *filter(None, (pod.metadata.deletion_timestamp,))), default="")


def _state(facts: MemberFacts) -> MemberState:
    if facts.phase in _OVER and not _runs_elsewhere(facts):
        return _OVER[facts.phase]
    kept = _KEPT.get(facts.elsewhere)
    if kept is not None and facts.gated and not facts.bound:
        return kept
    if facts.deleted:
        return MemberState.LEAVING if _may_run(facts) else MemberState.WITHDRAWN
    if not facts.gated or _may_run(facts):
        return MemberState.ACTIVE
    return MemberState.FAILED if facts.elsewhere is Elsewhere.STOPPED else MemberState.WAITING


def _runs_elsewhere(facts: MemberFacts) -> bool:
    """Say whether it runs at a worker, or may: what is written at home says nothing of that but by its word."""
    return facts.elsewhere is Elsewhere.MAY_RUN


def _may_run(facts: MemberFacts) -> bool:
    """Say whether something of it runs, or may: on a node here, or at a worker that has not said otherwise."""
    return facts.bound or _runs_elsewhere(facts)


def _of_the_deleted(facts: MemberFacts) -> FinalizerGoes:
    """Return when the finalizer goes of a pod that failed and is deleted: it has stopped, and its user wants it gone.

    What we evicted stays until it is replaced: with its last pod the Workload would go, and with that its place in the
    queue. What says that nobody is to replace it stays until the group ends: with it that word would go.
    """
    if not facts.retriable:
        return FinalizerGoes.AT_THE_END
    return FinalizerGoes.WHEN_REPLACED if facts.evicted else FinalizerGoes.AT_ONCE
