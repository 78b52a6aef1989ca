"""Scripted histories: what a pod of a group did at its worker, and what home says of that, late or not at all."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


@pytest.mark.parametrize("deposed", [False, True], ids=["the same leader", "another leader"])
def test_hd_510_who_succeeded_and_went_at_its_worker_unheard_keeps_its_place_though_its_user_deletes_it(
    history: History, *, deposed: bool
) -> None:
    """It counted as gone without an end: another one was asked for, which its agent had no slot for, for ever."""
    groups.make(history, "a", seconds=12.0)
    for name in ("b", "c"):
        groups.make(history, name, seconds=200.0)
    history.until("all three run", lambda: groups.run_there(history) == ["a", "b", "c"], 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until("one has succeeded there", lambda: groups.run_there(history) == ["b", "c"], 60.0)
    history.delete(cluster, POD, "a")
    history.until("it has gone there", lambda: "a" not in groups.placed(history), 120.0)
    assert groups.phases(history)["a"] == "Running", "nobody has heard of it"
    history.delete("home", POD, "a")
    history.passes(2.0)
    if deposed:
        history.kill_leader()
    history.mend(cluster)
    history.until("its success is shown", lambda: groups.phases(history).get("a") == "Succeeded", 200.0)
    assert groups.condition(history, "WaitingForReplacementPods")[0] != "True"
    history.until("all is over", lambda: groups.condition(history, "Finished")[0] == "True", 400.0)
    assert groups.condition(history, "Finished")[1:] == ("Succeeded", "Pods succeeded: 3/3")
    history.until("all are let go", lambda: not groups.finalizers(history), 60.0)


def test_hd_517_a_late_write_that_shows_less_takes_no_success_back(history: History) -> None:
    """It counted as gone at once: another pod was asked for, and its quota was charged again."""
    groups.make(history, "a", seconds=5.0)
    for name in ("b", "c"):
        groups.make(history, name)
    history.until("its success is shown", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    history.passes(10.0)
    assert history.leader.charges("travels") == 1000
    history.edit(
        "home", POD, "a", {"status": {"phase": "Running"}}, "status"
    )  # as a write of ours does that lands late
    history.passes(0.05)
    assert history.leader.charges("travels") == 1000
    history.until("it is put right", lambda: groups.phases(history)["a"] == "Succeeded", 30.0)
    assert groups.condition(history, "WaitingForReplacementPods") == ("", "", ""), "nobody was asked for"
