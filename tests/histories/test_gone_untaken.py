"""Scripted histories: a Workload that a leader could never take in is gone, its finalizer taken off by hand."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.rules import kept_owner
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import POD, WORKLOAD
from histories.test_recovery import recovered, say, until_found
from support.on_purpose import Broken
from support.sim.history import History
from support.sim.restoring import backup, restore


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def unreadable(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any] | None) -> Broken:
    """Have one Workload, and none of its name that comes later, raise as it comes in."""
    uid = (found or {})["metadata"]["uid"]
    return Broken(monkeypatch, (kept_owner, "believed"), lambda _core, seen, _known: seen.metadata.uid == uid)


def vanishes(history: History, found: dict[str, Any] | None) -> None:
    """Let a person take the finalizer off a Workload, and delete it."""
    name = (found or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": []}})
    history.delete("home", WORKLOAD, name)


@pytest.mark.parametrize("lost", [False, True], ids=["connected", "lost"])
def test_hd_648_what_it_says_to_be_placed_is_waited_for(monkeypatch: pytest.MonkeyPatch, *, lost: bool) -> None:
    """Nobody remembered where it runs: its pod got another Workload, and ran twice; its charge was never given back."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    found = history.workload("bad")
    broken = unreadable(monkeypatch, found)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.passes(30.0)
    assert broken.raised
    assert history.leader.charges("travels") == 500
    if lost:
        history.cut(cluster)
        history.until_lost(cluster)
    vanishes(history, found)
    history.passes(120.0)
    if lost:
        assert history.runs("bad") == {cluster}, "and nowhere else"
        history.mend(cluster)
    history.until("it runs anew", lambda: history.shows("bad", "Admitted") and history.containers("bad") == 1, 200.0)
    assert history.leader.charges("travels") == 500, "once"
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: history.workload("bad") is None and not history.runs("bad"), 120.0)
    assert history.leader.charges("travels") == 0


def test_hd_647_no_dispatch_waits_for_the_epoch_of_a_workload_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a restore each Workload of the record is raised; of what nobody could read nobody knew that it went."""
    history = History(shown=False)
    history.pod("odd", cpu="9000m")
    history.passes(10.0)
    found = history.workload("odd")
    kept = backup(history)
    history.pod("one")
    history.until_runs("one")
    history.passes(90.0)
    restore(history, kept)
    finding = until_found(history)
    unreadable(monkeypatch, found)
    say(history, finding)
    history.until(
        "a leader can place", lambda: history.leads() and not history.leader.machine.core.caution.halted, 300.0
    )
    history.delete("home", POD, "odd")
    vanishes(history, found)
    history.passes(10.0)
    history.kill_agent("a")  # each list has it looked at how far the recovery has come
    history.passes(60.0)
    assert not history.leader.machine.core.caution.halted
    history.pod("new")
    history.until_runs("new")
    history.until("the recovery is over", lambda: recovered(history))
