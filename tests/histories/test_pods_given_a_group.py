"""HD-357: a pod that was queued by itself is given a group's name, around the webhook: it stays what it was.

HD-450: under the next leader as well, which knows it by the Workload of its own.
"""

from __future__ import annotations

import pytest

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.names import workload_name
from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim import groups_at_home as groups
from support.sim.cluster import TEAM
from support.sim.groups_at_home import make, running, says, until_all_run
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


def test_hd_357_what_has_no_workload_of_its_own_is_a_member_and_told_what_its_group_lacks() -> None:
    history = History()
    history.kill_leader()
    history.pod("one", "stays")
    history.edit("home", POD, "one", {"metadata": {"labels": {markers.POD_GROUP_NAME: "grp"}}})
    history.passes(60.0)
    assert history.workload("one") is None
    assert history.leader.told["ErrWorkloadCompose"] == 1
    assert history.containers("one") == 0


def test_hd_357_who_deletes_its_workload_ends_it_as_any_single_pod() -> None:
    history = History()
    history.pod("one", "travels")
    history.until_runs("one")
    joins(history, next_leader=False)
    found = history.workload("one")
    assert found is not None
    history.delete("home", WORKLOAD, found["metadata"]["name"])
    history.until("all of it is gone", lambda: history.home.look(POD, "one") is None and not history.runs("one"), 60.0)


def test_hd_450_a_member_is_no_single_pod_because_somebody_makes_a_workload_of_that_name() -> None:
    history = History()
    for name in "ab":
        make(history, name, total=2)
    until_all_run(history, "a", "b")
    pod = groups.pod(history, "a")
    assert pod is not None
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": pod["metadata"]["uid"], "controller": True}
    name = workload_name(POD.kind, POD.group, "a", pod["metadata"]["uid"])
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": pod["spec"]["containers"]}}}]
    meta = {"name": name, "namespace": TEAM, "ownerReferences": [owner]}
    history.home.create(WORKLOAD, {"metadata": meta, "spec": {"queueName": "stays", "podSets": sets}})
    history.kill_leader()
    history.passes(60.0)
    assert running(history) == ["a", "b"]
    assert says(history, "WaitingForReplacementPods")[0] == "", "nobody may take the slot of one that runs"
    assert [each["metadata"]["name"] for each in history.objects("home", WORKLOAD)] == ["crew"]
