"""HD-260: with `blockAdmission`, who is not ready on a lost cluster keeps nobody else from being admitted."""

from __future__ import annotations

import pytest

from gatelift.config import Configuration
from support.sim import manager as sim_manager
from support.sim.history import History
from support.sim.world import WORKERS

READY = {"waitForPodsReady": {"enable": True, "timeout": "60s", "blockAdmission": True}}


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setattr(sim_manager, "Configuration", lambda: Configuration.model_validate(READY))
    return History(shown=False)


def not_ready(history: History) -> str:
    """Place a pod on a worker whose nodes are slow; return where."""
    for name in WORKERS:
        history.workers[name].cut_node(f"{name}-node", lost=True)
    history.pod("one")
    history.until("it is placed", lambda: history.shows("one", "Admitted"))
    history.passes(5.0)
    cluster: str = (history.workload("one") or {})["status"]["clusterName"]
    for name in WORKERS:
        if name != cluster:
            history.workers[name].cut_node(f"{name}-node", lost=False)
    return cluster


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_260_what_nobody_can_stop_on_a_lost_cluster_keeps_nobody_else_from_admission(
    history: History, queue: str
) -> None:
    """HD-260: nothing was admitted any more anywhere, for as long as that cluster was away."""
    cluster = not_ready(history)
    history.cut(cluster)
    history.until_lost(cluster)
    history.pod("other", queue)
    history.until("another one runs", lambda: history.containers("other") == 1, 300.0)


def test_hd_260_who_may_still_get_ready_is_waited_for(history: History) -> None:
    """HD-260: its cluster is there, and its time is not over."""
    not_ready(history)
    history.pod("other", "stays")
    history.passes(20.0)
    assert history.containers("other") == 0
    assert not history.shows("other", "QuotaReserved")


def test_hd_260_who_is_stopped_for_it_and_cannot_stop_is_not(history: History) -> None:
    """HD-260: its node is away, so that its pod is there for ever: the time-out has ended it."""
    not_ready(history)
    history.pod("other", "stays")
    history.until("another one runs", lambda: history.containers("other") == 1, 600.0)
