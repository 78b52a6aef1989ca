"""The outside check: two placements of one workload never ran at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelift_sandbox.records import RunRecord, encode, overlaps, parse, read, runs


def ran(
    pod: str, started: float, stopped: float | None, *, epoch: int = 1, cluster: str = "a", workload: str = "w"
) -> RunRecord:
    return RunRecord(
        cluster=cluster,
        node="n",
        namespace="ns",
        name=pod,
        pod_uid=f"{cluster}-{pod}",
        workload_uid=workload,
        epoch=epoch,
        started=started,
        stopped=stopped,
        exit_code=None if stopped is None else 0,
    )


CASES = {
    "one after the other": ([ran("p", 0, 1), ran("q", 2, 3, epoch=2, cluster="b")], 0),
    "the second starts in the moment the first stops": ([ran("p", 0, 1), ran("q", 1, 2, epoch=2)], 0),
    "two epochs together in two clusters": ([ran("p", 0, 2), ran("q", 1, 3, epoch=2, cluster="b")], 1),
    "two epochs together in one cluster": ([ran("p", 0, 2), ran("q", 1, 3, epoch=2)], 1),
    "one epoch in two clusters": ([ran("p", 0, 2), ran("q", 1, 3, cluster="b")], 1),
    "pods of one placement may run together": ([ran("p", 0, 2), ran("q", 1, 3)], 0),
    "two workloads may run together": ([ran("p", 0, 2), ran("q", 1, 3, epoch=2, workload="v")], 0),
    "one that never stopped overlaps all later ones": ([ran("p", 0, None), ran("q", 9, 10, epoch=2)], 1),
    "pods of nobody are nobody's business": (
        [ran("p", 0, 2, workload=""), ran("q", 1, 3, epoch=2, workload="")],
        0,
    ),
    "each pair is told": ([ran("p", 0, 9), ran("q", 1, 9), ran("r", 2, 3, epoch=2, cluster="b")], 2),
}


@pytest.mark.parametrize("case", CASES)
def test_overlaps(case: str) -> None:
    records, expected = CASES[case]
    assert len(overlaps(records)) == expected


def test_an_overlap_says_who_and_how_long() -> None:
    (found,) = overlaps([ran("p", 0, 2), ran("q", 1.5, None, epoch=2, cluster="b")])
    assert str(found) == "workload w: a/ns/p (epoch 1) and b/ns/q (epoch 2) ran together for 0.500 s"


def test_the_lines_of_a_pod_are_one_run_from_its_first_start_to_its_last_stop() -> None:
    assert runs([ran("p", 1, None), ran("q", 0, None), ran("p", 2, 5)]) == [ran("q", 0, None), ran("p", 1, 5)]


def test_what_is_written_is_read_and_a_line_cut_short_by_a_kill_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "record"
    file.write_bytes(encode(ran("p", 0, None)) + encode(ran("p", 0, 1)) + encode(ran("q", 2, 3))[:-9])
    assert read(file, tmp_path / "not-there") == [ran("p", 0, None), ran("p", 0, 1)]


def test_a_damaged_line_is_named() -> None:
    with pytest.raises(ValueError, match="line 2 is no record"):
        parse(encode(ran("p", 0, 1)) + b"{}\n")


moments = st.integers(0, 12)


@given(st.lists(st.tuples(moments, moments, st.integers(1, 3), st.sampled_from("ab")), max_size=8))
def test_the_sweep_agrees_with_looking_at_every_pair(given_runs: list[tuple[int, int, int, str]]) -> None:
    members = [
        ran(str(number), start, start + length, epoch=epoch, cluster=cluster)
        for number, (start, length, epoch, cluster) in enumerate(given_runs)
    ]
    expected = {
        frozenset((one.pod_uid, two.pod_uid))
        for one in members
        for two in members
        if (one.epoch, one.cluster) != (two.epoch, two.cluster)
        and one.stopped is not None
        and two.stopped is not None
        and max(one.started, two.started) < min(one.stopped, two.stopped)
    }
    found = [frozenset((o.first.pod_uid, o.second.pod_uid)) for o in overlaps(members) if o.seconds > 0]
    assert set(found) == expected
    assert len(found) == len(expected)
