"""What the manager grants and adds with a commit reaches the pods: checks' updates, and fewer pods of a Job at home."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.objects.kueue import ResourceFlavor, ResourceFlavorSpec
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME, POD_SPEC

WANTED = {
    "labels": {"team": "x"},
    "annotations": {"example.com/reservation": "r1"},
    "nodeSelector": {"pool": "reserved"},
    "tolerations": [{"key": "reserved", "operator": "Exists"}],
}


def started(mode: AgentMode = AgentMode.REMOTE) -> Stage:
    stage = Stage(mode=mode)
    stage.start()
    return stage


def sets(additions: Any = None, count: int = 1) -> tuple[m.PodSetRequest, ...]:
    content = json.dumps(additions).encode() if additions is not None else b""
    return (m.PodSetRequest(name="main", count=count, requests=(("cpu", 1),), additions=content),)


def carries(metadata: Any, spec: Any) -> None:
    """Check that a pod (or a template) has what was wanted."""
    assert metadata["labels"]["team"] == "x"
    assert metadata["annotations"]["example.com/reservation"] == "r1"
    assert spec["nodeSelector"]["pool"] == "reserved"
    assert {"key": "reserved", "operator": "Exists"} in spec["tolerations"]


def user_pod(stage: Stage) -> None:
    meta = {"name": "p", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/managed": "true"}}
    gate = {"name": "kueue.x-k8s.io/admission"}
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": [gate]}})
    stage.settle()


def user_job(stage: Stage, **annotations: str) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "queue"}
    meta = {"name": "j", "namespace": NAMESPACE_NAME, "labels": labels, "annotations": annotations}
    stage.create(JOB, {"metadata": meta, "spec": {**JOB_SPEC, "parallelism": 5, "completions": 8}})
    stage.settle()


def stop_job(stage: Stage) -> None:
    """Stop the Job and let its controller and pods follow."""
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass
    assert len(stage.peer.of(m.Stopped)) == 1


def test_a_workers_pod_has_what_checks_want() -> None:
    stage = started()
    stage.place(pod_sets=sets(WANTED))
    carries(stage.pod()["metadata"], stage.pod()["spec"])


def test_a_workers_job_has_it_in_its_template() -> None:
    stage = started()
    stage.place(kind="Job", name="j", spec=JOB_SPEC, pod_sets=sets(WANTED, count=5))
    template = stage.job()["spec"]["template"]
    carries(template["metadata"], template["spec"])


def test_the_users_own_pod_gets_it_with_the_lift() -> None:
    stage = started(AgentMode.LOCAL)
    user_pod(stage)
    stage.place(pod_sets=sets(WANTED))
    assert stage.pod()["spec"].get("schedulingGates", []) == []
    carries(stage.pod()["metadata"], stage.pod()["spec"])


def test_the_users_own_job_gets_it_and_is_as_before_after_a_stop() -> None:
    stage = started(AgentMode.LOCAL)
    user_job(stage)
    before = stage.job()["spec"]["template"]
    stage.place(kind="Job", name="j", pod_sets=sets(WANTED, count=5))
    template = stage.job()["spec"]["template"]
    carries(template["metadata"], template["spec"])
    stop_job(stage)
    assert stage.job()["spec"]["template"]["spec"] == before["spec"]
    assert "example.com/reservation" not in (stage.job()["spec"]["template"]["metadata"].get("annotations") or {})


def test_the_users_own_job_runs_as_many_pods_as_were_granted_and_asks_for_all_after_a_stop() -> None:
    stage = started(AgentMode.LOCAL)
    user_job(stage, **{"kueue.x-k8s.io/job-min-parallelism": "2"})
    stage.place(kind="Job", name="j", pod_sets=sets(count=3))
    assert (stage.job()["spec"]["suspend"], stage.job()["spec"]["parallelism"]) == (False, 3)
    stop_job(stage)
    assert (stage.job()["spec"]["suspend"], stage.job()["spec"]["parallelism"]) == (True, 5)
    assert "gatelift.dev/parallelism-before" not in stage.job()["metadata"]["annotations"]


@pytest.mark.parametrize("additions", [{"labels": ["x"]}, {"nodeSelector": "pool"}, {"tolerations": {"key": "x"}}])
def test_additions_of_another_shape_are_refused(additions: Any) -> None:
    stage = started()
    stage.place(pod_sets=sets(additions))
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.INVALID
    assert refused.text.startswith("pod set main: additions")


def test_a_check_that_contradicts_a_flavor_is_refused_and_ends_nothing_else() -> None:
    stage = started()
    spec = ResourceFlavorSpec(node_labels={"pool": "spot"})
    stage.machine.world.flavors["spot"] = ResourceFlavor(metadata=ObjectMeta(name="spot"), spec=spec)
    content = json.dumps({"nodeSelector": {"pool": "reserved"}}).encode()
    asked = m.PodSetRequest(name="main", count=1, flavors=(("cpu", "spot"),), additions=content)
    stage.place(pod_sets=(asked,))
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.INVALID
    stage.send(m.Forget(key=KEY))
    stage.place(key=type(KEY)(KEY.uid, KEY.epoch + 1), pod_sets=sets(WANTED))
    carries(stage.pod()["metadata"], stage.pod()["spec"])
