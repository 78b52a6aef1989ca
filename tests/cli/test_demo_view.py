"""What the demo shows, from objects to lines."""

from __future__ import annotations

from io import StringIO
from typing import Any

import msgspec
import pytest
from rich.console import Console

from gatelift.cli.demo_view import Board, Promise, Row, StateMark, finished_by_cluster, rows_of
from gatelift_admission.texts import BYPASSED
from gatelift_kube.objects.kueue import Workload
from support.manager.cli_stage import admitted, condition

LONG_WHY = "couldn't assign flavors to pod set main: " + "insufficient quota, " * 20


def pod(name: str = "p", phase: str = "Pending", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-of-{name}", **metadata}, "spec": {}, "status": {"phase": phase}}


def job(name: str = "j", ready: int = 0, parallelism: int = 3) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-of-{name}"}
    return {"metadata": metadata, "spec": {"parallelism": parallelism}, "status": {"ready": ready}}


def workload(name: str, *conditions: Any, status: dict[str, Any] | None = None) -> Workload:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-of-{name}"}
    given = status or {"conditions": list(conditions)}
    return msgspec.convert({"metadata": {"name": f"w-{name}", "ownerReferences": [owner]}, "status": given}, Workload)


def row(name: str = "p", state: str = "waits", **fields: str) -> Row:
    return Row(kind="pod", name=name, state=state, **fields)


def picture(board: Board, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
    console.print(board.render(12.0))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(
    ("made", "state", "cluster"),
    [
        (None, "queued", ""),
        (workload("p", condition("QuotaReserved", "False", "Pending", "no room")), "waits", ""),
        (workload("p", condition("QuotaReserved", "True", "QuotaReserved")), "offered", ""),
        (workload("p", status=admitted("worker-1")), "admitted", "worker-1"),
        (workload("p", condition("Admitted", "True", "Admitted")), "admitted", "local"),
        (workload("p", condition("Finished", "True", "Succeeded")), "finished", ""),
        (workload("p", condition("Finished", "True", "Failed")), "failed (Failed)", ""),
    ],
)
def test_a_pods_row_follows_its_workload(made: Workload | None, state: str, cluster: str) -> None:
    (found,) = rows_of([pod()], [], [made] if made is not None else [])
    assert (found.state, found.cluster) == (state, cluster)


def test_admitted_work_runs_as_soon_as_a_pod_does_and_until_its_workload_is_finished() -> None:
    placed = workload("p", status=admitted("worker-1"))
    for phase, state in (("Pending", "admitted"), ("Running", "runs"), ("Succeeded", "runs")):
        (found,) = rows_of([pod(phase=phase)], [], [placed])
        assert found.state == state


def test_a_job_says_how_many_of_its_pods_run() -> None:
    placed = workload("j", status=admitted("worker-1"))
    assert [rows_of([], [job(ready=n)], [placed])[0].state for n in (0, 2, 3)] == [
        "admitted",
        "runs 2 of 3",
        "runs 3 of 3",
    ]


def test_a_job_whose_first_pods_have_ended_still_runs() -> None:
    ended = job()
    ended["status"]["succeeded"] = 2
    (found,) = rows_of([], [ended], [workload("j", status=admitted("worker-1"))])
    assert found.state == "runs 0 of 3"


def test_pods_of_a_job_are_no_work_of_their_own() -> None:
    assert rows_of([pod(ownerReferences=[{"kind": "Job"}])], [], []) == []


def test_a_pod_that_is_being_deleted_is_stopping() -> None:
    (found,) = rows_of([pod(deletionTimestamp="2026-01-01T00:00:00Z")], [], [workload("p", status=admitted("w"))])
    assert (found.state, found.cluster) == ("stopping", "w")


def test_only_a_new_state_or_cluster_is_told() -> None:
    board = Board()
    admitted_there = row("a", "admitted", cluster="worker-1")
    assert [each.name for each in board.update([admitted_there, row("b", "admitted", cluster="local")])] == ["a", "b"]
    assert board.update([admitted_there, row("b", "admitted", cluster="local")]) == []
    assert [str(each) for each in board.update([admitted_there, row("b", "runs", cluster="local")])] == [
        "pod b: runs on local"
    ]
    assert [
        str(each) for each in board.update([row("a", "admitted", cluster="w2"), row("b", "runs", cluster="local")])
    ] == ["pod a: admitted on w2"]


def test_what_was_not_tried_because_one_like_it_did_not_fit_is_told_in_words_for_a_first_reader() -> None:
    bypassed = workload("p", condition("QuotaReserved", "False", "Pending", BYPASSED))
    (found,) = rows_of([pod("p")], [], [bypassed])
    assert str(found) == "pod p: waits (one like it was tried just before and did not fit)"


def test_why_work_waits_is_told_once_however_its_figures_change() -> None:
    board = Board()
    assert board.update([row(state="queued")]) == []
    assert board.update([row()]) == []
    assert [str(each) for each in board.update([row(why="3 more needed")])] == ["pod p: waits (3 more needed)"]
    assert board.update([row(why="4 more needed")]) == []
    assert board.rows["pod", "p"].why == "4 more needed", "the picture of a terminal shows the figures of now"


def test_a_jobs_pods_are_counted_in_the_picture_and_not_line_by_line() -> None:
    board = Board()
    assert len(board.update([row(state="runs 1 of 3", cluster="w1")])) == 1
    assert board.update([row(state="runs 3 of 3", cluster="w1")]) == []


def test_what_is_there_no_more_was_deleted_and_is_told_once() -> None:
    board = Board()
    board.update([row("a", "runs", cluster="worker-1", why="x")])
    assert [str(each) for each in board.update([])] == ["pod a: deleted on worker-1"]
    assert board.update([]) == []
    assert board.state("a") == "deleted"


def test_work_that_was_never_seen_has_no_state() -> None:
    assert Board().state("a") == ""
    assert Board().row("a") is None


def test_a_promise_says_how_far_it_is() -> None:
    board = Board(promises=[Promise(text="it works")])
    assert str(board.promises[0]) == "[ ] it works"
    assert str(board.mark(0, StateMark.DOING)) == "[>] it works"
    assert str(board.mark(0, StateMark.KEPT, "twice")) == "[+] it works: twice"
    assert str(board.mark(0, StateMark.BROKEN)) == "[x] it works"


def test_a_promise_that_takes_long_says_what_is_waited_for_until_it_is_kept() -> None:
    board = Board(promises=[Promise(text="it is back", meanwhile="half a minute")])
    assert str(board.promises[0]) == "[ ] it is back"
    assert str(board.mark(0, StateMark.DOING)) == "[>] it is back (half a minute)"
    assert str(board.mark(0, StateMark.KEPT, "after 21 s")) == "[+] it is back: after 21 s"


def test_the_picture_fits_a_small_terminal_one_line_a_row() -> None:
    board = Board(promises=[Promise(text="p" * 100, detail="d" * 100) for _ in range(8)])
    board.update([row(f"n{number:02}", why=LONG_WHY) for number in range(11)])
    lines = picture(board)
    assert len(lines) == 1 + 8 + 1 + 1 + 11
    assert all(len(line) <= 80 for line in lines)
    assert all(lines[11 + number].startswith(f"pod n{number:02}  waits") for number in range(11)), "names are never cut"


def test_brackets_in_a_message_are_no_markup() -> None:
    board = Board()
    board.update([row("a", why="Missing clusters: [red]")])
    assert "Missing clusters: [red]" in picture(board)[-1]


def test_finished_work_is_counted_by_cluster() -> None:
    rows = [row("a", "finished", cluster="w2"), row("b", "finished", cluster="w1"), row("c", "finished", cluster="w2")]
    assert finished_by_cluster([*rows, row("d", "runs", cluster="w1")]) == {"w1": 1, "w2": 2}
