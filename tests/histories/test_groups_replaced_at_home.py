"""Scripted histories: a pod of a group at home is replaced while nobody leads, and the next leader lets it go."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.markers import ADMISSION_GATE
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
    assert groups_at_home.gates(history, "b")
    history.home.cut_node("home-node", lost=False)
    history.until("both run", lambda: groups_at_home.running(history) == ["b", "c"], 200.0)


@pytest.mark.parametrize("gone", ["b", "bc", "abc"])
def test_hd_520_nor_do_others_take_slots_of_who_vanished_while_nobody_watched(history: History, gone: str) -> None:
    """P10: the agent that begins then knows nothing of them; who comes waits until every node was heard of."""
    for name in "abc":
        groups_at_home.make(history, name)
    groups_at_home.until_all_run(history, *"abc")
    history.kill_leader()
    history.home.cut_node("home-node", lost=True)
    for name in gone:
        remove_by_force(history, name)
        groups_at_home.make(history, f"{name}2")
    history.until("another leads", history.leads, 60.0)
    history.passes(90.0)
    for name in gone:
        assert groups_at_home.gates(history, f"{name}2")
    history.home.cut_node("home-node", lost=False)
    history.until("all run", lambda: len(groups_at_home.running(history)) == 3, 200.0)


def test_hd_520_who_was_of_them_before_there_was_quota_waits_for_nobody(history: History) -> None:
    """It has its own slot: no node has to be heard of before it is let go, whoever leads."""
    groups_at_home.make(history, "a")
    groups_at_home.make(history, "b")
    groups_at_home.make(history, "c", gates=["example.com/g"])
    groups_at_home.until_all_run(history, "a", "b")
    history.kill_leader()
    history.home.cut_node("home-node", lost=True)
    history.until("another leads", history.leads, 60.0)
    history.edit("home", POD, "c", {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}})
    history.until("it is let go", lambda: not groups_at_home.gates(history, "c"), 15.0)


def test_hd_520_nor_is_one_that_failed_and_was_replaced_a_proof_of_its_slot(history: History) -> None:
    """It is there still, without our finalizer; who had its slot was removed while nobody watched."""
    groups_at_home.make(history, "a")
    groups_at_home.make(history, "b", seconds=3.0, exit_code=1)
    groups_at_home.make(history, "c")
    history.until("one has failed", lambda: groups_at_home.in_phase(history, "Failed") == ["b"], 60.0)
    groups_at_home.make(history, "d")
    groups_at_home.until_all_run(history, *"acd")
    history.until("it is replaced", lambda: groups_at_home.held(history) == ["a", "c", "d"], 30.0)
    history.kill_leader()
    history.home.cut_node("home-node", lost=True)
    remove_by_force(history, "d")
    groups_at_home.make(history, "e")
    history.until("another leads", history.leads, 60.0)
    history.passes(90.0)
    assert groups_at_home.gates(history, "e")


def test_hd_520_where_it_is_known_who_has_each_slot_nobody_waits(history: History) -> None:
    """One runs, one has failed, and one that was there before there was quota has a gate of its user's."""
    groups_at_home.make(history, "a")
    groups_at_home.make(history, "b", seconds=10.0, exit_code=1)
    groups_at_home.make(history, "c", gates=["example.com/g"])
    groups_at_home.until_all_run(history, "a", "b")
    history.kill_leader()
    history.until("one has failed", lambda: groups_at_home.in_phase(history, "Failed") == ["b"], 60.0)
    groups_at_home.make(history, "d")
    history.until("another leads", history.leads, 60.0)
    history.until("another runs", lambda: groups_at_home.running(history) == ["a", "d"], 20.0)
