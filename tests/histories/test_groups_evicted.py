"""Scripted histories: a group at home is evicted, ends by the documents' rules, and comes back once it is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NODE,
    POD,
    RESOURCE_FLAVOR,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
)
from support.manager.builders import a_pod
from support.manager.group_world import GROUP, K
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM
from support.sim.groups_at_home import make, running, says, theirs, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager

WAITING = "WaitingForReplacementPods"


@pytest.fixture(autouse=True)
def with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)


def a_group_that_runs(file: str = "", **more: Any) -> History:
    history = History(shown=False, file=file)
    for name in "abc":
        make(history, name, **more)
    until_all_run(history, *"abc")
    return history


def activate(history: History, *, active: bool) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": active}})


def preempt(history: History) -> None:
    """Have a pod of a higher class want the whole queue."""
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}})
    history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": "p9"}, "value": 9})
    document = a_pod("high").asking(cpu="2").document()
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"] |= {f"{K}queue-name": "stays", f"{K}priority-class": "p9"}
    del document["status"]
    history.home.create(POD, document)


def stop_queue(history: History) -> None:
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "HoldAndDrain"}})


def stop_local_queue(history: History) -> None:
    history.edit("home", LOCAL_QUEUE, "stays", {"spec": {"stopPolicy": "HoldAndDrain"}})


@pytest.mark.parametrize(
    ("evict", "reason"),
    [
        pytest.param(lambda it: activate(it, active=False), "Deactivated", id="PG-26 PG-18 deactivated"),
        pytest.param(preempt, "Preempted", id="PG-26 PG-16 preempted"),
        pytest.param(stop_queue, "ClusterQueueStopped", id="PG-26 its queue is stopped"),
        pytest.param(stop_local_queue, "LocalQueueStopped", id="PG-26 its LocalQueue is stopped"),
    ],
)
def test_pg_26_what_ran_of_a_group_says_why_it_is_ended_and_its_workload_waits_for_as_many_again(
    evict: Callable[[History], None], reason: str
) -> None:
    """PC-023."""
    history = a_group_that_runs(stops_in=10.0)
    before = (theirs(history) or {})["metadata"]["uid"]
    evict(history)
    history.until("it is told", lambda: says(history, "Evicted")[:2] == ("True", reason), 10.0)
    history.until("nothing of it runs", lambda: not set("abc") & set(running(history)), 60.0)
    assert [groups.told_of_end(history, name) for name in "abc"] == [f"WorkloadEvictedDueTo{reason}"] * 3
    history.until("it waits for others", lambda: says(history, WAITING)[:2] == ("True", reason), 10.0)
    history.passes(60.0)
    found = theirs(history) or {}
    assert (found["metadata"]["uid"], groups.held(history)[:3]) == (before, ["a", "b", "c"])
    assert says(history, "QuotaReserved")[0] == "False"


def test_pg_16_a_preempted_group_whose_pods_take_long_to_stop_runs_again_once_it_is_replaced_and_there_is_room() -> (
    None
):
    """Replacements that come early wait for those that leave, and are not taken for too many (#15424)."""
    history = a_group_that_runs(stops_in=20.0, grace=30)
    before = (theirs(history) or {})["metadata"]["uid"]
    preempt(history)
    history.until("it leaves", lambda: says(history, "Evicted")[0] == "True", 10.0)
    for name in "def":
        make(history, name, seconds=20.0)
    assert running(history)[:3] == ["a", "b", "c"]
    history.until("the other one runs", lambda: history.containers("high") == 1, 60.0)
    history.passes(60.0)
    assert set(running(history)) == {"high"}
    assert {"d", "e", "f"} <= set(groups.names(history))
    history.delete("home", POD, "high")
    history.until("it runs again", lambda: running(history) == ["d", "e", "f"], 60.0)
    assert says(history, WAITING)[0] == "", "nobody was missing"
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 60.0)
    assert (theirs(history) or {})["metadata"]["uid"] == before


def test_pg_18_a_group_that_is_evicted_again_waits_for_the_newer_reason() -> None:
    history = a_group_that_runs()
    activate(history, active=False)
    history.until("it waits for others", lambda: says(history, WAITING)[:2] == ("True", "Deactivated"), 30.0)
    activate(history, active=True)
    for name in "def":
        make(history, name)
    history.until("it runs again", lambda: set("def") <= set(running(history)), 60.0)
    assert says(history, WAITING)[0] == "False"
    stop_queue(history)
    history.until("it waits again", lambda: says(history, WAITING)[:2] == ("True", "ClusterQueueStopped"), 30.0)


def test_pg_16_what_succeeded_before_an_eviction_stays_and_is_not_charged_again() -> None:
    """PI-013."""
    history = History(shown=False)
    make(history, "a", seconds=10.0)
    make(history, "b")
    make(history, "c")
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    activate(history, active=False)
    history.until("the others have stopped", lambda: groups.in_phase(history, "Failed") == ["b", "c"], 60.0)
    assert history.leader.charges("stays") == 0
    activate(history, active=True)
    make(history, "d", seconds=20.0)
    history.passes(30.0)
    assert running(history) == [], "one is missing still"
    make(history, "e", seconds=20.0)
    history.until("two run", lambda: running(history) == ["d", "e"], 60.0)
    assert history.leader.charges("stays") == 1000
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 60.0)
    assert history.leader.charges("stays") == 0


def test_what_a_flavor_added_to_a_pod_is_not_what_its_group_asks_for_when_it_comes_back() -> None:
    """HD-305: a pod that was let go is no template of those that are to come: the next flavor may be another one."""
    history = History(shown=False)
    history.edit("home", NODE, "home-node", {"metadata": {"labels": {"kind": "plain"}}})
    history.edit("home", RESOURCE_FLAVOR, "default", {"spec": {"nodeLabels": {"kind": "plain"}}})
    make(history, "a", seconds=10.0)
    make(history, "b")
    make(history, "c")
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    before = (theirs(history) or {})["spec"]["podSets"]
    activate(history, active=False)
    history.until("the others have stopped", lambda: groups.in_phase(history, "Failed") == ["b", "c"], 60.0)
    make(history, "d")
    make(history, "e")
    history.passes(10.0)
    assert (theirs(history) or {})["spec"]["podSets"] == before
