"""RM-6: there are ten thousands of attempts that wait, and each keeps only what it has."""

from __future__ import annotations

from gatelift.core.records.attempts import Attempt
from gatelift_kube.values.resources import ObjectKey


def test_rm_6_what_waits_has_no_table_of_what_is_shown_and_told_and_asking_makes_none() -> None:
    attempt = Attempt(uid="u", workload=ObjectKey("team", "w"), epoch=1)
    attempt.shown("p")
    assert attempt.mirrored_at("p", -1.0) == -1.0
    assert attempt.has_shown("p", frozenset()) == frozenset()
    assert (attempt._shown, attempt._told) == (None, None)


def test_what_is_shown_of_one_object_is_kept_by_its_name() -> None:
    attempt = Attempt(uid="u", workload=ObjectKey("team", "w"), epoch=1)
    assert attempt.unshown("p", 1.0) == 1.0
    assert attempt.unshown("p", 2.0) == 1.0, "since when it was first so"
    attempt.mirrors("p", 3.0)
    assert (attempt.mirrored_at("p", 0.0), attempt.mirrored_at("q", 0.0)) == (3.0, 0.0)
    assert attempt.unshown("p", 4.0) == 4.0
    assert attempt.has_shown("p", frozenset({"runs"})) == frozenset({"runs"})
    assert attempt.has_shown("p", frozenset()) == frozenset({"runs"})
