"""HD-303: one placement of a cluster cannot be compared with its inventory, since something in the manager raises.

It is set aside: charged, neither stopped nor taken for gone, nor placed a second time. All others are compared, and the
cluster takes new work.
"""

from __future__ import annotations

import pytest

from gatelift.core.conclusions import inventories
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import POD
from support.on_purpose import Broken
from support.sim.history import History
from support.sim.others import REST_SECONDS


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def _uid(history: History, name: str) -> str:
    workload = history.workload(name)
    assert workload is not None
    return str(workload["metadata"]["uid"])


def _begun() -> tuple[History, str]:
    """Return a history in which a pod runs, and where."""
    history = History(shown=False)
    history.pod("bad")
    return history, history.until_runs("bad")


def _raises(history: History, monkeypatch: pytest.MonkeyPatch) -> Broken:
    uid = _uid(history, "bad")
    return Broken(monkeypatch, (inventories, "_compare"), lambda _core, _cluster, one, *_: one == uid)


def _new_work_runs_at(history: History, cluster: str, prefix: str = "good") -> None:
    for number in range(4):
        name = f"{prefix}-{number}"
        history.pod(name, cpu="100m", seconds=200.0)
        history.until(f"{name} runs", lambda name=name: history.containers(name) == 1, 60.0)  # type: ignore[misc]
    assert cluster in {where for number in range(4) for where in history.runs(f"{prefix}-{number}")}


def test_hd_303_its_cluster_takes_new_work_and_what_raises_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = _begun()
    broken = _raises(history, monkeypatch)
    history.kill_agent(cluster)
    history.passes(60.0)
    assert broken.raised
    _new_work_runs_at(history, cluster)
    history.passes(REST_SECONDS)
    assert history.containers("bad") == 1
    assert history.runs("bad") == {cluster}
    session = history.status(cluster)["session"]
    history.passes(1200.0)
    assert history.status(cluster)["session"] - session <= 5, "it is compared anew once in five minutes"
    assert history.containers("bad") == 1
    assert history.leader.charges("travels") == 500


def test_hd_303_what_is_gone_stays_charged_until_it_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = _begun()
    broken = _raises(history, monkeypatch)
    history.kill_agent(cluster, again=False)
    name = history.objects(cluster)[0]["metadata"]["name"]
    history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
    history.delete(cluster, POD, name)
    history.passes(60.0)
    history.world.start_agent(cluster)
    history.passes(900.0)
    assert broken.raised
    assert history.leader.charges("travels") == 500
    assert history.containers("bad") == 0, "nothing is placed anew of what nobody could compare"
    broken.mend()
    history.until("it runs again", lambda: history.containers("bad") == 1, 2 * REST_SECONDS)


def test_hd_303_it_obeys_a_stop_and_is_over_once_it_could_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = _begun()
    broken = _raises(history, monkeypatch)
    history.kill_agent(cluster)
    history.passes(60.0)
    history.delete("home", POD, "bad")
    history.until("it has stopped", lambda: history.containers("bad") == 0, 120.0)
    broken.mend()
    history.until("its Workload is gone", lambda: history.workload("bad") is None, 2 * REST_SECONDS)
    assert history.leader.charges("travels") == 0


def test_hd_303_a_leader_that_takes_over_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    history, cluster = _begun()
    broken = _raises(history, monkeypatch)
    history.kill_leader()
    history.passes(120.0)
    assert broken.raised
    _new_work_runs_at(history, cluster)
    assert history.containers("bad") == 1
    broken.mend()
    history.passes(2 * REST_SECONDS)
    assert history.containers("bad") == 1
    history.delete("home", POD, "bad")
    history.until("its Workload is gone", lambda: history.workload("bad") is None, 120.0)
