"""`gatelift explain` and `get` of a group of pods: who lacks, who disagrees, whose place is whose, what leaves."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pytest
from rich.console import Console

from gatelift.cli import explain
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_kube.values.timestamps import to_text
from support.manager.builders import a_pod
from support.manager.cli_stage import Stage, condition

K = "kueue.x-k8s.io/"
TEAM = ("-n", "team")
ROLE = "5c4aa3f1"
"""The role of all pods here, by their shape, is said by themselves."""


def member(stage: Stage, name: str, *, gated: bool = True, phase: str = "Pending", total: int = 3, **meta: Any) -> None:
    document = a_pod(name).asking(cpu="1").document()
    notes = {f"{K}pod-group-total-count": str(total), f"{K}role-hash": ROLE}
    labels = {**document["metadata"]["labels"], f"{K}pod-group-name": "crew", f"{K}managed": "true"}
    labels |= meta.pop("labels", {})
    spec = document["spec"]
    if not gated:
        spec = {**spec, "schedulingGates": [], "nodeName": "n"}
    metadata = {**document["metadata"], "namespace": "team", "labels": labels, "annotations": notes, **meta}
    stage.server.put(POD, name, "team", metadata=metadata, spec=spec, status={"phase": phase})


def composed(stage: Stage, *names: str, **status: Any) -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": each, "uid": f"uid-of-{each}"} for each in names]
    metadata = {
        "ownerReferences": owners,
        "annotations": {f"{K}is-group-workload": "true"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    sets = [{"name": ROLE, "count": 3, "template": {"spec": {"containers": []}}}]
    spec = {"queueName": "main", "podSets": sets}
    stage.server.put(WORKLOAD, "crew", "team", metadata=metadata, spec=spec, status=status)


GRANTED = {
    "conditions": [condition("QuotaReserved", "True", "QuotaReserved"), condition("Admitted", "True", "Admitted")],
    "admission": {"clusterQueue": "all", "podSetAssignments": [{"name": ROLE, "count": 3}]},
}


def told(stage: Stage, name: str = "crew") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(stage.run("explain", name, "-o", "json", *TEAM).out)
    return document


@pytest.mark.parametrize("asked", ["crew", "a", "pod/a"])
def test_a_group_that_is_not_complete_says_how_many_lack_also_by_the_name_of_a_member(stage: Stage, asked: str) -> None:
    member(stage, "a")
    member(stage, "b")
    found = told(stage, asked)
    assert (found["workload"], found["state"], found["reason"]) == ("team/crew", "Pending", "ErrWorkloadCompose")
    assert found["because"] == "1 of 3 pods of the group is not there yet"
    assert found["members"]["objects"] == {"wanted": 0, "at their gate": 2}
    assert "members   pods: 2 at their gate" in stage.run("explain", asked, *TEAM).out


def test_members_that_disagree_are_named_with_what_they_say(stage: Stage) -> None:
    member(stage, "a")
    member(stage, "b")
    member(stage, "c", labels={f"{K}queue-name": "other"})
    said = told(stage)["because"]
    assert said.startswith("the pods of the group differ in the queue: ")
    assert "1 says other (c)" in said


def test_hd_397_members_that_run_at_a_worker_are_not_told_to_be_at_their_gate(stage: Stage) -> None:
    """HD-397: their user's pods keep the gate; how many there are to be is said, also while one is missing."""
    there: dict[str, Any] = {
        "annotations": {f"{K}pod-group-total-count": "3", f"{K}role-hash": ROLE, "gatelift.dev/placed-on": "w1"}
    }
    member(stage, "a", phase="Running", **there)
    member(stage, "b", phase="Failed", **there)
    member(stage, "d")
    composed(stage, "a", "b", **GRANTED, clusterName="w1")
    found = told(stage)
    assert found["members"]["objects"] == {"wanted": 3, "let go": 1, "at their gate": 1, "failed": 1}
    assert found["made_for"] == "group crew (3 pods)"


def test_of_a_group_that_runs_is_said_who_failed_and_who_takes_its_place(stage: Stage) -> None:
    member(stage, "a", gated=False, phase="Running")
    member(stage, "b", gated=False, phase="Failed")
    member(stage, "c", gated=False, phase="Succeeded")
    composed(stage, "a", "b", "c", **GRANTED)
    found = told(stage)
    assert found["members"]["objects"] == {"wanted": 3, "let go": 1, "succeeded": 1, "failed": 1}
    assert found["members"]["lacks"] == "1 of 3 slots has no pod: make as many under the group's name"
    assert found["members"]["replaced"] == [{"name": "b", "by": "", "why": "failed", "is_taken": False}]
    member(stage, "d")
    found = told(stage)
    assert found["members"]["lacks"] == ""
    assert found["members"]["replaced"] == [{"name": "b", "by": "d", "why": "failed", "is_taken": True}]
    assert "replaced  b failed, and d takes its place" in stage.run("explain", "crew", *TEAM).out
    member(stage, "d", gated=False, phase="Running")
    assert "replaced  b failed, and another pod has its place" in stage.run("explain", "crew", *TEAM).out


def test_hd_651_of_a_group_that_was_stopped_whole_is_said_how_many_to_make_again(stage: Stage) -> None:
    """HD-651: each of its pods says its size, and there is nobody else who could."""
    for name in "abc":
        member(stage, name, gated=False, phase="Failed")
    composed(stage, "a", "b", "c", conditions=[condition("Evicted", "True", "Preempted")])
    assert told(stage)["members"]["lacks"] == "3 of 3 slots have no pod: make as many under the group's name"


def test_hd_652_of_a_group_that_has_finished_nobody_lacks(stage: Stage) -> None:
    """HD-652: it asked for pods in the place of those that failed, which nobody would have let go."""
    for name, phase in (("a", "Succeeded"), ("b", "Failed"), ("c", "Failed")):
        member(stage, name, gated=False, phase=phase)
    composed(stage, "a", "b", "c", conditions=[condition("Finished", "True", "Failed")])
    found = told(stage)["members"]
    assert found["objects"] == {"wanted": 3, "succeeded": 1, "failed": 2}
    assert (found["lacks"], found["replaced"]) == ("", [])


def test_hd_651_workers_that_a_driver_has_yet_to_make_lack_nobody_and_what_it_made_elsewhere_is_counted(
    stage: Stage,
) -> None:
    """HD-651: it said that three of four slots have no pod, while the driver's workers ran at the worker."""
    template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}
    sets = [{"name": "driver", "count": 1}, {"name": "workers", "count": 3, "template": template}]
    notes = {f"{K}pod-group-sets": json.dumps(sets), "gatelift.dev/placed-on": "w1"}
    member(stage, "d", phase="Running", annotations=notes, labels={f"{K}pod-group-role": "driver"})
    there = "workers: 2 active, 1 turned away"
    asked = [{"name": each["name"], "count": each["count"], "template": {"spec": {"containers": []}}} for each in sets]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "d", "uid": "uid-of-d"}
    marks = {f"{K}is-group-workload": "true", "gatelift.dev/made-there": there}
    metadata = {"ownerReferences": [owner], "annotations": marks, "creationTimestamp": "2026-01-01T00:00:00Z"}
    assigned = [{"name": each["name"], "count": each["count"]} for each in sets]
    status = {**GRANTED, "admission": {"clusterQueue": "all", "podSetAssignments": assigned}, "clusterName": "w1"}
    stage.server.put(
        WORKLOAD, "crew", "team", metadata=metadata, spec={"queueName": "main", "podSets": asked}, status=status
    )
    found = told(stage)["members"]
    assert (found["objects"], found["lacks"]) == ({"wanted": 4, "let go": 1}, "")
    assert found["made_there"] == there
    assert f"made      by its driver where it runs: {there}" in stage.run("explain", "crew", *TEAM).out


def test_of_a_member_that_leaves_is_said_since_when_and_who_waits_for_it(stage: Stage) -> None:
    asked = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=42)
    until = to_text(asked.timestamp() + 60)
    for name in ("a", "b"):
        member(stage, name, gated=False, phase="Running")
    leaves: dict[str, Any] = {
        "deletionTimestamp": until,
        "deletionGracePeriodSeconds": 60,
        "finalizers": [f"{K}managed"],
    }
    member(stage, "c", gated=False, phase="Running", **leaves)
    member(stage, "heir")
    composed(stage, "a", "b", "c", **GRANTED)
    found = told(stage)["members"]
    assert found["replaced"] == [{"name": "c", "by": "heir", "why": "leaving", "is_taken": False}]
    assert found["leaving"] == [{"name": "c", "since": to_text(asked.timestamp())}]
    out = stage.run("explain", "crew", *TEAM).out
    assert "heir waits at its gate until c has stopped" in out
    assert "leaving   c has been stopping for 4" in out


def test_a_member_is_found_by_its_own_name_and_the_group_is_named(stage: Stage) -> None:
    member(stage, "a", gated=False, phase="Running")
    composed(stage, "a", "b", "c", **GRANTED)
    assert told(stage, "pod/b")["workload"] == "team/crew"
    assert told(stage)["made_for"] == "group crew (3 pods)"
    (row,) = json.loads(stage.run("get", "workloads", "-o", "json").out)
    assert row["for"] == "group crew (3 pods)"


def test_get_placements_counts_members(stage: Stage) -> None:
    """Also where the admission leaves the count to the pod set."""
    status = {**GRANTED, "clusterName": "worker-1"}
    composed(stage, "a", "b", "c", **status)
    (row,) = json.loads(stage.run("get", "placements", "-o", "json").out)
    assert (row["cluster"], row["name"], row["pods"]) == ("worker-1", "crew", 3)
    left = {"clusterQueue": "all", "podSetAssignments": [{"name": ROLE}]}
    composed(stage, "a", "b", "c", **{**status, "admission": left})
    (row,) = json.loads(stage.run("get", "placements", "-o", "json").out)
    assert row["pods"] == 3


def test_many_lines_of_one_sort_are_counted_and_all_fits_a_screen_of_80(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        member(stage, f"a-member-with-a-long-name-{number:02}", gated=False, phase="Failed", total=20)
    composed(stage, "a", **GRANTED)
    out = stage.run("explain", "crew", *TEAM).out
    assert "and 12 more" in out
    page = io.StringIO()
    screen = Console(file=page, width=80, force_terminal=True, color_system=None, highlight=False)
    monkeypatch.setattr(explain, "Console", lambda **_: screen)
    stage.run("explain", "crew", *TEAM)
    assert max(map(len, page.getvalue().splitlines()[1:])) <= 80
