"""IS-42: `explain` follows queue, check and cluster to what stands in the way, with the way out."""

from __future__ import annotations

import json
from typing import Any

from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    WORKER_CLUSTER,
)
from support.manager.cli_stage import Stage, condition

TEAM = ("-n", "team")
KUEUE = "kueue.x-k8s.io"


def a_path(stage: Stage, *clusters: str, active: str = "False") -> None:
    reason = "Active" if active == "True" else "NoUsableClusters"
    because = [condition("Active", active, reason, "Missing clusters: [a]")]
    checks = {"admissionChecks": [{"name": "far"}]}
    parameters = {"apiGroup": KUEUE, "kind": "MultiKueueConfig", "name": "all"}
    stage.server.put(LOCAL_QUEUE, "main", "team", spec={"clusterQueue": "cq"})
    stage.server.put(
        CLUSTER_QUEUE,
        "cq",
        spec={"admissionChecksStrategy": checks},
        status={"conditions": [condition("Active", active, "Checks", "inactive checks: far")]},
    )
    stage.server.put(
        ADMISSION_CHECK,
        "far",
        spec={"controllerName": f"{KUEUE}/multikueue", "parameters": parameters},
        status={"conditions": because},
    )
    stage.server.put(MULTIKUEUE_CONFIG, "all", spec={"clusters": list(clusters)})
    stage.workload("waits")


def path(stage: Stage) -> Any:
    return json.loads(stage.run("explain", "waits", "-o", "json", *TEAM).out)["path"]


def test_is_42_a_cluster_that_nobody_took_in_is_found_with_the_command(stage: Stage) -> None:
    a_path(stage, "a", "b")
    lost = {"conditions": [condition("Connected", "False", "Lost")]}
    stage.server.put(WORKER_CLUSTER, "b", spec={}, status=lost)
    assert path(stage) == [
        "ClusterQueue cq: not active (Checks): inactive checks: far",
        "AdmissionCheck far: not active (NoUsableClusters): Missing clusters: [a]",
        "cluster a: no WorkerCluster of that name: take it in: gatelift cluster add a",
        "cluster b: not connected: Lost ('gatelift cluster list')",
    ]
    assert "  path      ClusterQueue cq: not active" in stage.run("explain", "waits", *TEAM).out


def test_is_42_where_all_is_well_nothing_is_said(stage: Stage) -> None:
    a_path(stage, "a", active="True")
    assert path(stage) == []


def test_is_42_what_is_not_there_ends_the_path(stage: Stage) -> None:
    stage.workload("waits")
    assert path(stage) == ["LocalQueue main: is not there"]
    stage.server.put(LOCAL_QUEUE, "main", "team", spec={"clusterQueue": "cq"})
    assert path(stage) == ["ClusterQueue cq: is not there"]


def test_is_42_what_may_not_be_read_is_left_out(stage: Stage) -> None:
    a_path(stage, "a")
    stage.server.fault("GET", "/admissionchecks/far", status=403)
    assert path(stage) == ["ClusterQueue cq: not active (Checks): inactive checks: far"]
