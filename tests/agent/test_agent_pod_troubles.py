"""IS-45: an agent tells what keeps pods from running when nothing else of them is news."""

from __future__ import annotations

import json

from gatelift_kube.resources import POD
from gatelift_wire import messages as m
from support.agent_stage import Stage


def test_is_45_a_pod_that_no_node_takes_is_reported_though_it_was_before() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.pass_seconds(3.0)
    gated = {"type": "PodScheduled", "status": "False", "reason": "Other"}
    stage.change(POD, "p", {"status": {"conditions": [gated]}}, "status")
    stage.pass_seconds(3.0)
    told = len(stage.peer.of(m.ObjectReport))
    stage.change(POD, "p", {"status": {"conditions": [{**gated, "reason": "Unschedulable"}]}}, "status")
    stage.pass_seconds(3.0)
    assert len(stage.peer.of(m.ObjectReport)) == told + 1
    (said,) = json.loads(stage.peer.of(m.ObjectReport)[-1].status)["conditions"]
    assert said["reason"] == "Unschedulable"
