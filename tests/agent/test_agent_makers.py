"""HD-45. Whose a pod is: what is placed is known by name and UID, a Job's pods by the Job that controls them."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import Delete, Patch
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC, UNSEEN_SECONDS

GATE = {"name": "kueue.x-k8s.io/admission"}
CONTROLLERS = [("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("example.com/v1", "Operator")]
"""Controllers whose pods are queued one by one: a Job of this list is not queued itself."""


def _controlled(api_version: str, kind: str, name: str = "maker", uid: str = "uid-maker") -> list[dict[str, Any]]:
    return [{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": True}]


def _local(owners: list[dict[str, Any]], **labels: str) -> Stage:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    meta = {
        "name": "p",
        "namespace": NAMESPACE_NAME,
        "labels": {"kueue.x-k8s.io/managed": "true", **labels},
        "finalizers": ["kueue.x-k8s.io/managed"],
        "ownerReferences": owners,
    }
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": [GATE]}})
    stage.settle()
    return stage


@pytest.mark.parametrize(("api_version", "kind"), CONTROLLERS)
def test_hd_45_a_queued_pod_that_a_controller_made_is_let_go_and_followed_to_its_end(
    api_version: str, kind: str
) -> None:
    labels = {"batch.kubernetes.io/job-name": "maker", "job-name": "maker"} if kind == "Job" else {}
    stage = _local(_controlled(api_version, kind), **labels)
    stage.place()
    assert (stage.state(), stage.peer.of(m.Refused)) == ("Running", [])
    stage.run()
    stage.restart()
    assert stage.state() == "Running"
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


@pytest.mark.parametrize("prefix", ["", "batch.kubernetes.io/"])
def test_hd_45_a_placed_pod_that_names_a_job_in_its_labels_is_made_once_and_runs(prefix: str) -> None:
    stage = Stage()
    stage.start()
    labels = {f"{prefix}job-name": "other", f"{prefix}controller-uid": "uid-other"}
    stage.place(metadata={"labels": labels})
    assert stage.state() == "Running"
    assert len(stage.written(object)) == 2, "created and let go, by one write each"
    stage.run()
    stage.restart()
    assert stage.state() == "Running"
    stage.confirm()
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


def test_hd_45_a_placed_pod_that_a_controller_adopts_stays_the_placements() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.change(POD, "p", {"metadata": {"ownerReferences": _controlled("apps/v1", "ReplicaSet")}})
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Stopped)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.document(POD, "p") is None


def test_hd_45_a_pod_with_our_labels_that_another_job_made_holds_up_no_stop() -> None:
    stage = Stage()
    stage.start()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    labels = {f"gatelift.dev/{name}": value for name, value in _labels().items()}
    meta = {
        "name": "alien",
        "namespace": NAMESPACE_NAME,
        "labels": labels,
        "ownerReferences": _controlled(*CONTROLLERS[1]),
    }
    stage.create(POD, {"metadata": meta, "spec": dict(POD_SPEC)})
    stage.pass_seconds(2.0)
    [counts] = stage.peer.of(m.CountsReport)[-1].pod_sets
    assert counts.active == 2
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    for pod in stage.store.look_all(("", "pods")):
        if pod["metadata"]["name"] != "alien":
            stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass
    stage.pass_seconds(10.0)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert stage.written(Delete, POD) == []


def _labels() -> dict[str, str]:
    return {"origin": "origin-1", "workload-uid": KEY.uid, "epoch": str(KEY.epoch)}


def test_hd_45_pods_of_a_job_that_is_gone_are_waited_for_after_a_restart_with_and_without_an_owner() -> None:
    for orphaned in (False, True):
        stage = Stage()
        stage.start()
        cluster = Cluster(stage, finishes=False)
        stage.place(kind="Job", name="j")
        while cluster.react():
            pass
        uid = stage.job()["metadata"]["uid"]
        stage.crash()
        stage.change(JOB, "j", {"metadata": {"finalizers": None}})
        stage.remove(JOB, "j")
        for pod in stage.store.look_all(("", "pods")):
            labels = {"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/controller-uid": uid}
            changed: dict[str, Any] = {"labels": labels}
            stage.change(
                POD,
                pod["metadata"]["name"],
                {"metadata": {**changed, **({"ownerReferences": None} if orphaned else {})}},
            )
        stage.start()
        stage.confirm()
        assert stage.peer.of(m.Evicted) == []
        stage.pass_seconds(15.0)
        assert all(pod["metadata"].get("deletionTimestamp") for pod in stage.store.look_all(("", "pods")))
        assert stage.peer.of(m.Evicted) == []
        while cluster.react():
            pass
        stage.pass_seconds(UNSEEN_SECONDS)
        assert len(stage.peer.of(m.Evicted)) == 1, f"orphaned: {orphaned}"
        assert stage.written(Patch, POD) == []


def test_hd_45_a_job_of_a_name_is_made_when_the_pods_of_the_one_before_have_stopped() -> None:
    """The object may be gone while its pods still stop; a Job that its user made anew has another Workload."""
    stage = Stage()
    stage.start()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    stage.remove(JOB, "j")
    assert stage.document(JOB, "j") is None
    again = PlacementKey("w-2", 1)
    stage.place(again, kind="Job", name="j")
    stage.pass_seconds(5.0)
    assert (stage.document(JOB, "j"), stage.state(again)) == (None, "Applying")
    while cluster.react():
        pass
    assert stage.peer.of(m.Refused) == []
    assert stage.state(again) == "Running"
