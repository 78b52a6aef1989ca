"""A pod that was let go and vanished before it was seen on a node (HD-47): perhaps it was bound behind a slow watch."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.watched.nodes import OUT_OF_SERVICE, Nodes
from gatelift_kube.deciding.writes import Delete, Patch
from gatelift_kube.objects.core import Node, NodeSpec, Taint
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import NODE, POD
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.values import messages as m
from gatelift_wire.values.limits import KUBELET_MARGIN_SECONDS
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC

SURE = 30.0 + KUBELET_MARGIN_SECONDS
NAMES = ("node-1", "node-2")


def _node(name: str, heartbeat: str, taint: str = "") -> tuple[Node, bytes]:
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}]
    taints = (Taint(key=taint, effect="NoExecute"),) if taint else ()
    node = Node(metadata=ObjectMeta(name=name), spec=NodeSpec(taints=taints))
    return node, msgspec.json.encode({"status": {"conditions": conditions}})


def _nodes(*names: str) -> Nodes:
    nodes = Nodes()
    for name in names:
        nodes.seen(*_node(name, "t0"), 0.0)
    nodes.synced()
    nodes.vanished("u", "", 30.0, 0.0)
    return nodes


def test_hd_47_every_node_has_to_be_heard_of_after_grace_and_margin() -> None:
    nodes = _nodes(*NAMES)
    for name in NAMES:
        nodes.seen(*_node(name, "t1"), 10.0)
    assert nodes.may_run("u", SURE - 1.0)
    assert nodes.may_run("u", SURE)
    nodes.seen(*_node("node-1", "t2"), SURE + 1.0)
    assert nodes.may_run("u", SURE + 1.0)
    nodes.seen(*_node("node-2", "t2"), SURE + 2.0)
    assert not nodes.may_run("u", SURE + 2.0)


def test_hd_47_a_node_that_is_gone_or_out_of_service_is_not_waited_for() -> None:
    nodes = _nodes(*NAMES, "node-3")
    assert nodes.may_run("u", SURE)
    nodes.gone("node-1")
    nodes.seen(*_node("node-2", "t0", OUT_OF_SERVICE), SURE + 1.0)
    assert nodes.may_run("u", SURE + 1.0)
    nodes.seen(*_node("node-3", "t1"), SURE + 2.0)
    assert not nodes.may_run("u", SURE + 2.0)


def test_hd_47_a_node_that_is_seen_late_is_waited_for() -> None:
    """The watch of nodes may be as late as that of pods."""
    nodes = _nodes()
    nodes.seen(*_node("node-1", "t0"), 20.0)
    assert nodes.may_run("u", SURE)
    nodes.seen(*_node("node-1", "t1"), SURE + 1.0)
    assert not nodes.may_run("u", SURE + 1.0)


def test_hd_47_without_nodes_time_alone_ends_the_doubt() -> None:
    nodes = _nodes()
    assert nodes.over_at("u") == SURE
    assert nodes.may_run("u", SURE - 1.0)
    assert not nodes.may_run("u", SURE)


def test_hd_47_before_all_nodes_are_listed_nothing_is_assumed() -> None:
    nodes = Nodes()
    nodes.seen(*_node("node-1", "t0"), 0.0)
    nodes.vanished("u", "", 30.0, 0.0)
    assert nodes.over_at("u") is None
    assert nodes.may_run("u", 1e9)


# --- the agent -----------------------------------------------------------------------------------------------------


def _beat(stage: Stage, minute: int) -> None:
    for name in NAMES:
        if stage.store.find(("", "nodes"), "", name) is None:
            stage.create(NODE, {"metadata": {"name": name}})
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"2026-01-01T00:{minute:02}:00Z"}
        body = msgspec.json.encode({"status": {"conditions": [ready]}})
        kind = stage.store.kinds.of(NODE)
        stage.store.patch(kind, "", name, body, "application/merge-patch+json", stage.now, subresource="status")
    stage.settle()


def _removed_unseen(stage: Stage) -> None:
    """Bind the pod and remove it by force, and let no watch tell of either."""
    stage.watched = set()
    stage.bind()
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.store.delete(stage.store.kinds.of(POD), NAMESPACE_NAME, "p", Deletion(grace_seconds=0), stage.now)


@pytest.mark.parametrize("node_lost", [False, True], ids=["heard", "one is gone"])
def test_hd_47_a_pod_bound_behind_a_slow_watch_and_removed_by_force_is_not_stopped(node_lost: bool) -> None:
    stage = Stage()
    stage.start()
    _beat(stage, 1)
    stage.place()
    assert stage.state() == "Running"
    _removed_unseen(stage)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert len(stage.written(Delete, POD)) == 1
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Stopped) == [], "it may run on either node"
    _beat(stage, 2)
    if node_lost:
        stage.store.delete(stage.store.kinds.of(NODE), "", "node-1", Deletion(), stage.now)
        stage.settle()
    _beat(stage, 3)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_hd_47_a_lift_without_an_answer_counts_as_one_that_landed() -> None:
    stage = Stage()
    stage.start()
    _beat(stage, 1)
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    assert stage.state() == "Gated"
    stage.hold = lambda _write: False
    stage.watched = set()
    stage._write(stage.held[0].command, answered=False)
    _removed_unseen(stage)
    stage.lose()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Stopped) == []


def test_hd_47_a_pod_that_was_never_let_go_runs_nowhere() -> None:
    stage = Stage()
    stage.start()
    _beat(stage, 1)
    stage.place(spec={**POD_SPEC, "schedulingGates": [{"name": "example.com/mine"}]})
    assert stage.state() == "Gated"
    assert stage.written(Patch, POD) == []
    stage.watched = set()
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.store.delete(stage.store.kinds.of(POD), NAMESPACE_NAME, "p", Deletion(grace_seconds=0), stage.now)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert len(stage.peer.of(m.Stopped)) == 1


def test_hd_47_a_pod_that_was_deleted_before_it_had_a_node_runs_nowhere() -> None:
    """Nothing is bound that is being deleted: the usual stop of a pod that waits for a node costs no wait."""
    stage = Stage()
    stage.start()
    _beat(stage, 1)
    stage.place()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(1.0)
    assert len(stage.peer.of(m.Stopped)) == 1
