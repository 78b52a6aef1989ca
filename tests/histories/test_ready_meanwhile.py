"""HD-263: a pod that got ready while nobody heard of it runs on, whatever the clock says of PodsReady."""

from __future__ import annotations

import pytest

from gatelift.config import Configuration
from gatelift_kube.values.resources import POD
from support.sim import manager as sim_manager
from support.sim.history import History
from support.sim.world import WORKERS

READY = {"waitForPodsReady": {"enable": True, "timeout": "120s"}}


def placed(monkeypatch: pytest.MonkeyPatch) -> tuple[History, str]:
    """Return a pod that is placed on a worker and not ready, since its node is not there yet, and where."""
    monkeypatch.setattr(sim_manager, "Configuration", lambda: Configuration.model_validate(READY))
    history = History(shown=False)
    for name in WORKERS:
        history.workers[name].cut_node(f"{name}-node", lost=True)
    history.pod("one")
    history.until("it is placed", lambda: history.shows("one", "Admitted"))
    history.passes(10.0)
    return history, (history.workload("one") or {})["status"]["clusterName"]


def uids(history: History, cluster: str) -> list[str]:
    return [each["metadata"]["uid"] for each in history.objects(cluster, POD)]


@pytest.mark.parametrize("seconds", [5.0, 300.0])
def test_hd_263_what_got_ready_while_its_cluster_was_cut_off_runs_on(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """HD-263: it was evicted in the very pass in which its cluster was heard again."""
    history, cluster = placed(monkeypatch)
    history.cut(cluster)
    history.workers[cluster].cut_node(f"{cluster}-node", lost=False)
    history.until("it runs, and nobody hears of it", lambda: history.containers("one") == 1, 100.0)
    before = uids(history, cluster)
    history.passes(seconds)
    history.mend(cluster)
    history.until_connected(cluster)
    history.passes(90.0)
    assert not history.shows("one", "Evicted")
    assert history.shows("one", "PodsReady")
    assert uids(history, cluster) == before
    assert history.containers("one") == 1


@pytest.mark.parametrize("seconds", [5.0, 300.0])
def test_hd_263_what_got_ready_while_no_manager_ran_runs_on(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """HD-263: the outage of managers that stops nothing (`stopAfter`) had it evicted by the next leader."""
    history, cluster = placed(monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(history.world, "start_manager", lambda: None)
        history.kill_leader()
        history.workers[cluster].cut_node(f"{cluster}-node", lost=False)
        history.until("it runs", lambda: history.containers("one") == 1, 100.0)
        before = uids(history, cluster)
        history.passes(seconds)
    history.until("another one leads", history.leads, 60.0)
    history.passes(90.0)
    assert uids(history, cluster) == before
    assert history.containers("one") == 1


def test_hd_263_what_is_not_ready_when_its_cluster_is_back_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-263: its cluster had its time to tell, and the time-out was over before."""
    history, cluster = placed(monkeypatch)
    history.cut(cluster)
    history.passes(300.0)
    history.mend(cluster)
    history.until_connected(cluster)
    history.until("it is evicted", lambda: history.shows("one", "Evicted"), 75.0)
