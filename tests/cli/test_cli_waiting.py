"""`gatelift explain` of a workload that waits: its place, what it lacks, whom it would preempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gatelift_kube.values.resources import CLUSTER_QUEUE, CONFIG_MAP, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR, WORKLOAD
from support.manager.cli_stage import Stage, condition

TEAM = ("-n", "team")


def a_cluster(stage: Stage, *, cpu: str = "8", **spec: Any) -> None:
    """Put a queue of some cpus, its LocalQueue, flavor and namespace."""
    quota = {"name": "fast", "resources": [{"name": "cpu", "nominalQuota": cpu}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    stage.server.put(NAMESPACE, "team")
    stage.server.put(RESOURCE_FLAVOR, "fast", spec={})
    stage.server.put(CLUSTER_QUEUE, "all", spec={"namespaceSelector": {}, "resourceGroups": groups, **spec})
    stage.server.put(LOCAL_QUEUE, "main", "team", spec={"clusterQueue": "all"})


def a_workload(stage: Stage, name: str, cpu: str, *, runs: bool = False, priority: int = 0, **pod_set: Any) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}, **pod_set}]
    status: dict[str, Any] = {}
    if runs:
        granted = {"name": "main", "flavors": {"cpu": "fast"}, "resourceUsage": {"cpu": cpu}, "count": 1}
        status = {
            "conditions": [condition(one, "True", one) for one in ("QuotaReserved", "Admitted")],
            "admission": {"clusterQueue": "all", "podSetAssignments": [granted]},
        }
    created = {"creationTimestamp": f"2026-01-01T00:00:{len(name):02}Z"}
    spec = {"queueName": "main", "priority": priority, "podSets": sets}
    stage.server.put(WORKLOAD, name, "team", metadata=created, spec=spec, status=status)


def told(stage: Stage, name: str) -> Any:
    return json.loads(stage.run("explain", name, "-o", "json", *TEAM).out)["waiting"]


def test_it_says_where_it_stands_and_who_stands_before_it(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "runs", "8", runs=True)
    a_workload(stage, "one", "1")
    a_workload(stage, "urgent", "1", priority=5)
    a_workload(stage, "another", "1")
    said = told(stage, "another")
    assert said["place"] == "3 of 3 in ClusterQueue all, 3 of 3 in its LocalQueue, priority 0"
    assert said["ahead"] == ["team/urgent", "team/one"]


def test_it_says_what_each_flavor_lacks_and_that_nobody_may_be_preempted(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "runs", "6", runs=True)
    a_workload(stage, "waits", "3", priority=5)
    said = told(stage, "waits")
    assert said["lacks"] == [
        "pod set main, flavor fast: insufficient unused quota for cpu in flavor fast, 1 more needed"
    ]
    assert said["outlook"] == "waits until quota comes free; nobody may be preempted for it"
    assert said["would_preempt"] == []


def test_it_names_those_who_would_have_to_leave(stage: Stage) -> None:
    a_cluster(stage, preemption={"withinClusterQueue": "LowerPriority"})
    a_workload(stage, "low", "4", runs=True)
    a_workload(stage, "middle", "4", runs=True, priority=3)
    a_workload(stage, "urgent", "3", priority=5)
    said = told(stage, "urgent")
    assert said["would_preempt"] == ["team/low (priority 0, ClusterQueue all): InClusterQueue"]
    assert said["outlook"] == "would fit after 1 other has been preempted"
    out = stage.run("explain", "urgent", *TEAM).out
    assert "  preempts  team/low (priority 0, ClusterQueue all): InClusterQueue" in out.splitlines()


def test_it_says_with_how_few_pods_it_fits(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "wide", "1", count=12, minCount=2)
    assert told(stage, "wide")["outlook"] == "fits now, with 8 pods in pod set main; its turn comes next"


def test_what_asks_for_more_than_there_is_is_told_that_waiting_does_not_help(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "giant", "9")
    said = told(stage, "giant")
    assert said["outlook"] == "no quota that comes free can help: it asks for more than the queue and its cohort have"
    (lacks,) = said["lacks"]
    assert lacks == (
        "pod set main, flavor fast: insufficient quota for cpu in flavor fast, previously considered podsets requests"
        " (0) + current podset request (9) > maximum capacity (8)"
    )


def test_what_no_quota_can_help_is_said(stage: Stage) -> None:
    a_cluster(stage, stopPolicy="Hold")
    a_workload(stage, "waits", "1")
    assert told(stage, "waits")["outlook"] == "no quota can help: ClusterQueue all is inactive"


def test_a_borrower_is_told_so(stage: Stage) -> None:
    a_cluster(stage, cpu="2", cohortName="team")
    quota = {"name": "fast", "resources": [{"name": "cpu", "nominalQuota": "8"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
    stage.server.put(
        CLUSTER_QUEUE, "rich", spec={"cohortName": "team", "namespaceSelector": {}, "resourceGroups": groups}
    )
    a_workload(stage, "borrows", "5")
    assert told(stage, "borrows")["outlook"] == "fits now, borrowing from its cohort; its turn comes next"


def test_what_runs_or_is_over_has_no_place(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "runs", "8", runs=True)
    stage.workload("over", status={"conditions": [condition("Finished", "True", "Succeeded")]})
    assert told(stage, "runs") is None
    assert told(stage, "over") is None


def test_a_workload_of_no_queue_has_no_place_either(stage: Stage) -> None:
    a_workload(stage, "lost", "1")
    assert told(stage, "lost") is None


def test_who_may_not_list_all_is_told_what_he_cannot_see(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "waits", "1")
    stage.server.fault("GET", "/cohorts", status=403)
    said = told(stage, "waits")
    assert said["not_seen"] == ["cohorts"]
    assert said["outlook"] == "fits now; its turn comes next"
    stage.server.fault("GET", "/clusterqueues", status=403)
    blind = stage.run("explain", "waits", *TEAM)
    assert blind.code == 0
    assert "  not seen  you may not read clusterqueues" in blind.out.splitlines()
    assert "outlook" not in blind.out


def test_is_43_one_that_waits_for_a_cluster_is_not_said_to_fit_now(stage: Stage) -> None:
    a_cluster(stage)
    a_workload(stage, "waits", "1")
    document = stage.server.find(WORKLOAD, "waits", "team")
    assert document is not None
    why = condition("QuotaReserved", "False", "NoClusterAvailable")
    stage.server.put(WORKLOAD, "waits", "team", spec=document["spec"], status={"conditions": [why]})
    said = told(stage, "waits")
    assert said["outlook"].startswith("waits for a worker cluster, not for quota: tried again when one changes")


SETTINGS = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {transformations: [{input: cpu, strategy: Replace, outputs: {credits: 3}}]}
"""


def test_it_counts_as_the_managers_settings_say(stage: Stage, tmp_path: Path) -> None:
    a_cluster(stage)
    a_workload(stage, "waits", "1")
    assert told(stage, "waits")["lacks"] == []
    file = tmp_path / "manager.yaml"
    file.write_text(SETTINGS)
    by_file = json.loads(stage.run("explain", "waits", "-o", "json", "--config", str(file), *TEAM).out)["waiting"]
    assert by_file["lacks"] == ["pod set main: resource credits unavailable in ClusterQueue"]
    assert by_file["outlook"] == "no quota can help: no flavor of the queue suits it"
    stage.server.put(CONFIG_MAP, "gatelift-manager", "gatelift-system", data={"config.yaml": SETTINGS})
    assert told(stage, "waits")["lacks"] == by_file["lacks"]


def test_who_may_not_read_the_settings_is_told_so_and_a_broken_file_is_one_line(stage: Stage, tmp_path: Path) -> None:
    a_cluster(stage)
    a_workload(stage, "waits", "1")
    file = tmp_path / "manager.yaml"
    file.write_text("a: [1")
    broken = stage.run("explain", "waits", "--config", str(file), *TEAM)
    assert broken.code == 2
    assert broken.err == f"gatelift: {file} line 1: is not YAML; mend the syntax there\n"
    stage.server.fault("GET", "/configmaps", status=403)
    assert told(stage, "waits")["not_seen"] == ["configmaps (the manager's settings)"]


def test_who_waits_is_listed_in_the_order_in_which_they_are_served(stage: Stage) -> None:
    a_cluster(stage)
    stage.server.put(LOCAL_QUEUE, "other", "team", spec={"clusterQueue": "all"})
    a_workload(stage, "runs", "8", runs=True)
    a_workload(stage, "one", "1")
    a_workload(stage, "urgent", "1", priority=5)
    a_workload(stage, "another", "1")
    assert stage.run("get", "pending", "all").out.splitlines() == [
        "POSITION  NAMESPACE  NAME     PRIORITY  LOCALQUEUE  IN LOCALQUEUE",
        "1         team       urgent   5         main        1",
        "2         team       one      0         main        2",
        "3         team       another  0         main        3",
    ]
    first = json.loads(stage.run("get", "pending", "all", "--limit", "1", "-o", "json").out)
    assert [one["name"] for one in first] == ["urgent"]
    assert stage.run("get", "pending", "nothing").code == 3
    stage.server.fault("GET", "/clusterqueues", status=403)
    assert stage.run("get", "pending", "all").code == 4
