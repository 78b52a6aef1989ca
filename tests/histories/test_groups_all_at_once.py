"""Scripted histories: all pods of a group are deleted at once, wherever they stand, under changing leaders too."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, names, says, theirs
from support.sim.history import History
from support.sim.manager import SimManager

HUNDRED = [f"p{number}" for number in range(100)]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def a_hundred(history: History, cpu: str = "20m") -> None:
    """Have a group of a hundred pods, of which some end by themselves soon and others take long to stop."""
    history.world.judges_shown = False
    for number, name in enumerate(HUNDRED):
        runs, stops = (15.0 if number % 5 == 0 else 0.0), (10.0 if number % 3 == 0 else 0.0)
        make(history, name, total=100, cpu=cpu, seconds=runs, stops_in=stops, exit_code=number % 2, at_once=True)
    history.passes(3.0)


def delete_all(history: History) -> None:
    for name in names(history):
        history.delete("home", POD, name)


def all_is_gone(history: History) -> bool:
    return not names(history) and theirs(history) is None


def until_gone(history: History) -> None:
    history.until("nothing is left", lambda: all_is_gone(history), 180.0)
    history.passes(30.0)
    assert (all_is_gone(history), history.leader.charges("stays")) == (True, 0)


def test_pg_30_a_hundred_that_wait(history: History) -> None:
    a_hundred(history, cpu="900")
    history.until("they wait", lambda: says(history, "QuotaReserved")[0] == "False", 60.0)
    delete_all(history)
    until_gone(history)


@pytest.mark.parametrize("after", [0.0, 0.2, 5.0])
@pytest.mark.parametrize("killed", [False, True], ids=["", "and the leader dies"])
def test_pg_30_a_hundred_as_they_are_let_go_run_and_are_over(history: History, after: float, *, killed: bool) -> None:
    a_hundred(history)
    history.until("it is admitted", lambda: says(history, "Admitted")[0] == "True", 60.0)
    history.passes(after)
    delete_all(history)
    if killed:
        history.passes(0.05)
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    until_gone(history)


def test_pg_30_a_hundred_that_are_being_evicted(history: History) -> None:
    """Who was evicted is deleted already, and kept for who replaces it: its Workload is what a person deletes then."""
    a_hundred(history)
    history.until("they run", lambda: len(groups.running(history)) >= 80, 60.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.passes(2.0)
    delete_all(history)
    history.until("nobody runs", lambda: groups.running(history) == [], 60.0)
    history.until("it waits", lambda: says(history, "WaitingForReplacementPods")[0] == "True", 30.0)
    history.delete("home", WORKLOAD, GROUP)
    until_gone(history)
