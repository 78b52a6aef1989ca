"""What an elastic Job needs no longer (KEP-78), with another size than it had when its pods ended (KEP-77, SL-24)."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import ELASTIC_JOB_KIND as KIND
from support.kinds.elastic_jobs import an_elastic
from support.manager.kind_objects import Json, job


def charged(document: Json, **spec: int | str) -> tuple[int, int]:
    """Return the pods that such a Job has at once, and those of them that it needs no longer."""
    document["spec"].update(spec)
    found = job(document)
    return KIND.wanted(found)["main"], dict(KIND.reclaimable(found)).get("main", 0)


def an_indexed(size: int, **status: int | str) -> Json:
    """Return an Indexed Job with as many completions as pods at once, and this status."""
    document = an_elastic()
    document["spec"].update({"parallelism": size, "completions": size, "completionMode": "Indexed"})
    document["status"] = status
    return document


INDEXED = [
    pytest.param(an_indexed(8, completedIndexes="0-3", succeeded=4), 8, (8, 4), id="EJ-005 four of eight are done"),
    pytest.param(an_indexed(8, completedIndexes="0-3", succeeded=4), 3, (3, 3), id="EJ-005 then three: all are done"),
    pytest.param(an_indexed(5, failedIndexes="4"), 5, (5, 1), id="EJ-006 the last of five failed for good"),
    pytest.param(an_indexed(5, failedIndexes="4"), 3, (3, 0), id="EJ-006 then three: that one is none of them"),
    pytest.param(an_indexed(20, completedIndexes="5-9", succeeded=15), 10, (10, 5), id="EJ-008 those below ten alone"),
]


@pytest.mark.parametrize(("document", "size", "expected"), INDEXED)
def test_sl_24_sl_25_of_an_indexed_job_only_indexes_below_its_size_count(
    document: Json, size: int, expected: tuple[int, int]
) -> None:
    """EJ-005, EJ-006, EJ-008: ended indexes above the new number count for nothing, whatever `succeeded` says."""
    assert charged(document, parallelism=size, completions=size) == expected


def test_ej_007_of_twenty_completions_fifteen_are_done_and_five_are_left_at_either_size() -> None:
    document = an_elastic()
    document["status"] = {"succeeded": 15}
    assert charged(document, parallelism=20, completions=20) == (20, 15)
    assert charged(document, parallelism=10, completions=20) == (10, 5)
