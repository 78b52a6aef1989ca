"""HD-357: a pod that was queued by itself is given a group's name, around the webhook: it stays what it was."""

from __future__ import annotations

import pytest

from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim.history import History

QUEUES = (pytest.param("stays", id="local"), pytest.param("travels", id="worker"))
LEADERS = (pytest.param(False, id="the same leader"), pytest.param(True, id="the next leader"))


def joins(history: History, *, next_leader: bool) -> None:
    """Give the pod a group, by one patch."""
    marks = {
        "labels": {markers.POD_GROUP_NAME: "grp"},
        "annotations": {markers.POD_GROUP_TOTAL_COUNT: "2"},
    }
    history.edit("home", POD, "one", {"metadata": marks})
    if next_leader:
        history.kill_leader()
    history.passes(60.0)


@pytest.mark.parametrize("next_leader", LEADERS)
@pytest.mark.parametrize("queue", QUEUES)
def test_hd_357_what_runs_runs_on_and_gives_its_quota_back_as_it_ends(queue: str, *, next_leader: bool) -> None:
    history = History()
    history.pod("one", queue, seconds=200.0)
    history.until_runs("one")
    joins(history, next_leader=next_leader)
    assert history.containers("one") == 1
    assert history.leader.charges(queue) > 0
    history.until(
        "it has succeeded", lambda: (history.home.look(POD, "one") or {})["status"]["phase"] == "Succeeded", 300.0
    )
    history.until("its quota is free", lambda: history.leader.charges(queue) == 0, 60.0)
    history.until(
        "it is its user's", lambda: not (history.home.look(POD, "one") or {})["metadata"].get("finalizers"), 60.0
    )


@pytest.mark.parametrize("next_leader", LEADERS)
def test_hd_357_what_waits_stays_in_its_queue(*, next_leader: bool) -> None:
    history = History()
    history.pod("one", "stays", cpu="900")
    history.until("a Workload", lambda: history.workload("one") is not None)
    joins(history, next_leader=next_leader)
    assert history.workload("one") is not None
    assert history.containers("one") == 0


def test_hd_357_what_has_no_workload_is_told_of_and_queued_once_the_name_is_off() -> None:
    history = History()
    history.kill_leader()
    history.pod("one", "stays")
    history.edit("home", POD, "one", {"metadata": {"labels": {markers.POD_GROUP_NAME: "grp"}}})
    history.passes(60.0)
    assert history.workload("one") is None
    assert history.leader.told["NoQueue"] == 1
    history.edit("home", POD, "one", {"metadata": {"labels": {markers.POD_GROUP_NAME: None}}})
    history.until_runs("one")


def test_hd_357_who_deletes_its_workload_ends_it_as_any_single_pod() -> None:
    history = History()
    history.pod("one", "travels")
    history.until_runs("one")
    joins(history, next_leader=False)
    found = history.workload("one")
    assert found is not None
    history.delete("home", WORKLOAD, found["metadata"]["name"])
    history.until("all of it is gone", lambda: history.home.look(POD, "one") is None and not history.runs("one"), 60.0)
