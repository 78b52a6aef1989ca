"""HD-259 on both real cores: a worker's namespace is deleted, and our rights go before all that we hold there."""

from __future__ import annotations

import pytest

from gatelift_kinds.shared.pod_trouble import CONDITION, NAMESPACE_GOES
from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD, WORKLOAD
from gatelift_wire.values.keys import FINALIZER_REPORT
from histories.test_absence import KUBELET_IS_HEARD_SECONDS, refuse_pods
from support.sim.cluster import TEAM
from support.sim.history import History


def condition(history: History, kind: str) -> dict[str, str]:
    workload = history.workload("one", kind) or {}
    found = workload.get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == CONDITION), {})


def held(history: History, cluster: str, kind: str) -> bool:
    """Say whether our finalizer keeps what was placed there."""
    found = history.objects(cluster, JOB if kind == "Job" else POD)
    return any(FINALIZER_REPORT in each["metadata"].get("finalizers", []) for each in found)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("restarts", [False, True], ids=["goes on", "its agent restarts"])
def test_hd_259_work_of_a_namespace_that_our_finalizer_keeps_runs_elsewhere(
    kind: str, restarts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    elsewhere = next(name for name in history.workers if name != cluster)
    refuse_pods(history, cluster, WriteError.FORBIDDEN, monkeypatch)
    history.workers[cluster].delete(NAMESPACE, TEAM)
    if restarts:
        history.passes(20.0)
        history.kill_agent(cluster)
        refuse_pods(history, cluster, WriteError.FORBIDDEN, monkeypatch)
    history.until("it runs elsewhere", lambda: elsewhere in history.runs("one", kind), KUBELET_IS_HEARD_SECONDS)
    assert history.containers("one", kind) <= 1
    assert held(history, cluster, kind), "nobody has let us take it off"
    assert history.workers[cluster].look(NAMESPACE, TEAM, "") is not None
    history.passes(1200.0)
    assert history.containers("one", kind) == 1
    workload = history.workload("one", kind)
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it is charged no more", lambda: not history.shows("one", "QuotaReserved", kind), 300.0)


@pytest.mark.parametrize("stopped", [False, True], ids=["it ran", "it was being stopped"])
def test_hd_259_a_job_that_may_run_on_there_stays_charged_and_says_so_at_home(
    stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(shown=False)
    history.job("one")
    cluster = history.until_runs("one", "Job")
    worker = history.workers[cluster]
    worker.cut_node(worker.all(NODE)[0]["metadata"]["name"], lost=True)
    refuse_pods(history, cluster, WriteError.FORBIDDEN, monkeypatch)
    if stopped:
        name = (history.workload("one", "Job") or {})["metadata"]["name"]
        history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
        history.passes(10.0)
    worker.delete(NAMESPACE, TEAM)
    history.until("it is said", lambda: condition(history, "Job").get("reason") == NAMESPACE_GOES, 120.0)
    said = condition(history, "Job")["message"]
    assert f"namespace {TEAM} is being deleted there" in said
    assert f"kubectl -n {TEAM} patch job one" in said
    history.passes(KUBELET_IS_HEARD_SECONDS)
    assert history.runs("one", "Job") == {cluster}
    assert history.shows("one", "QuotaReserved", "Job")
