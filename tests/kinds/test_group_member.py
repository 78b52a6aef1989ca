"""Where a pod of a group stands: the table of the issue, one row a state."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gatelift_kinds.pod_group.member import (
    CountsAs,
    Elsewhere,
    FinalizerGoes,
    MemberFacts,
    MemberState,
    facts_of,
    failed_at,
    standing,
)
from support.kinds.groups import K, a_pod, at, typed

S, C, F, E = MemberState, CountsAs, FinalizerGoes, Elsewhere

ROWS = [
    ("waiting at its gate", {"gated": True, "phase": "Pending"}, S.WAITING, C.PRESENT, False, F.AT_THE_END),
    ("PG-30 waiting, and deleted: nothing of it exists", {"gated": True, "deleted": True}, S.WITHDRAWN, C.ABSENT, False, F.AT_ONCE),
    ("let go, without a node yet", {"phase": "Pending"}, S.ACTIVE, C.PRESENT, True, F.AT_THE_END),
    ("running", {"phase": "Running", "bound": True}, S.ACTIVE, C.PRESENT, True, F.AT_THE_END),
    ("running at a worker", {"gated": True, "elsewhere": E.MAY_RUN}, S.ACTIVE, C.PRESENT, True, F.AT_THE_END),
    ("PG-10 let go, never bound, and deleted", {"phase": "Pending", "deleted": True}, S.WITHDRAWN, C.ABSENT, False, F.AT_ONCE),
    ("PG-9 leaving its node", {"phase": "Running", "bound": True, "deleted": True}, S.LEAVING, C.SLOT, True, F.WHEN_STOPPED),
    ("leaving its worker", {"gated": True, "deleted": True, "elsewhere": E.MAY_RUN}, S.LEAVING, C.SLOT, True, F.WHEN_STOPPED),
    ("MC-4 deleted, and its worker says that it stopped", {"gated": True, "deleted": True, "elsewhere": E.STOPPED}, S.WITHDRAWN, C.ABSENT, False, F.AT_ONCE),
    ("succeeded", {"phase": "Succeeded", "bound": True}, S.SUCCEEDED, C.PRESENT, False, F.AT_THE_END),
    ("succeeded, and deleted", {"phase": "Succeeded", "bound": True, "deleted": True}, S.SUCCEEDED, C.PRESENT, False, F.AT_THE_END),
    ("PG-7 failed", {"phase": "Failed", "bound": True}, S.FAILED, C.ABSENT, False, F.WHEN_REPLACED),
    ("MC-5 removed at its worker: neither deleted nor over, and stopped", {"gated": True, "elsewhere": E.STOPPED}, S.FAILED, C.ABSENT, False, F.WHEN_REPLACED),
    ("deleted by its user, and over", {"phase": "Failed", "bound": True, "deleted": True}, S.FAILED, C.ABSENT, False, F.AT_ONCE),
    ("PG-16 ended by an eviction", {"phase": "Failed", "bound": True, "deleted": True, "evicted": True}, S.FAILED, C.ABSENT, False, F.WHEN_REPLACED),
    ("PG-12 deleted and over, and nobody is to replace it", {"phase": "Failed", "bound": True, "deleted": True, "retriable": False}, S.FAILED, C.ABSENT, False, F.AT_THE_END),
    ("PG-5 too many, at its gate", {"gated": True, "surplus": True}, S.SURPLUS, C.REJECTED, False, F.AT_ONCE),
    ("too many, and it runs at a worker", {"gated": True, "surplus": True, "elsewhere": E.MAY_RUN}, S.SURPLUS, C.REJECTED, True, F.WHEN_STOPPED),
    ("what succeeded is never too many", {"phase": "Succeeded", "surplus": True}, S.SUCCEEDED, C.PRESENT, False, F.AT_THE_END),
    ("a phase that is written at home ends no run at a worker", {"gated": True, "phase": "Failed", "elsewhere": E.MAY_RUN}, S.ACTIVE, C.PRESENT, True, F.AT_THE_END),
    ("without its gate at home it may run here, whatever its worker says", {"phase": "Pending", "elsewhere": E.STOPPED}, S.ACTIVE, C.PRESENT, True, F.AT_THE_END),
]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "state", "counts_as", "running", "finalizer"), [pytest.param(*row[1:], id=row[0]) for row in ROWS]
)
def test_a_member_is(
    facts: dict[str, Any], state: MemberState, counts_as: CountsAs, running: bool, finalizer: FinalizerGoes
) -> None:
    assert standing(MemberFacts(**facts)) == (state, counts_as, running, finalizer)


def every_fact() -> list[MemberFacts]:
    flags = ("gated", "deleted", "bound", "surplus", "evicted", "retriable")
    return [
        MemberFacts(phase=phase, elsewhere=elsewhere, **dict(zip(flags, values, strict=True)))
        for phase in ("", "Pending", "Running", "Succeeded", "Failed", "Unknown")
        for elsewhere in Elsewhere
        for values in product((False, True), repeat=len(flags))
    ]


def test_what_may_run_counts_as_running_and_loses_no_finalizer_at_once() -> None:
    for facts in every_fact():
        over_here = facts.phase in {"Succeeded", "Failed"} and facts.elsewhere is not Elsewhere.MAY_RUN
        may_run = not over_here and (facts.bound or facts.elsewhere is Elsewhere.MAY_RUN)
        found = standing(facts)
        if may_run:
            assert found.running, facts
            assert found.finalizer is not FinalizerGoes.AT_ONCE, facts
            assert found.counts_as is not CountsAs.ABSENT, facts


def test_facts_are_read_from_the_pod() -> None:
    evicted = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvictedDueToPreempted"}
    pod = a_pod(notes={f"{K}retriable-in-group": "false"}, status={"phase": "Running", "conditions": [evicted]})
    pod["metadata"]["deletionTimestamp"] = at(5)
    pod["spec"] |= {"nodeName": "n", "schedulingGates": []}
    assert facts_of(typed(pod)) == MemberFacts(phase="Running", deleted=True, bound=True, evicted=True, retriable=False)


@pytest.mark.parametrize("reason", ["EvictionByEvictionAPI", "PreemptionByScheduler", ""])
def test_a_disruption_of_the_cluster_is_no_eviction_of_ours(reason: str) -> None:
    condition = {"type": "TerminationTarget", "status": "True", "reason": reason}
    assert not facts_of(typed(a_pod(status={"conditions": [condition]}))).evicted


@pytest.mark.parametrize(
    ("reason", "evicted"),
    [
        ("WorkloadEvictedDueToDeactivated", True),
        ("NotAdmitted", True),
        ("NoMatchingWorkload", True),
        ("WorkloadDeleted", False),
    ],
)
def test_pg_26_what_we_stopped_is_waited_for_but_for_what_ended_with_its_workload(reason: str, evicted: bool) -> None:
    condition = {"type": "TerminationTarget", "status": "True", "reason": reason}
    assert facts_of(typed(a_pod(status={"conditions": [condition]}))).evicted is evicted


@pytest.mark.parametrize(
    ("deleted", "ended", "since"),
    [
        pytest.param(None, None, "", id="nobody says"),
        pytest.param(None, at(3), at(3), id="its containers ended"),
        pytest.param(at(2), at(3), at(2), id="deleted before that"),
        pytest.param(at(4), at(3), at(3), id="deleted after that"),
    ],
)
def test_pg_8_a_pod_failed_when_it_was_deleted_or_its_containers_ended(
    deleted: str | None, ended: str | None, since: str
) -> None:
    conditions = [{"type": "ContainersReady", "status": "False", "lastTransitionTime": ended}] if ended else []
    pod = a_pod(status={"phase": "Failed", "conditions": conditions})
    if deleted:
        pod["metadata"]["deletionTimestamp"] = deleted
    assert failed_at(typed(pod)) == since
