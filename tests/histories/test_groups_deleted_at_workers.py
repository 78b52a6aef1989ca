"""Scripted histories: all pods of a group at a worker are deleted, and its agent or its manager dies meanwhile."""

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


@pytest.mark.parametrize("dies", ["agent", "leader", "both"])
@pytest.mark.parametrize("takes", [0.0, 3.0])
@pytest.mark.parametrize("step", [0, 1, 4, 20])
@pytest.mark.parametrize("at", [0.0, 5.0])
def test_hd_398_pg_30_all_of_a_group_at_a_worker_are_deleted_and_somebody_dies(
    history: History, dies: str, takes: float, step: int, at: float
) -> None:
    for name in "abc":
        groups.make(history, name, takes=takes)
    history.passes(at)
    cluster = groups.cluster_of(history) or "a"
    for name in "abc":
        history.delete("home", POD, name)
        history.passes(0.02)
    history.passes(step / 10)
    if dies != "leader":
        history.kill_agent(cluster)
    if dies != "agent":
        history.kill_leader()
    history.until("nothing is left", lambda: not groups.names(history) and not groups.placed(history), 600.0)
