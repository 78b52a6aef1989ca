"""Kueue's own scenarios of pods, PC-n and PI-n by the reference's list, and PG-34, PG-35, on the real cores."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.cluster import SimCluster
from support.sim.groups_at_home import make, running, says, theirs, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager

PLACES = pytest.mark.parametrize("queue", [pytest.param("stays", id="local"), pytest.param("travels", id="worker")])
MAKER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "maker", "uid": "uid-maker", "controller": True}
OF_JOBS = {"batch.kubernetes.io/job-name": "other", "job-name": "other", "controller-uid": "x"}


@pytest.fixture(autouse=True)
def with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)


def finished(history: History) -> tuple[str, str]:
    """Return status and reason of Finished, of the Workload of the pod."""
    said = ((history.workload("one") or {}).get("status") or {}).get("conditions", [])
    return next(((one["status"], one["reason"]) for one in said if one["type"] == "Finished"), ("", ""))


def test_pc_017_a_pod_runs_on_by_what_it_was_granted_when_its_workload_is_made_to_say_something_else() -> None:
    """Around the policy, which refuses it. Kueue stops the pod and deletes the Workload."""
    history = History(shown=False)
    history.pod("one", "stays")
    history.until_runs("one")
    [workload] = history.objects("home", WORKLOAD)
    sets = [{**workload["spec"]["podSets"][0], "count": 2}]
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"podSets": sets}})
    history.passes(60.0)
    [after] = history.objects("home", WORKLOAD)
    assert (history.containers("one"), after["metadata"]["uid"]) == (1, workload["metadata"]["uid"])
    assert history.leader.charges("stays") == 500


def test_pc_025_a_pod_that_has_lost_our_finalizer_has_its_success_said_all_the_same() -> None:
    history = History(shown=False)
    history.pod("one", "stays", seconds=10.0)
    history.until_runs("one")
    history.edit("home", POD, "one", {"metadata": {"finalizers": None}})
    history.until("it is finished", lambda: finished(history) == ("True", "Succeeded"), 60.0)


@PLACES
def test_pi_002_a_pod_that_runs_and_is_deleted_goes_with_its_finalizer_and_quota(queue: str) -> None:
    history = History(shown=False)
    history.pod("one", queue, stops_in=3.0)
    history.until_runs("one")
    history.delete("home", POD, "one")
    history.until("it is gone", lambda: not history.objects("home") and not history.objects("home", WORKLOAD), 60.0)
    assert (history.containers("one"), history.leader.charges(queue)) == (0, 0)


def told(history: History, name: str) -> tuple[str, str]:
    """Return reason and message of what a pod says of its end."""
    conditions = ((groups.pod(history, name) or {}).get("status") or {}).get("conditions", [])
    said = (one for one in conditions if one["type"] == "TerminationTarget")
    return next(((one["reason"], one["message"]) for one in said), ("", ""))


def test_pc_073_who_is_being_deleted_already_when_its_group_is_evicted_is_told_nothing_more() -> None:
    history = History(shown=False)
    for name in "abc":
        make(history, name, stops_in=20.0, grace=60)
    until_all_run(history, *"abc")
    history.delete("home", POD, "b")
    history.passes(3.0)
    before = groups.pod(history, "b")
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("the others are told", lambda: all(told(history, name)[0] for name in "ac"), 10.0)
    assert groups.pod(history, "b") == before
    evicted = ("WorkloadEvictedDueToDeactivated", "The workload is deactivated")
    assert [told(history, name) for name in "abc"] == [evicted, ("", ""), evicted]


def test_pc_074_pods_of_a_group_that_is_not_ready_in_time_say_so_in_the_words_of_their_workload() -> None:
    """One of them is ready no more, which lasts for too long."""
    history = History(shown=False, file="waitForPodsReady: {timeout: 10s}")
    make(history, "a", total=2)
    make(history, "b", total=2)
    until_all_run(history, *"ab")
    history.passes(1.0)
    unready = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    pod: Any = groups.pod(history, "b")
    others = [one for one in pod["status"]["conditions"] if one["type"] != "Ready"]
    history.edit("home", POD, "b", {"status": {"conditions": [*others, unready]}}, "status")
    history.until("they are told", lambda: all(told(history, name)[0] for name in "ab"), 120.0)
    expected = (f"WorkloadEvictedDueTo{says(history, 'Evicted')[1]}", says(history, "Evicted")[2])
    assert [told(history, name) for name in "ab"] == [expected] * 2
    assert says(history, "Evicted")[1] == "PodsReadyTimeout"


@PLACES
def test_pg_34_hd_45_pods_of_a_controller_are_members_and_run_once(queue: str) -> None:
    """PG-34: an operator that makes pods of a group is no job of ours, and its pods are nobody else's."""
    history = History(shown=False)
    for name in "abc":
        make(history, name, queue, seconds=15.0)
        history.edit("home", POD, name, {"metadata": {"ownerReferences": [MAKER]}})
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 120.0)
    assert groups.in_phase(history, "Succeeded") == ["a", "b", "c"]
    assert {one["name"] for one in (theirs(history) or {})["metadata"]["ownerReferences"]} == {"a", "b", "c"}


def version(cluster: SimCluster) -> list[str]:
    """Return the versions of all pods of a cluster."""
    return [each["metadata"]["resourceVersion"] for each in cluster.all(POD)]


@PLACES
def test_pg_35_hd_45_members_that_name_a_job_are_not_written_again_and_again(queue: str) -> None:
    """PG-35: nor is what travels of them told that it is of a Job there."""
    history = History(shown=False)
    for name in "abc":
        make(history, name, queue, labels=OF_JOBS)
    until_all_run(history, *"abc")
    history.passes(5.0)
    clusters = [history.home, *history.workers.values()]
    before = [version(each) for each in clusters]
    history.passes(300.0)
    assert [version(each) for each in clusters] == before
    assert running(history) == ["a", "b", "c"]
    for worker in history.workers.values():
        assert not any(set(OF_JOBS) & set(each["metadata"]["labels"]) for each in worker.all(POD))
