"""How many pods of a Job need quota no longer (KEP-78): the reference's table, on what a Job's controller says."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.job.indexes import count_below
from gatelift_kinds.registry import JOB_KIND, SERVED
from support.manager.kind_objects import Json, a_job, job


def over(status: Json, *, parallelism: int, completions: int | None, **spec: Any) -> int:
    """Return how many of the pods of a Job with this status are over."""
    document = {**a_job(parallelism=parallelism, completions=completions, **spec), "status": status}
    return dict(JOB_KIND.reclaimable(job(document))).get("main", 0)


@pytest.mark.parametrize(
    ("parallelism", "completions", "succeeded", "expected"),
    [
        pytest.param(8, 8, 3, 3, id="RE-3 as many at once as completions: each that succeeds"),
        pytest.param(3, 10, 8, 1, id="RE-3 the tail: N >= M from here on"),
        pytest.param(5, 3, 1, 1, id="RE-3 P = 5, C = 3: two still run"),
        pytest.param(5, 3, 3, 3, id="RE-3 all of P = 5, C = 3"),
        pytest.param(3, 10, 6, 0, id="RE-4 more is left to do than runs at once"),
        pytest.param(3, 10, 7, 0, id="RE-4 just as much is left"),
        pytest.param(1, 4, 3, 0, id="RE-4 one at a time, one to go"),
        pytest.param(2, 5, 4, 1, id="RP-034 P = 2, C = 5, four done"),
    ],
)
def test_count_less_what_is_left(parallelism: int, completions: int, succeeded: int, expected: int) -> None:
    assert over({"succeeded": succeeded}, parallelism=parallelism, completions=completions) == expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"succeeded": 4, "completedIndexes": "0-3"}, 4, id="RE-5 RP-001 four completed"),
        pytest.param({"succeeded": 1, "completedIndexes": "0", "failed": 1}, 1, id="RP-002 a failure that is retried"),
        pytest.param({"succeeded": 1, "completedIndexes": "0", "failedIndexes": "1"}, 2, id="RE-5 RP-003 one for good"),
        pytest.param({"succeeded": 4}, 0, id="RP-004 no list of indexes"),
        pytest.param({"completedIndexes": "0-3", "failedIndexes": "2-5"}, 6, id="RE-5 an index counts once"),
        pytest.param({"completedIndexes": "0,8-19"}, 1, id="RE-5 indexes beyond the completions do not count"),
    ],
)
def test_of_an_indexed_job_of_eight(status: Json, expected: int) -> None:
    assert over(status, parallelism=8, completions=8, completionMode="Indexed") == expected


@pytest.mark.parametrize(
    ("completed", "failed", "completions", "expected"),
    [
        pytest.param("", "", 10, 0, id="RP-005"),
        pytest.param("0-9", "", 0, 0, id="RP-006"),
        pytest.param("0", "", 10, 1, id="RP-007"),
        pytest.param("", "1", 10, 1, id="RP-008"),
        pytest.param("0-4", "", 10, 5, id="RP-009"),
        pytest.param("0-4,7,9-11", "", 10, 7, id="RP-010"),
        pytest.param("0-2,7", "3-5,8", 10, 8, id="RP-011"),
        pytest.param("0-4", "3-7", 10, 8, id="RP-012"),
        pytest.param("0-9", "2-3", 10, 10, id="RP-013"),
        pytest.param("0-8", "", 10, 9, id="RP-014"),
        pytest.param("0-14", "", 10, 10, id="RP-015"),
        pytest.param("5-19", "", 10, 5, id="RP-016"),
        pytest.param("10-19", "", 10, 0, id="RP-017"),
        pytest.param("", "5-19", 10, 5, id="RP-018"),
        pytest.param("", "10-19", 10, 0, id="RP-019"),
        pytest.param("", "4", 3, 0, id="RP-020"),
        pytest.param("0-1", "2-19", 5, 5, id="RP-021"),
        pytest.param("0-4", "", 3, 3, id="RP-022"),
        pytest.param("3,5,7", "", 10, 3, id="RP-023"),
        pytest.param("3,5,12", "", 10, 2, id="RP-024"),
        pytest.param("abc,0-2", "", 10, 3, id="RP-025 a part that is no interval is left out"),
        pytest.param("0-x,4", "", 10, 1, id="RP-026 a part that is no interval is left out"),
    ],
)
def test_indexes_that_need_no_pod_any_more(completed: str, failed: str, completions: int, expected: int) -> None:
    assert count_below(completions, completed, failed) == expected


def test_re_6_failures_that_are_retried_keep_their_quota() -> None:
    assert over({"failed": 5, "active": 3}, parallelism=3, completions=3, backoffLimit=6) == 0
    assert over({"failed": 5, "succeeded": 1}, parallelism=3, completions=3, backoffLimit=6) == 1


def test_a_kind_says_whether_anything_is_given_back_before_its_end() -> None:
    """Succeeded members of a group do: a single pod gives nothing back by itself."""
    reclaims = {kind.name: kind.reclaims for kind in SERVED if kind.travels}
    assert reclaims == {"Job": True, "Pod": False, "PodGroup": True}
