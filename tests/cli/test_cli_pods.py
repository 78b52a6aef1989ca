"""IS-45: `gatelift explain` has a line with the first trouble of a workload's pods at its cluster."""

from __future__ import annotations

import json

import pytest

from gatelift_kinds.shared.pod_trouble import CONDITION, CRASH, GATED, IMAGE, MISSING, START_REFUSED, UNSCHEDULABLE
from support.manager.cli_stage import Stage, admitted, condition

TEAM = ("-n", "team")
TEXT = 'Pod one on cluster "worker-2": 0/3 nodes are available'


@pytest.mark.parametrize("reason", [MISSING, GATED, UNSCHEDULABLE, START_REFUSED, IMAGE, CRASH])
def test_is_45_the_first_trouble_stands_below_the_cluster(stage: Stage, reason: str) -> None:
    status = admitted("worker-2")
    status["conditions"] = [*status["conditions"], condition(CONDITION, "True", reason, TEXT)]
    stage.workload("waits", status=status)
    out = stage.run("explain", "waits", *TEAM).out
    lines = [line.strip() for line in out.splitlines()]
    assert f"pods      {reason}: {TEXT}" in lines
    names = [line[:10].strip() for line in lines]
    assert names.index("cluster") < names.index("pods") < names.index("epoch")
    assert json.loads(stage.run("explain", "waits", "-o", "json", *TEAM).out)["pods"] == f"{reason}: {TEXT}"


def test_is_45_pods_that_run_have_no_line(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    assert "pods" not in stage.run("explain", "runs", *TEAM).out
    assert json.loads(stage.run("explain", "runs", "-o", "json", *TEAM).out)["pods"] == ""
