"""Scripted histories: an end was not heard, and its agent ends the others by another word than Stopped."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def one_succeeds_unheard(history: History) -> str:
    """Have three run, and one succeed and be removed while nobody hears of it and no agent runs; return where."""
    for name in ABC:
        groups.make(history, name, seconds=10.0 if name == "a" else 0.0, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    history.until("it is shown", lambda: set(groups.phases(history).values()) == {"Running"}, 30.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until("one has succeeded", lambda: groups.run_there(history) == ["b", "c"], 60.0)
    history.kill_agent(cluster, again=False)
    history.edit(cluster, POD, "a", {"metadata": {"finalizers": None}})
    history.delete(cluster, POD, "a")
    return cluster


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_661_who_went_unheard_does_not_run_again_though_its_agent_ended_all_by_itself(
    history: History, *, another_leads: bool
) -> None:
    """It had succeeded, and somebody took its finalizer off while no agent ran; another one was changed meanwhile."""
    cluster = one_succeeds_unheard(history)
    containers = groups.placed(history)["b"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": "750m"}}
    history.edit(cluster, POD, "b", {"spec": {"containers": containers}}, "resize")
    history.until("it is gone", lambda: "a" not in groups.placed(history), 60.0)
    if another_leads:
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
    history.world.start_agent(cluster)
    history.mend(cluster)
    for _ in range(120):
        history.passes(2.0)
        assert groups.cluster_of(history) == cluster or "a" not in groups.placed(history)
    assert groups.phases(history)["a"] == "Failed"


def test_hd_662_nor_where_what_all_came_to_is_too_heavy_for_one_message(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its agent says of each goes ahead then, and its last word names nobody with a status."""
    monkeypatch.setattr("gatelift_wire.values.limits.FRAME_BYTES_TARGET", 900)
    cluster = one_succeeds_unheard(history)
    history.until("it is gone", lambda: "a" not in groups.placed(history), 60.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.world.start_agent(cluster)
    history.mend(cluster)
    history.until("all is given back", lambda: groups.condition(history, "QuotaReserved")[0] == "False", 300.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.passes(60.0)
    assert "a" not in groups.placed(history)
    assert groups.phases(history)["a"] == "Failed"
