"""Scripted histories: a group at home ends with its Workload, or by itself, under changing leaders too."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, names, says, theirs, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager

KEPT = "example.com/kept"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def all_is_gone(history: History) -> bool:
    return not names(history) and theirs(history) is None


def test_pg_15_26_a_groups_pods_say_that_they_end_with_their_workload_also_those_that_succeeded(
    history: History,
) -> None:
    """PC-044, PC-116."""
    make(history, "a", seconds=10.0)
    make(history, "b", stops_in=5.0)
    make(history, "c", stops_in=20.0, grace=60)
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    for name in "abc":
        history.edit("home", POD, name, {"metadata": {"finalizers": [f"{K}managed", KEPT]}})
    history.delete("home", WORKLOAD, GROUP)
    history.passes(10.0)
    assert (groups.running(history), theirs(history) is None) == (["c"], False)
    assert "deletionTimestamp" not in (groups.pod(history, "a") or {})["metadata"], "nothing goes before all have ended"
    history.until("ours are off", lambda: groups.held(history) == [], 60.0)
    assert [groups.told_of_end(history, name) for name in "abc"] == ["WorkloadDeleted"] * 3
    history.until(
        "its Workload goes: nobody says for how long others keep its pods (HD-642)", lambda: theirs(history) is None
    )
    history.passes(30.0)
    assert (theirs(history), len(names(history))) == (None, 3), "and none is made anew"
    for name in "abc":
        history.edit("home", POD, name, {"metadata": {"finalizers": []}})
    history.until("all is gone", lambda: all_is_gone(history), 30.0)
    history.passes(60.0)
    assert (all_is_gone(history), history.leader.charges("stays")) == (True, 0)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_pg_15_a_group_that_waits_goes_with_its_workload(history: History, queue: str) -> None:
    for name in "abc":
        make(history, name, queue, cpu="900")
    history.until("it waits", lambda: says(history, "QuotaReserved")[0] == "False", 30.0)
    history.delete("home", WORKLOAD, GROUP)
    history.until("all is gone", lambda: all_is_gone(history), 60.0)
    history.passes(60.0)
    assert all_is_gone(history)


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.08, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits"])
def test_hd_306_pg_15_31_another_leader_ends_what_the_one_before_it_has_begun_to(
    history: History, after: float, *, waits: bool
) -> None:
    for name in "abc":
        make(history, name, stops_in=1.0, cpu="900" if waits else "500m")
    if not waits:
        until_all_run(history, *"abc")
    history.delete("home", WORKLOAD, GROUP)
    history.passes(after)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.until("all is gone", lambda: all_is_gone(history), 120.0)


def test_pg_15_a_finished_groups_pods_stay_when_its_workload_is_deleted(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=5.0)
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 60.0)
    history.delete("home", WORKLOAD, GROUP)
    history.passes(60.0)
    assert (names(history), theirs(history), groups.held(history)) == (["a", "b", "c"], None, [])


@pytest.mark.parametrize("step", range(10))
def test_pg_15_a_workload_that_is_deleted_as_its_group_comes_to_its_end_is_not_made_anew(
    history: History, step: int
) -> None:
    for name in "abc":
        make(history, name, seconds=10.0)
    until_all_run(history, *"abc")
    history.until("all have succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a", "b", "c"], 60.0)
    history.passes(step * 0.01)
    history.delete("home", WORKLOAD, GROUP)
    history.until("it is gone", lambda: theirs(history) is None, 30.0)
    history.passes(60.0)
    assert (theirs(history), groups.held(history)) == (None, [])


def test_pg_14_a_group_of_which_some_failed_for_good_is_failed_with_numbers(history: History) -> None:
    never = {f"{K}retriable-in-group": "false"}
    make(history, "a", seconds=5.0, notes=never)
    make(history, "b", seconds=5.0, exit_code=1, notes=never)
    make(history, "c", seconds=15.0, exit_code=1, notes=never)
    history.until("it is over", lambda: says(history, "Finished")[0] == "True", 60.0)
    assert says(history, "Finished")[1:] == ("Failed", "Pods succeeded: 1/3, failed: 2")
    history.until("all are let go", lambda: groups.held(history) == [], 30.0)


def test_hd_652_a_group_that_has_finished_asks_for_no_pods_any_more(history: History) -> None:
    """HD-652. It did so while it ran; who would obey was told by an event that his pod came too late."""
    for name in "abc":
        make(history, name, seconds=5.0, exit_code=0 if name == "a" else 1)
    history.until("it asks for others", lambda: says(history, "WaitingForReplacementPods")[0] == "True", 60.0)
    history.edit("home", POD, "b", {"metadata": {"annotations": {f"{K}retriable-in-group": "false"}}})
    history.until("it is over", lambda: says(history, "Finished")[0] == "True", 60.0)
    said = says(history, "WaitingForReplacementPods")
    assert said == ("False", "Failed", "The group has finished: nobody is replaced any more")


def test_pg_21_a_serving_group_does_not_finish_and_keeps_its_pods(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=5.0, notes={f"{K}pod-group-serving": "true"})
    history.until("all have succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a", "b", "c"], 60.0)
    history.passes(60.0)
    assert (says(history, "Finished")[0], groups.held(history)) == ("", ["a", "b", "c"])
