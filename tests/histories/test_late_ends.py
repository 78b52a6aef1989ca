"""Scripted histories (HD-179): a leader writes the end of a placement and dies; it lands when the next one leads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim.cluster import Doc
from support.sim.history import ON_TERMINAL, History
from support.sim.objects import epoch_of

BLAMED = "its status says no longer what Gatelift wrote"


def _hold_its_end_back(history: History) -> list[Callable[[], None]]:
    """Let the leader's next write that gives a reservation back be under way until the script lets it land."""
    held: list[Callable[[], None]] = []
    port = history.leader.port
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if held or not isinstance(command, Patch) or command.ref.resource != WORKLOAD or not _gives_back(command):
            send(command, deadline)
            return
        held.append(lambda: port._land(command, answered=False))

    port._send = slow  # type: ignore[method-assign]
    return held


def _gives_back(command: Patch) -> bool:
    return command.subresource == "status" and b'"admission"' not in command.body


def _ended_on_its_cluster(*, standby: bool = True) -> tuple[History, str, list[Callable[[], None]]]:
    """Let a placement end by its cluster's word, and its leader die while it writes that; the cluster is cut off."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.until("it says so", lambda: history.shows("one", "Admitted"))
    if standby:
        history.world.start_manager()
        history.passes(30.0)
    held = _hold_its_end_back(history)
    history.workers[cluster].delete(POD, "one", grace_seconds=1)
    history.until("its end is on its way", lambda: bool(held), 60.0)
    history.cut(cluster)
    history.kill_leader()
    history.until("another leads", history.leads)
    history.until("it charges it", lambda: history.leader.charges("travels") == 500)
    assert history.shows("one", "QuotaReserved")
    return history, cluster, held


def _is_told(history: History) -> bool:
    return any(BLAMED in each for each in history.world.time.trace)


def _record(history: History) -> Doc:
    workload = history.workload("one")
    assert workload is not None
    return workload


@pytest.mark.parametrize("standby", [True, False], ids=["a standby", "a manager that starts"])
def test_hd_179_a_dead_leaders_end_is_left_alone_until_its_cluster_was_heard(standby: bool) -> None:
    history, cluster, held = _ended_on_its_cluster(standby=standby)
    held[0]()
    history.passes(10.0)
    assert not history.shows("one", "QuotaReserved"), "nobody writes it back"
    assert history.leader.charges("travels") == 500, "nor believes it"
    assert not _is_told(history)
    history.mend(cluster)
    history.until("it runs in the next epoch", lambda: epoch_of(_record(history)) == 2 and bool(history.runs("one")))
    assert history.leader.charges("travels") == 500
    assert not _is_told(history)


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_179_what_a_dead_leader_had_stopped_is_stopped_by_the_next_one_and_written_back_by_nobody(
    queue: str,
) -> None:
    history = History(shown=False, file=ON_TERMINAL)
    history.job("one", queue)
    cluster = history.until_runs("one", "Job")
    history.until("it says so", lambda: history.shows("one", "Admitted", "Job"))
    history.world.start_manager()
    history.passes(30.0)
    held = _hold_its_end_back(history)
    workload = history.workload("one", "Job")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.until("its end is on its way", lambda: bool(held), 60.0)
    if queue == "travels":
        history.cut(cluster)
    history.kill_leader()
    history.until("another leads", history.leads)
    held[0]()
    history.passes(1.0)
    assert not history.shows("one", "QuotaReserved", "Job")
    if queue == "travels":
        history.passes(10.0)
        assert history.leader.charges(queue) == 500
        history.mend(cluster)
    history.until("it is free", lambda: history.leader.charges(queue) == 0)
    history.passes(30.0)
    assert not history.shows("one", "QuotaReserved", "Job")
    assert not history.runs("one", "Job")
    assert not _is_told(history)


def test_hd_179_a_dead_leaders_end_is_written_back_once_its_cluster_is_lost() -> None:
    history, cluster, held = _ended_on_its_cluster()
    held[0]()
    history.until_lost(cluster)
    history.until("it is shown where it is charged", lambda: history.shows("one", "QuotaReserved"))
    assert _is_told(history)
    assert history.leader.charges("travels") == 500
    assert _record(history)["status"]["clusterName"] == cluster
    history.mend(cluster)
    history.until("it runs in the next epoch", lambda: epoch_of(_record(history)) == 2 and bool(history.runs("one")))


def test_hd_179_an_end_that_lands_later_than_any_leaders_could_is_written_back_at_once() -> None:
    history, _, held = _ended_on_its_cluster()
    history.passes(31.0)
    held[0]()
    history.passes(2.0)
    assert history.shows("one", "QuotaReserved")
    assert _is_told(history)


@pytest.mark.parametrize("term", [1, 2], ids=["a leader's before", "this leader's"])
def test_hd_179_marks_that_a_stranger_forges_over_what_runs_last_until_its_cluster_was_heard(term: int) -> None:
    """Just after the leader changed they may be a dead leader's: what runs stays charged, and no one else gets it."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.until("it says so", lambda: history.shows("one", "Admitted"))
    workload = _record(history)
    history.world.start_manager()
    history.passes(30.0)
    history.cut(cluster)
    history.kill_leader()
    history.until("another leads", history.leads)
    marks = {"gatelift.dev/term": str(term), "gatelift.dev/epoch": "1"}
    (check,) = workload["status"]["admissionChecks"]
    back = {**check, "state": "Pending", "podSetUpdates": [{"name": "main", "annotations": marks}]}
    status = {"conditions": [], "admission": None, "clusterName": None, "admissionChecks": [back]}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": status}, "status")
    history.passes(5.0)
    assert history.leader.charges("travels") == 500
    assert history.shows("one", "QuotaReserved") == (term == 2), "with marks of its own term it is none of those"
    history.mend(cluster)
    history.until("it is written back", lambda: history.shows("one", "QuotaReserved"))
    assert _is_told(history)
    history.passes(60.0)
    assert history.runs("one") == {cluster}
    assert epoch_of(_record(history)) == 1
