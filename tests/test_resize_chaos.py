"""SL-85: what the outside record of the chaos of resizes finds, shown with records that are written by hand."""

from __future__ import annotations

from typing import Any

from gatelift_sandbox.records import RunRecord
from support.e2e.resize_chaos import Wishes, wrong


def ran(name: str, started: float, stopped: float | None = None, **of: Any) -> RunRecord:
    fields = {
        "cluster": "w1",
        "node": "n",
        "namespace": "team-a",
        "pod_uid": f"u-{name}",
        "workload_uid": "w",
        "epoch": 1,
    }
    return RunRecord(**{**fields, **of}, name=name, started=started, stopped=stopped)


def wished(*sizes: tuple[float, int]) -> dict[str, Wishes]:
    return {"j": Wishes(list(sizes))}


def test_sl_85_pods_that_were_taken_back_may_stop_and_no_others() -> None:
    """A growth afterwards gives nobody back who was stopped."""
    lines = [ran("j-a", 1.0), ran("j-b", 1.0, 8.0), ran("j-c", 1.0, 9.0)]
    assert wrong(lines, wished((0.0, 3), (5.0, 1), (6.0, 3))) == []
    assert wrong(lines, wished((0.0, 3), (5.0, 2))) == [
        "j: 2 pods had been stopped when its user had taken back 1",
    ]
    assert wrong(lines, wished((0.0, 3), (8.5, 1)))[0].endswith("when its user had taken back 0"), "before he wished it"


def test_sl_85_a_pod_that_was_started_twice_is_found() -> None:
    lines = [ran("j-a", 1.0), ran("j-a", 1.0, 2.0), ran("j-a", 2.5)]
    assert wrong(lines, wished((0.0, 1), (1.5, 0))) == ["w1/j-a was started 2 times"]


def test_sl_85_two_placements_at_once_are_found() -> None:
    (found,) = wrong([ran("j-a", 1.0), ran("j-b", 3.0, epoch=2)], wished((0.0, 1)))
    assert "ran together" in found


def test_sl_85_pods_of_other_jobs_are_not_counted() -> None:
    assert wrong([ran("jj-a", 1.0, 2.0, workload_uid="")], wished((0.0, 1))) == []
