"""What a Workload keeps of how pods of its group ended that cannot show it (HD-412)."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kinds.pod_group import unshown_ends
from gatelift_kinds.pod_group.elsewhere import RunsElsewhere
from gatelift_kinds.pod_group.member import Elsewhere
from gatelift_kinds.shared.digests import digest
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta

TEXT = unshown_ends.more("", {"a": True, "b": False}, set())


def test_hd_412_what_is_kept_is_read_back_by_the_uids_of_pods() -> None:
    assert unshown_ends.read(TEXT) == {digest("a"): True, digest("b"): False}


def test_pods_that_are_gone_are_kept_no_longer() -> None:
    assert unshown_ends.read(unshown_ends.more(TEXT, {"c": True}, {digest("a")})) == {
        digest("a"): True,
        digest("c"): True,
    }


def test_a_success_is_undone_by_no_later_word() -> None:
    assert unshown_ends.read(unshown_ends.more(TEXT, {"a": False}, {digest("a")})) == {digest("a"): True}


def test_4096_ends_are_kept_and_fit_with_a_declaration_into_what_annotations_hold() -> None:
    every = {f"{number:08d}-0000-4000-8000-000000000000": True for number in range(4096)}
    text = unshown_ends.more("", every | {"failed": False}, set())
    assert len(text) <= unshown_ends.CHARS_MAX
    assert len(unshown_ends.read(text)) == 4096
    assert all(unshown_ends.read(text).values())


@pytest.mark.parametrize("text", ["", "x", "[]", '{"succeeded": 3}', "9" * 5000, "{" * 5000])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert unshown_ends.read(text) == {}


def test_what_is_longer_than_ours_can_be_says_nothing() -> None:
    text = msgspec.json.encode({"succeeded": ["x" * unshown_ends.CHARS_MAX]}).decode()
    meta = ObjectMeta(name="crew", namespace="team", uid="u", annotations={unshown_ends.ANNOTATION: text})
    assert unshown_ends.said(Workload(metadata=meta)) == ""


def test_only_those_of_which_something_else_is_kept_are_counted_anew() -> None:
    where = RunsElsewhere()
    assert where.keeps(TEXT, ["a", "b", "c"]) == ["a", "b"]
    assert where.keeps(TEXT, ["a", "b", "c"]) == []
    assert [where.of(uid) for uid in "abc"] == [Elsewhere.SUCCEEDED, Elsewhere.FAILED, Elsewhere.NOWHERE]
    assert where.keeps("", ["a", "b", "c"]) == ["a", "b"]


def test_who_is_said_to_run_does_whatever_is_kept() -> None:
    where = RunsElsewhere()
    where.keeps(TEXT, ["a", "b"])
    where.placed("somewhere", {"a": False})
    assert where.of("a") is Elsewhere.MAY_RUN
    where.put("a", Elsewhere.STOPPED)
    assert where.of("a") is Elsewhere.SUCCEEDED
