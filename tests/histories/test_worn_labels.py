"""HD-43 on both real cores: labels of ours on what was never placed, and orphans, when everybody starts anew."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER
from support.sim.cluster import TEAM
from support.sim.history import History

ORIGIN = "origin-1"


def wear(history: History, cluster: str, uid: str, epoch: int, **more: str) -> dict[str, Any]:
    """Let a tenant make a pod that wears the labels of a placement; return it as it was made."""
    labels = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": uid, "gatelift.dev/epoch": str(epoch)}
    meta = {"name": "tenants", "namespace": TEAM, "labels": {**labels, **more}}
    history.cluster(cluster).create(POD, {"metadata": meta, "spec": {"containers": [{"name": "m", "image": "i"}]}})
    (made,) = [each for each in history.objects(cluster) if each["metadata"]["name"] == "tenants"]
    return made


def runs(history: History, name: str, cluster: str) -> bool:
    """Say whether a pod of this name runs in a cluster."""
    found = [each for each in history.objects(cluster) if each["metadata"]["name"] == name]
    return any(each.get("status", {}).get("phase") == "Running" for each in found)


def starts(history: History, name: str, queue: str) -> str:
    """Let a user create a pod, wait until it runs, and return where."""
    history.pod(name, queue)
    history.until(f"{name} runs", lambda: any(runs(history, name, cluster) for cluster in history.runs(name)))
    (cluster,) = history.runs(name)
    return cluster


@pytest.mark.parametrize("epoch", [1, 7], ids=["the same epoch", "a later epoch"])
@pytest.mark.parametrize("queue", ["travels", "stays"])
@pytest.mark.parametrize("orphan", [False, True], ids=["a pod", "an orphan of a Job"])
def test_hd_43_a_tenants_pod_with_our_labels_holds_nobody(queue: str, epoch: int, orphan: bool) -> None:
    history = History(shown=False)
    cluster = starts(history, "one", queue)
    workload = history.workload("one")
    assert workload is not None
    more = {"batch.kubernetes.io/job-name": "gone", "batch.kubernetes.io/controller-uid": "u"} if orphan else {}
    made = wear(history, cluster, workload["metadata"]["uid"], epoch, **more)
    history.until("the tenant's pod runs", lambda: runs(history, "tenants", cluster))
    if cluster != "local":
        history.kill_agent(cluster)
        (other,) = history.workers.keys() - {cluster}
        history.edit("home", WORKER_CLUSTER, other, {"spec": {"cordoned": True}})
    history.kill_leader()
    history.passes(90.0)
    assert history.runs("one") == {cluster}
    assert runs(history, "one", cluster)
    assert starts(history, "more", queue) == cluster, "it gets new work"
    if orphan:
        return  # what looks like an orphan of ours in everything is ended like one
    left = [each for each in history.objects(cluster) if each["metadata"]["name"] == "tenants"]
    assert [each["metadata"]["uid"] for each in left] == [made["metadata"]["uid"]], "it is left alone"
    assert "deletionTimestamp" not in left[0]["metadata"]


def test_hd_43_orphans_of_a_job_are_charged_until_they_have_ended_also_after_restarts() -> None:
    history = History()
    history.job("many", pods=2, stops_in=20.0)
    cluster = history.until_runs("many", "Job")
    history.until("both run", lambda: history.containers("many", "Job") == 2)
    worker = history.workers[cluster]
    history.agent(cluster).kill()
    worker.delete(JOB, "many", propagation="Orphan")
    for pod in history.objects(cluster):
        history.edit(cluster, POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    history.edit(cluster, JOB, "many", {"metadata": {"finalizers": None}})
    history.world.start_agent(cluster)
    history.kill_leader()
    history.until(
        "it runs again", lambda: history.containers("many", "Job") == 2 and bool(worker.all(JOB) or other_runs(history))
    )


def other_runs(history: History) -> bool:
    return any(worker.all(JOB) for worker in history.workers.values())
