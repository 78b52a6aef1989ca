"""SL-72: sizes in `gatelift get workloads`; what `gatelift explain` tells of a growth, here and at its cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD
from support.manager.cli_stage import Stage, condition

from .test_cli_waiting import TEAM, a_cluster

KUEUES = "kueue.x-k8s.io"
CHAIN = "uid-of-first"
WAITS = "It grows what runs from 3 pods to 10 pods: insufficient unused quota for cpu in flavor fast, 5 more needed"


def a_slice(
    stage: Stage,
    name: str,
    number: int,
    count: int,
    *,
    granted: int | None = None,
    on: str = "",
    cluster: str = "",
    owner: str = "uid-of-job",
    conditions: tuple[Any, ...] = (),
) -> None:
    """Put a slice of the Job `work`; `on`: in whose place it is."""
    notes = {
        f"{KUEUES}/elastic-job": "true",
        f"{KUEUES}/workload-slice-name": "first",
        "gatelift.dev/size": str(number),
    }
    if on:
        notes |= {f"{KUEUES}/workload-slice-replacement-for": f"team/{on}", "gatelift.dev/chain": CHAIN}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": owner, "controller": True}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    status: dict[str, Any] = {"conditions": list(conditions)}
    if granted is not None:
        status["conditions"] += [condition(one, "True", one) for one in ("QuotaReserved", "Admitted")]
        usage = {"name": "main", "flavors": {"cpu": "fast"}, "resourceUsage": {"cpu": str(granted)}, "count": granted}
        status["admission"] = {"clusterQueue": "all", "podSetAssignments": [usage]}
    if cluster:
        status["clusterName"] = cluster
    stage.server.put(
        WORKLOAD,
        name,
        "team",
        metadata={
            "uid": f"uid-of-{name}",
            "annotations": notes,
            "ownerReferences": [job],
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        spec={
            "queueName": "main",
            "podSets": [{"name": "main", "count": count, "template": {"spec": {"containers": [container]}}}],
        },
        status=status,
    )


def replaced(message: str = "size 1, 2 pods: replaced by Workload first (size 2, 3 pods)") -> tuple[Any, ...]:
    over = condition("Finished", "True", "WorkloadSliceReplaced", "Replaced to accommodate a workload")
    return condition("gatelift.dev/Slice", "False", "WorkloadSliceReplaced", message), over


def pods(stage: Stage) -> dict[str, Any]:
    return {row["name"]: row["pods"] for row in json.loads(stage.run("get", "workloads", "-o", "json").out)}


def explained(stage: Stage, name: str) -> Any:
    return json.loads(stage.run("explain", name, "-o", "json", *TEAM).out)


def growing(stage: Stage, *, cluster: str = "", reason: str = "Pending", wanted: int = 10) -> None:
    """Put a Job of three pods that is to have ten, in a queue of eight cpus."""
    a_cluster(stage)
    a_slice(stage, "first", 1, 3, granted=3, cluster=cluster)
    waits = condition("QuotaReserved", "False", reason, WAITS)
    a_slice(stage, "next", 2, wanted, on="first", conditions=(waits,))


def test_sl_72_what_runs_and_what_waits_to_grow_it_show_both_sizes(stage: Stage) -> None:
    growing(stage)
    assert pods(stage) == {name: {"granted": 3, "wanted": 10} for name in ("first", "next")}
    shown = stage.run("get", "workloads").out
    assert shown.count("3 -> 10") == 2


def test_sl_72_what_shrinks_shows_what_is_charged_and_what_is_wanted(stage: Stage) -> None:
    a_slice(stage, "first", 2, 4, granted=10)
    assert "10 -> 4" in stage.run("get", "workloads").out


def test_sl_72_what_is_not_resized_shows_its_pods_alone(stage: Stage) -> None:
    a_slice(stage, "old", 1, 2, granted=2, conditions=replaced())
    a_slice(stage, "first", 2, 3, granted=3)
    stage.workload("plain")
    assert pods(stage) == {
        "old": {"granted": None, "wanted": 2},
        "first": {"granted": 3, "wanted": 3},
        "pod-plain": {"granted": None, "wanted": 0},
    }
    assert "->" not in stage.run("get", "workloads").out


@pytest.mark.parametrize("forged", [{"owner": "another"}, {"number": 1}], ids=["of another Job", "of no later size"])
def test_sl_72_a_mark_that_the_manager_does_not_believe_is_not_believed_here(
    stage: Stage, forged: dict[str, Any]
) -> None:
    """SL-49."""
    a_slice(stage, "first", 1, 3, granted=3)
    a_slice(stage, "next", **{"number": 2, "count": 10, "on": "first", **forged})
    assert pods(stage) == {"first": {"granted": 3, "wanted": 3}, "next": {"granted": None, "wanted": 10}}


@pytest.mark.parametrize("name", ["job/work", "first"])
def test_sl_72_explain_tells_of_what_runs_and_what_its_growth_lacks(stage: Stage, name: str) -> None:
    growing(stage)
    found = explained(stage, name)
    assert (found["workload"], found["state"]) == ("team/first", "Admitted")
    assert found["slices"] == {
        "size": "size 1, 3 pods",
        "resizes": "3 -> 10 pods",
        "growth": f"Workload next waits: Pending: {WAITS}",
        "home": [],
        "past": [],
    }
    (lack,) = found["waiting"]["lacks"]
    assert lack.startswith("pod set main, flavor fast: insufficient unused quota for cpu"), "of the difference alone"
    assert lack.endswith("2 more needed")


def test_sl_72_explain_of_the_slice_that_waits_says_the_same_of_it(stage: Stage) -> None:
    growing(stage)
    found = explained(stage, "next")
    assert found["slices"]["growth"] == f"Workload next waits: Pending: {WAITS}"
    assert found["waiting"]["lacks"]


@pytest.mark.parametrize("name", ["job/work", "next"])
@pytest.mark.parametrize(
    ("reason", "outlook"),
    [
        ("NoClusterAvailable", "waits for the cluster on which it runs, not for quota"),
        ("GrowthWaits", "is not asked for before what it waits for is over, whatever the quota"),
        ("Pending", "fits now; its turn comes next"),
    ],
)
def test_hd_620_a_growth_that_waits_for_its_cluster_is_not_said_to_fit_now(
    stage: Stage, name: str, reason: str, outlook: str
) -> None:
    """HD-620: of what runs and of what waits alike, and what is said of the growth names it."""
    growing(stage, cluster="a", reason=reason, wanted=5)
    assert explained(stage, name)["waiting"]["outlook"].startswith(outlook)
    out = stage.run("explain", name, *TEAM).out
    whose = "the growth: " if name == "job/work" else ""
    assert f"  outlook   {whose}{outlook}" in out
    assert f"  place     {whose}1 of 1 in ClusterQueue all" in out


def test_hd_624_what_is_queued_again_before_its_growth_is_told_of_by_itself(stage: Stage) -> None:
    """HD-624: its place, outlook and pods were those of the growth that waits behind it."""
    a_cluster(stage)
    a_slice(stage, "first", 1, 3, conditions=(condition("QuotaReserved", "False", "Suspended", "inactive"),))
    behind = condition("QuotaReserved", "False", "GrowthWaits", "Workload first comes first")
    a_slice(stage, "next", 2, 10, on="first", conditions=(behind,))
    found = explained(stage, "job/work")
    assert (found["workload"], found["waiting"]["outlook"]) == ("team/first", "fits now; its turn comes next")
    assert {name: one["wanted"] for name, one in pods(stage).items()} == {"first": 3, "next": 10}


def test_hd_621_a_past_slice_is_not_named_among_those_before_it(stage: Stage) -> None:
    a_slice(stage, "first", 1, 2, granted=2, conditions=replaced())
    a_slice(stage, "second", 2, 3, granted=3, on="first")
    found = explained(stage, "workload/first")
    assert (found["state"], found["slices"]["past"]) == ("Finished", [])
    assert len(explained(stage, "second")["slices"]["past"]) == 1


def test_sl_72_explain_names_the_cluster_of_a_growth_with_its_agent_and_that_it_takes_none(stage: Stage) -> None:
    growing(stage, cluster="a")
    stage.server.put(WORKER_CLUSTER, "a", spec={"cordoned": True}, status={"agentVersion": "0.2.0"})
    assert explained(stage, "job/work")["slices"]["home"] == [
        "it grows on cluster a, agent 0.2.0: no other one is asked",
        "cluster a is cordoned: it takes no growth either",
    ]


def test_sl_72_explain_names_past_slices_the_latest_first_and_how_many_more(stage: Stage) -> None:
    for number in range(1, 8):
        text = (
            f"size {number}, {number} pods: replaced by Workload s{number + 1} (size {number + 1}, {number + 1} pods)"
        )
        a_slice(stage, f"s{number}", number, number, on="first", conditions=replaced(text))
    a_slice(stage, "s8", 8, 8, granted=8, on="s7")
    found = explained(stage, "job/work")["slices"]
    assert found["past"][0] == "s7: size 7, 7 pods: replaced by Workload s8 (size 8, 8 pods) (WorkloadSliceReplaced)"
    assert (len(found["past"]), found["past"][-1]) == (6, "and 2 more before")
    out = stage.run("explain", "job/work", *TEAM).out
    assert "  size      size 8, 8 pods" in out
    assert out.count("WorkloadSliceReplaced") == 5


def test_sl_72_explain_of_any_other_workload_tells_nothing_of_sizes(stage: Stage) -> None:
    stage.workload("plain")
    assert explained(stage, "pod/plain")["slices"] is None
