"""What a start doubts of what it finds, and of what it does not find (HD-80): nobody here saw what vanished before."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kube.values.resources import JOB, NODE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.limits import GRACE_SECONDS, KUBELET_MARGIN_SECONDS
from support.agent.drivers import Cluster, running_job
from support.agent.stage import Stage
from support.agent.values import KEY, UNSEEN_SECONDS


def _node(stage: Stage, name: str) -> None:
    stage.create(NODE, {"metadata": {"name": name}})
    _beat(stage, name, 0)


def _beat(stage: Stage, name: str, minute: int) -> None:
    """Let a kubelet say that its node is ready."""
    moment = f"2026-11-18T12:{minute:02d}:00Z"
    kind = stage.store.kinds.of(NODE)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": moment}
    body = msgspec.json.encode({"status": {"conditions": [ready]}})
    stage.store.patch(kind, "", name, body, "application/merge-patch+json", stage.now, subresource="status")
    stage.settle()


def _vanish(stage: Stage) -> None:
    """Remove a pod of the Job by force while no agent watches; its controller counts it."""
    pod = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    stage.change(POD, pod, {"metadata": {"finalizers": None}})
    stage.remove(POD, pod, grace=0)
    stage.change(JOB, "j", {"status": {"failed": 1}}, "status")


def _end_pods(stage: Stage, cluster: Cluster) -> None:
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass


def test_hd_80_a_pod_that_its_job_counted_and_nobody_saw_end_is_doubted_until_each_node_was_heard_of() -> None:
    stage, cluster = running_job()
    _node(stage, "node-1")
    _node(stage, "node-2")
    stage.crash()
    _vanish(stage)
    stage.start()
    stage.confirm()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    _end_pods(stage, cluster)
    stage.pass_seconds(UNSEEN_SECONDS + 1.0)
    _beat(stage, "node-1", 1)
    stage.pass_seconds(60.0)
    _beat(stage, "node-1", 2)
    stage.pass_seconds(60.0)
    assert stage.peer.of(m.Stopped) == []
    _beat(stage, "node-2", 3)
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_hd_132_a_pod_that_its_job_did_not_count_is_doubted_until_each_node_was_heard_of() -> None:
    """Its finalizer was taken off by hand, and its Job waits for pods to end: it counts nothing."""
    stage, cluster = running_job()
    _node(stage, "node-1")
    stage.crash()
    pod = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    stage.change(POD, pod, {"metadata": {"finalizers": None}})
    stage.remove(POD, pod, grace=0)
    stage.start()
    stage.confirm()
    stage.change(JOB, "j", {"status": {"succeeded": 1}}, "status")
    stage.pass_seconds(5.0)
    assert stage.peer.of(m.CountsReport)[-1].reclaimable == ()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    _end_pods(stage, cluster)
    stage.pass_seconds(UNSEEN_SECONDS + 60.0)
    assert stage.peer.of(m.Stopped) == []
    _beat(stage, "node-1", 1)
    stage.pass_seconds(60.0)
    _beat(stage, "node-1", 2)
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_a_job_all_of_whose_pods_are_there_is_not_doubted_after_a_restart() -> None:
    stage, cluster = running_job()
    _node(stage, "node-1")
    stage.restart()
    stage.confirm()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    _end_pods(stage, cluster)
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_hd_80_pods_of_a_job_that_is_gone_are_doubted_as_a_whole() -> None:
    stage, cluster = running_job()
    _node(stage, "node-1")
    stage.crash()
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    stage.remove(JOB, "j")
    stage.start()
    stage.confirm()
    _end_pods(stage, cluster)
    stage.pass_seconds(UNSEEN_SECONDS + 60.0)
    assert stage.peer.of(m.Evicted) == []
    _beat(stage, "node-1", 1)
    stage.pass_seconds(1.0)
    _beat(stage, "node-1", 2)
    stage.pass_seconds(1.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_80_what_vanished_unseen_is_not_given_back_while_it_may_run() -> None:
    stage, _ = running_job()
    _node(stage, "node-1")
    stage.crash()
    _vanish(stage)
    stage.start()
    stage.confirm()
    stage.change(JOB, "j", {"status": {"succeeded": 1, "failed": 1}}, "status")
    stage.pass_seconds(5.0)
    assert stage.peer.of(m.CountsReport)[-1].reclaimable == ()


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "gone"])
def test_hd_270_a_pod_that_its_job_has_noted_before_its_own_end_is_seen_takes_nothing_back(is_there: bool) -> None:
    """HD-270: the symptom: what was given back, and used by others by then, was charged again for that moment."""
    stage, _ = running_job()
    _node(stage, "node-1")
    [first, second] = (pod["metadata"] for pod in stage.store.look_all(("", "pods")))
    stage.change(JOB, "j", {"status": {"succeeded": 1}}, "status")
    stage.finish(first["name"])
    stage.restart()
    stage.confirm()
    noted = second["uid"] if is_there else "of-one-that-nobody-saw"
    stage.change(JOB, "j", {"status": {"uncountedTerminatedPods": {"succeeded": [noted]}}}, "status")
    stage.pass_seconds(2.0)
    assert stage.pod(second["name"])["status"]["phase"] == "Running"
    given_back = [said.reclaimable for said in stage.peer.of(m.CountsReport)]
    assert given_back[-1] == ((("main", 1),) if is_there else ())


@pytest.mark.parametrize("nodes", [(), ("node-1",)], ids=["no node", "a node"])
def test_hd_80_absence_is_said_to_prove_nothing_until_each_node_was_heard_of(nodes: tuple[str, ...]) -> None:
    stage = Stage()
    for name in nodes:
        _node(stage, name)
    stage.start()
    assert stage.peer.unheard == [True]
    stage.pass_seconds(UNSEEN_SECONDS + 5.0)
    if nodes:
        assert stage.peer.of(m.Capacity)[-1].unheard
        _beat(stage, "node-1", 1)
        _beat(stage, "node-1", 2)
        stage.pass_seconds(2.0)
    assert not stage.peer.of(m.Capacity)[-1].unheard
    stage.cut_stream()
    stage.mend(resume=False)
    assert stage.peer.unheard == [True, False]
    stage.restart()
    assert stage.peer.unheard == [True, False, True]


def test_a_longer_grace_of_a_jobs_pods_is_doubted_for_longer() -> None:
    stage = Stage()
    stage.start()
    nodes = stage.machine.world.nodes
    assert nodes.before(5.0) == nodes.before(GRACE_SECONDS)
    long = nodes.before(600.0)
    began = stage.now
    assert nodes.may_run(long, began + GRACE_SECONDS + KUBELET_MARGIN_SECONDS)
    assert nodes.may_run(long, began + 600.0 + KUBELET_MARGIN_SECONDS - 10.0)
    assert not nodes.may_run(long, began + 960.0 + KUBELET_MARGIN_SECONDS)
    assert nodes.before(1e18) == nodes.before(1e19)
