"""When a group is over and with which result, and what is told while replacements are waited for."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.pod_group import ends
from gatelift_kinds.pod_group.composition import GroupPlan, PlannedSet
from gatelift_kinds.pod_group.ends import Over
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import GroupMembers
from gatelift_kube.objects.meta import Condition
from support.kinds.groups import a_group, a_member

W, A, L, S, X, D = (
    MemberState.WAITING,
    MemberState.ACTIVE,
    MemberState.LEAVING,
    MemberState.SUCCEEDED,
    MemberState.FAILED,
    MemberState.WITHDRAWN,
)
NO = {"retriable": False}


def of(*states: MemberState | tuple[MemberState, dict[str, Any]]) -> GroupMembers:
    rows = [each if isinstance(each, tuple) else (each, {}) for each in states]
    return a_group(*(a_member(n, state, **more) for n, (state, more) in enumerate(rows)))


FINISHED = [
    ("PG-11 all succeed", of(S, S, S), True, "Pods succeeded: 3/3"),
    ("PG-11 all succeed, and one had failed before", of(X, S, S, S), True, "Pods succeeded: 3/3"),
    ("PG-12 PG-14 nobody is to replace one, and nobody goes on", of(S, (X, NO), X), False, "Pods succeeded: 1/3, failed: 2"),
    ("PG-13 a member that succeeded says it later", of((S, NO), X, X), False, "Pods succeeded: 1/3, failed: 2"),
    ("DW-5 a driver that deleted its workers", of((S, NO)), False, "Pods succeeded: 1/3, gone: 2"),
    ("DW-7 a driver that failed, whose workers are gone", of((X, NO), X), False, "Pods succeeded: 0/3, failed: 2, gone: 1"),
]  # fmt: skip


@pytest.mark.parametrize("state", [A, L])
def test_hd_515_who_runs_beyond_a_total_that_was_lowered_has_stopped_before_the_group_is_finished(
    state: MemberState,
) -> None:
    """Its quota was free at once, and it ran on."""
    assert ends.end(of(S, state), 1) is None
    assert ends.end(of(S, W), 1) is not None, "who waits never ran"


@pytest.mark.parametrize(("group", "succeeded", "message"), [pytest.param(*row[1:], id=row[0]) for row in FINISHED])
def test_a_group_ends_with_what_became_of_it(group: GroupMembers, succeeded: bool, message: str) -> None:
    found = ends.end(group, 3)
    assert found is not None
    assert found.over is Over.FINISHED
    assert found.outcome is not None
    assert (found.outcome.succeeded, found.outcome.message) == (succeeded, message)
    assert found.outcome.reason == ("Succeeded" if succeeded else "Failed")


GOES_ON = [
    ("one still runs", of((X, NO), A, X)),
    ("one still waits", of((X, NO), W, X)),
    ("one is still leaving", of((X, NO), L, X)),
    ("who says so has not ended", of(X, X, (A, NO))),
    ("who says so was withdrawn before it ran", of(X, X, (D, NO))),
    ("DW-5 failed ones may be replaced", of(S, X, X)),
    ("nothing is known yet", of()),
]  # fmt: skip


@pytest.mark.parametrize("group", [pytest.param(row[1], id=row[0]) for row in GOES_ON])
def test_a_group_goes_on_while(group: GroupMembers) -> None:
    assert ends.end(group, 3) is None


def test_pg_21_a_serving_group_never_finishes() -> None:
    assert ends.end(of(S, S, S), 3, serving=True) is None
    assert ends.end(of((X, NO), X, X), 3, serving=True) is None


def test_pg_15_a_group_whose_workload_a_person_deletes_is_over() -> None:
    found = ends.end(of(A, W, S), 3, serving=True, workload_deleted=True)
    assert found == ends.GroupEnd(over=Over.DELETED)


GONE = {"deleted": True}


def test_pg_30_a_group_of_which_all_was_deleted_is_over_once_nothing_runs() -> None:
    assert ends.end(of((X, GONE), (S, GONE), (D, GONE)), 3) == ends.GroupEnd(over=Over.ABANDONED)
    assert ends.end(of((X, GONE), (S, GONE), (L, GONE)), 3) is None
    assert ends.end(of((X, GONE), (S, GONE), X), 3) is None, "one that failed by itself, or was evicted, is waited for"


def test_readiness_is_of_as_many_as_the_group_has() -> None:
    ready = {"ready": True}
    assert ends.all_ready(of((A, ready), (A, ready), S), 3)
    assert not ends.all_ready(of((A, ready), (A, ready)), 3)
    assert not ends.all_ready(of((A, ready), A, S), 3)


PLAN = GroupPlan(pod_sets=(PlannedSet(name="driver", count=1), PlannedSet(name="r", count=2)))
LATER = GroupPlan(pod_sets=(PlannedSet(name="driver", count=1), PlannedSet(name="r", count=2, comes_later=True)))


def with_driver(*states: MemberState) -> GroupMembers:
    group = of(*states)
    group.put(a_member(99, A, "driver"))
    return group


def test_re_10_succeeded_members_give_their_quota_back_by_role_and_failed_ones_do_not() -> None:
    group = with_driver(S, X)
    assert ends.reclaimable(group, PLAN) == (("r", 1),)
    assert ends.reclaimable(group, PLAN, serving=True) == ()
    assert ends.reclaimable(with_driver(S, S, S), PLAN) == (("r", 2),), "never more than the pod set has"


ABSENT = [
    ("all there", with_driver(A, W), PLAN, 0),
    ("one failed", with_driver(A, X), PLAN, 1),
    ("one failed and is replaced", with_driver(A, X, W), PLAN, 0),
    ("one is gone", with_driver(A), PLAN, 1),
    ("a role is gone", of(A, A), PLAN, 1),
    ("one is leaving: its slot is not empty", with_driver(A, L), PLAN, 0),
    ("declared workers that have not come", with_driver(), LATER, 0),
    ("a declared worker that failed", with_driver(X), LATER, 1),
    ("declared workers of which one failed and one was made", with_driver(X, A), LATER, 1),
    ("declared workers, and their driver is gone", of(A, A), LATER, 1),
]  # fmt: skip


@pytest.mark.parametrize(("group", "plan", "missing"), [pytest.param(*row[1:], id=row[0]) for row in ABSENT])
def test_who_has_to_be_replaced(group: GroupMembers, plan: GroupPlan, missing: int) -> None:
    assert sum(ends.lacking(group, plan).values()) == missing


def test_pg_16_what_an_eviction_ends_has_to_be_replaced_unless_somebody_waits_for_its_place() -> None:
    assert sum(ends.lacking(with_driver(L, L), PLAN, evicted=True).values()) == 2
    assert sum(ends.lacking(with_driver(L, L, W), PLAN, evicted=True).values()) == 1


def test_pg_20_of_a_group_that_was_admitted_by_its_first_pod_one_is_enough() -> None:
    assert [sum(ends.lacking(of(*states), PLAN, fast=True).values()) for states in ((W,), (L,), (X,), ())] == [
        0,
        0,
        1,
        1,
    ]


def waiting(status: str, reason: str, message: str = "m") -> Condition:
    return Condition(type=ends.WAITING, status=status, reason=reason, message=message)


def evicted(reason: str, status: str = "True") -> Condition:
    return Condition(type="Evicted", status=status, reason=reason, message="m")


FAILED = waiting("True", "PodsFailed", "1 pod failed or gone: make as many again under the group's name")
CONDITIONS = [
    ("PC-091 nothing is missing: never made", 0, None, None, None),
    ("PC-092 one failed", 1, None, None, FAILED),
    ("PC-094 evicted", 1, None, evicted("Preempted"), waiting("True", "Preempted")),
    ("PG-18 PC-095 evicted again for another reason", 1, waiting("True", "Preempted"), evicted("PodsReadyTimeout"), waiting("True", "PodsReadyTimeout")),
    ("the same eviction again", 1, waiting("True", "Preempted"), evicted("Preempted"), None),
    ("PC-096 admitted again with one missing: as it was", 1, waiting("True", "Preempted"), evicted("Preempted", "False"), None),
    ("PC-097 all there again", 0, waiting("True", "Preempted"), None, waiting("False", "PodsReady", ends.ALL_THERE)),
    ("missing once more", 1, waiting("False", "PodsReady"), None, FAILED),
    ("all there, and it says so", 0, waiting("False", "PodsReady"), None, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "said", "eviction", "put"), [pytest.param(*row[1:], id=row[0]) for row in CONDITIONS]
)
def test_the_condition_that_waits_for_replacements(
    missing: int, said: Condition | None, eviction: Condition | None, put: Condition | None
) -> None:
    assert ends.waiting_condition({"r": missing} if missing else {}, said, eviction) == put


def test_hd_415_the_condition_says_how_many_lack_now_and_of_which_roles() -> None:
    found = ends.waiting_condition({"worker": 2, "driver": 1}, FAILED, None, of_roles=True)
    assert found is not None
    assert found.message.startswith("3 pods failed or gone (driver: 1, worker: 2): make")
    assert ends.waiting_condition({"worker": 2, "driver": 1}, found, None, of_roles=True) is None
