"""Scripted histories: a pod of a group at home is replaced while nobody leads, and the next leader lets it go."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from support.sim import groups_at_home
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def runs(history: History) -> None:
    """Have a group of three run at home, of which the first pod has succeeded."""
    groups_at_home.make(history, "a", seconds=3.0)
    groups_at_home.make(history, "b")
    groups_at_home.make(history, "c")
    history.until("one has succeeded", lambda: groups_at_home.in_phase(history, "Succeeded") == ["a"], 60.0)


def not_said_yet(history: History, *, fails: bool = False) -> None:
    """Have a group run at home of which `a` has succeeded, and another lead that may not say anything yet.

    `fails`: and `b` has failed.
    """
    groups_at_home.make(history, "a", seconds=3.0)
    groups_at_home.make(history, "b", seconds=3.0 * fails, exit_code=1)
    groups_at_home.make(history, "c")
    history.until("one has succeeded", lambda: groups_at_home.in_phase(history, "Succeeded") == ["a"], 60.0)
    if fails:
        history.until("one has failed", lambda: groups_at_home.in_phase(history, "Failed") == ["b"], 60.0)
    history.cut("b")
    history.kill_leader()  # the next one waits for who it cannot reach before it says anything
    history.until("another leads", history.leads, 60.0)
    history.passes(10.0)


def remove_by_force(history: History, name: str) -> None:
    history.edit("home", POD, name, {"metadata": {"finalizers": None}})
    history.home.delete(POD, name, grace_seconds=0)


@pytest.mark.parametrize("name", ["b", "d"])
@pytest.mark.parametrize("behind", [False, True])
def test_hd_474_who_comes_before_a_new_leader_may_say_so_is_let_go_beside_one_that_succeeded(
    history: History, name: str, *, behind: bool
) -> None:
    """PG-7, PG-31: also under the name of the one that it replaces, and where its agent sees it later (`behind`)."""
    not_said_yet(history, fails=True)
    history.delete("home", POD, "b")
    history.until("it is gone", lambda: groups_at_home.pod(history, "b") is None, 10.0)
    history.passes(2.0)
    if behind:
        for watch in history.leader.local._namespace_watches[""]:
            watch.stall(90.0)
    groups_at_home.make(history, name)
    history.until("both run", lambda: groups_at_home.running(history) == sorted(["c", name]), 150.0)


def test_hd_475_not_before_the_one_that_had_its_name_can_run_no_more(history: History) -> None:
    """P10: containers run on that were removed by force from a node that nobody hears of."""
    not_said_yet(history)
    history.home.cut_node("home-node", lost=True)
    remove_by_force(history, "b")
    groups_at_home.make(history, "b")
    history.passes(90.0)
    assert (groups_at_home.pod(history, "b") or {})["spec"].get("schedulingGates")
    history.home.cut_node("home-node", lost=False)
    history.until("both run", lambda: groups_at_home.running(history) == ["b", "c"], 200.0)
