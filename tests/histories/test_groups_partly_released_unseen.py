"""Scripted histories: members give their shares back one by one, and one of them vanished while no agent watched."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

PARTIAL = {"gatelift.dev/release": "OnTerminal", "gatelift.dev/release-partial": "true"}


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups, and whose queue takes shares back."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    found = History(shown=False)
    found.edit("home", CLUSTER_QUEUE, "travels", {"metadata": {"annotations": PARTIAL}})
    return found


def _vanishes(history: History) -> None:
    """Have one vanish while no agent runs, from a node that falls silent for a minute, and all be stopped."""
    history.until("all run", lambda: groups.run_there(history) == ["a", "b", "c"], 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.kill_agent(cluster, again=False)
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=True)
    history.edit(cluster, POD, "a", {"metadata": {"finalizers": None}})
    history.cluster(cluster).delete(POD, "a", grace_seconds=0)
    history.until("it is gone", lambda: "a" not in groups.placed(history), 10.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.world.start_agent(cluster)
    history.mend(cluster)
    history.passes(60.0)
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=False)


@pytest.mark.parametrize("large", ["a", "ab"])
def test_hd_664_who_vanished_unseen_gives_no_share_back_whatever_its_pod_set(history: History, large: str) -> None:
    """QR-7, P10: its agent names no pod of its set, or one less, while it runs on, as the account says."""
    for name in "abc":
        long, grace = (230.0, 250) if name == "a" else (95.0, 100)
        groups.make(history, name, cpu="300m" if name in large else "200m", takes=long, grace=grace)
    _vanishes(history)
    history.until("all is free", lambda: history.leader.charges("travels") == 0, 1200.0)


@pytest.mark.parametrize("others", [30, 120])
def test_hd_665_who_vanished_unseen_may_run_for_as_long_as_it_was_given(history: History, others: int) -> None:
    """P10: its agent, which began since, doubted it by 30 s from the return of its node on."""
    for name in "abc":
        groups.make(history, name, takes=100.0 if name == "a" else 5.0, grace=120 if name == "a" else others)
    _vanishes(history)
    history.until("all is free", lambda: history.leader.charges("travels") == 0, 300.0)
