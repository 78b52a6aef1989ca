"""What a driver has made at a worker keeps its quota, whatever became of home's own pods of that role."""

from __future__ import annotations

import pytest

from gatelift_kinds.pod_group import places
from gatelift_kinds.pod_group.made_there import MadeThere
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.shared import made_there
from gatelift_kube.objects.kueue import PodSet, Workload, WorkloadSpec
from gatelift_wire.values.messages import PodSetCounts
from support.kinds.groups import a_group, a_member

X, S = MemberState.FAILED, MemberState.SUCCEEDED
ASKED = Workload(spec=WorkloadSpec(pod_sets=(PodSet(name="r", count=4),)))


def there(**counts: int) -> MadeThere:
    return MadeThere((PodSetCounts(name="r", **counts),))


@pytest.mark.parametrize(("active", "given_back"), [(0, 2), (2, 2), (3, 1), (4, 0)])
def test_re_1_what_runs_there_is_charged_whoever_of_home_has_failed(active: int, given_back: int) -> None:
    members = a_group(a_member(0, X), a_member(1, X))
    found = places.left(members, ASKED, {"r": 4}, {}, there(active=active))
    assert found.get("r", 0) == given_back


def test_re_1_what_is_being_stopped_there_is_charged_as_well() -> None:
    members = a_group(a_member(0, S), a_member(1, S))
    assert places.over(members, ASKED, {"r": 4}, there(active=1, terminating=2)) == {"r": 1}


def test_what_has_succeeded_there_keeps_its_quota_until_the_group_ends() -> None:
    assert places.over(a_group(), ASKED, {"r": 4}, there(succeeded=3)) == {}


def test_people_are_told_of_each_set_of_which_there_is_something() -> None:
    counts = (PodSetCounts(name="b", active=1), PodSetCounts(name="c"), PodSetCounts(name="a", failed=2, rejected=1))
    assert made_there.text(counts) == "a: 2 failed, 1 turned away; b: 1 active"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a: 1 active", ""),
        ("a: 1 active, 2 stopping, 1 succeeded; b: 3 stopping; c: 1 turned away", "a: 1 succeeded; c: 1 turned away"),
        ("a: 2 succeeded", "a: 2 succeeded"),
        ("", ""),
        ("anything else", ""),
    ],
)
def test_hd_416_of_what_is_over_nobody_is_said_to_run(text: str, left: str) -> None:
    assert made_there.at_rest(text) == left
