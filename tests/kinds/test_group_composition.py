"""When the Workload of a group is made, of what, and what is told until then."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.pod_group.composition import (
    GroupPlan,
    NotYet,
    PlannedSet,
    compose,
    declared,
    differs,
    disagreements,
)
from gatelift_kinds.pod_group.declaration import declared as read_sets
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import Agreement, GroupMember
from gatelift_kinds.pod_group.reading import member_of
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kube.objects.kueue import PodSet, Workload, WorkloadSpec
from support.kinds.groups import SETS, TOTAL, K, a_group, a_member, a_pod, of_size, typed

THREE = of_size(3)


def three(**roles: str) -> list[GroupMember]:
    return [a_member(n, role=roles.get(f"p{n}", "r"), **THREE) for n in range(3)]


def test_pg_3_roles_are_pod_sets_sorted_by_name_each_like_its_oldest_pod() -> None:
    plan = compose(a_group(*three(p0="worker", p1="driver", p2="worker")))
    assert plan == GroupPlan(
        pod_sets=(PlannedSet(name="driver", count=1, like="u1"), PlannedSet(name="worker", count=2, like="u0"))
    )


@pytest.mark.parametrize("size", [1, 100])
def test_pg_3_a_group_of(size: int) -> None:
    plan = compose(a_group(*(a_member(n, **of_size(size)) for n in range(size))))
    assert isinstance(plan, GroupPlan)
    assert plan.counts == {"r": size}


@pytest.mark.parametrize(
    ("there", "text"),
    [
        pytest.param(1, "2 of 3 pods of the group are not there yet", id="two lack"),
        pytest.param(2, "1 of 3 pods of the group is not there yet", id="one lacks"),
    ],
)
def test_pg_4_until_all_are_there_it_is_told_how_many_lack(there: int, text: str) -> None:
    assert compose(a_group(*three()[:there])) == NotYet(text=text)


@pytest.mark.parametrize("state", [MemberState.FAILED, MemberState.WITHDRAWN, MemberState.LEAVING, MemberState.SURPLUS])
def test_who_is_not_present_is_not_counted(state: MemberState) -> None:
    group = a_group(*three()[:2], a_member(2, state, **THREE))
    assert compose(group) == NotYet(text="1 of 3 pods of the group is not there yet")


def test_pg_5_who_is_too_many_goes_first() -> None:
    assert compose(a_group(*three(), a_member(3, **THREE))) == NotYet(surplus=("u3",))


def test_pg_20_fast_admission_is_one_set_of_all_from_the_first_pod_on() -> None:
    plan = compose(a_group(a_member(7, role="a", **THREE), a_member(8, role="b", **THREE)), fast=True)
    assert plan == GroupPlan(pod_sets=(PlannedSet(name="a", count=3, like="u7"),))
    assert isinstance(compose(a_group(), fast=True), NotYet)


DIFFERING = [
    ("BG-11 counts", Agreement.COUNT, "3", "4", "the pods of the group differ in the group's size: 1 says 3 (p0), 1 says 4 (p1)"),
    ("BG-12 queues", Agreement.QUEUE, "q", "other", "the pods of the group differ in the queue: 1 says q (p0), 1 says other (p1)"),
    ("BG-12 a queue and none", Agreement.QUEUE, "q", "", "the pods of the group differ in the queue: 1 says q (p0), 1 says nothing (p1)"),
    ("BG-13 priority classes", Agreement.CLASS, "high", "low", "the pods of the group differ in the priority class: 1 says high (p0), 1 says low (p1)"),
    ("execution limits", Agreement.LIMIT, "60", "61", "the pods of the group differ in the execution limit: 1 says 60 (p0), 1 says 61 (p1)"),
    ("BG-14 values of a copied label", "team", "a", "b", "the pods of the group differ in team: 1 says a (p0), 1 says b (p1)"),
    ("BG-29 declarations", Agreement.DECLARATION, "d1", "d2", "the pods of the group differ in the declared sets: 1 says d1 (p0), 1 says d2 (p1)"),
]  # fmt: skip


@pytest.mark.parametrize(("subject", "one", "other", "text"), [pytest.param(*row[1:], id=row[0]) for row in DIFFERING])
def test_who_disagrees_is_told_with_figures_and_names(
    subject: Agreement | str, one: str, other: str, text: str
) -> None:
    group = a_group(a_member(0, said=((subject, one),)), a_member(1, said=((subject, other),)))
    assert compose(group) == NotYet(text=text)


def test_what_only_some_say_is_no_disagreement() -> None:
    group = a_group(a_member(0, said=((Agreement.CLASS, "high"), ("team", "a"))), a_member(1))
    assert disagreements(group) == ""


def test_pods_that_are_over_without_success_disagree_with_nobody() -> None:
    failed = a_member(9, MemberState.FAILED, **of_size(4))
    assert isinstance(compose(a_group(*three(), failed)), GroupPlan)


def test_bg_16_a_role_hash_that_unlike_pods_share_is_told() -> None:
    group = a_group(a_member(0, shape="s1", **of_size(2)), a_member(1, shape="s2", **of_size(2)))
    found = compose(group)
    assert isinstance(found, NotYet)
    assert "2 shapes in role r: 1 says s1 (p0), 1 says s2 (p1): leave the role hash out" in found.text


def test_bg_15_nineteen_roles_are_too_many_and_eighteen_are_not() -> None:
    for count in (18, 19):
        group = a_group(*(a_member(n, role=f"r{n}", **of_size(count)) for n in range(count)))
        found = compose(group)
        assert isinstance(found, GroupPlan if count == 18 else NotYet)
    assert isinstance(found, NotYet)
    assert found.text.startswith("the group has 19 roles")
    assert "at most 18" in found.text


def test_what_is_told_is_short_whatever_members_say() -> None:
    labels = [(f"label-{n}", str(n)) for n in range(60)]
    others = [(f"label-{n}", "x") for n in range(60)]
    told = disagreements(a_group(a_member(0, said=tuple(labels)), a_member(1, said=tuple(others))))
    assert len(told) <= 1000


def test_dw_1_declared_sets_are_the_pod_sets_from_the_driver_on() -> None:
    text = (
        '[{"name":"driver","count":1},{"name":"workers","count":10,"template":{"spec":{"containers":[{"name":"w"}]}}}]'
    )
    sets = read_sets(text).declaration
    assert sets is not None
    group = a_group(a_member(0, role="driver", said=((Agreement.QUEUE, "q"),)))
    plan = declared(group, sets, "u0", "driver")
    assert plan == GroupPlan(
        pod_sets=(
            PlannedSet(name="driver", count=1, like="u0"),
            PlannedSet(name="workers", count=10, template=b'{"spec":{"containers":[{"name":"w"}]}}', comes_later=True),
        )
    )
    group.put(a_member(1, role="workers", **of_size(12)))
    found = declared(group, sets, "u0", "driver")
    assert found == NotYet(text="the pods say that the group has 12, and the declared sets have 11 in all")


@pytest.mark.parametrize(
    ("pod_sets", "text"),
    [
        pytest.param((("a", 1), ("b", 2)), "", id="the same"),
        pytest.param((("a", 1),), "spec.podSets: 1 pod sets, the group has 2 roles", id="a role less"),
        pytest.param((("a", 1), ("b", 3)), "spec.podSets[1]: 3 pods of b, the group has 2 of b", id="another count"),
        pytest.param((("a", 1), ("c", 2)), "spec.podSets[1]: 2 pods of c, the group has 2 of b", id="another name"),
    ],
)
def test_bg_18_a_workload_of_other_pod_sets_is_told(pod_sets: tuple[tuple[str, int], ...], text: str) -> None:
    workload = Workload(spec=WorkloadSpec(pod_sets=tuple(PodSet(name=name, count=count) for name, count in pod_sets)))
    plan = GroupPlan(pod_sets=(PlannedSet(name="a", count=1), PlannedSet(name="b", count=2)))
    assert differs(workload, plan) == text


def read_pod(**more: Any) -> GroupMember:
    return member_of(typed(a_pod(**more)), RoleFit("r"), "shape", copied=("team",))


def test_a_pod_is_read_as_its_group_counts_it() -> None:
    pod = a_pod(labels={"team": "a", f"{K}priority-class": "high", f"{K}max-exec-time-seconds": "60"})
    member = member_of(typed(pod), RoleFit("r"), "shape", copied=("team", "absent"))
    assert member == GroupMember(
        uid="uid-p",
        name="p",
        created="2026-01-01T00:00:00Z",
        state=MemberState.WAITING,
        role="r",
        shape="shape",
        said=(
            (Agreement.QUEUE, "q"),
            (Agreement.COUNT, "3"),
            (Agreement.CLASS, "high"),
            (Agreement.LIMIT, "60"),
            ("team", "a"),
        ),
    )


def test_what_a_pod_says_of_its_size_is_said_whatever_it_is_and_short() -> None:
    assert (Agreement.COUNT, "three") in read_pod(notes={TOTAL: "three"}).said
    ((_, value),) = [each for each in read_pod(notes={TOTAL: "9" * 9999}).said if each[0] is Agreement.COUNT]
    assert len(value) <= 63


def test_the_same_declaration_in_another_spelling_is_said_alike() -> None:
    text = '[{"name":"d","count":1}]'
    spelled = (text, "- name: d\n  count: 1", json.dumps(json.loads(text), indent=1))
    said = {dict(read_pod(notes={SETS: each}).said)[Agreement.DECLARATION] for each in spelled}
    assert len(said) == 1


def test_pods_that_were_let_go_have_no_shape_to_differ_in() -> None:
    lifted = member_of(typed(a_pod("a", notes={TOTAL: "2"}, schedulingGates=[])), RoleFit("r"), "with the flavor's")
    gated = member_of(typed(a_pod("b", notes={TOTAL: "2"})), RoleFit("r"), "shape")
    assert (lifted.shape, gated.shape) == ("", "shape")
    assert isinstance(compose(a_group(lifted, gated)), GroupPlan)


def test_pods_of_declared_sets_are_compared_with_their_template_alone() -> None:
    group = a_group(a_member(0, shape="s1"), a_member(1, shape="s2"))
    assert disagreements(group)
    assert disagreements(group, by_hash=False) == ""
