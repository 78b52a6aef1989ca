"""`gatelift explain`: which workload is meant, and what is told of it."""

from __future__ import annotations

import datetime as dt
import json

import msgspec
import pytest

from gatelift.cli.explain import explanation_of
from gatelift.cli.listing import maker_of
from gatelift_kube.objects.kueue import Workload
from support.manager.cli_stage import Stage, admitted, condition

WHY = "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor fast"
TEAM = ("-n", "team")
HELD = "gatelift.dev/Held"


def test_a_workload_that_waits_says_why_and_since_when(stage: Stage) -> None:
    stage.workload("big", status={"conditions": [condition("QuotaReserved", "False", "ExceedsMaxQuota", WHY)]})
    said = stage.run("explain", "big", *TEAM)
    assert said.code == 0
    first, *rest = said.out.splitlines()
    assert first == "team/pod-big: Pending (ExceedsMaxQuota)"
    facts = {line[2:10].strip(): line[12:] for line in rest}
    assert facts["made for"] == "pod/big"
    assert facts["because"] == WHY
    assert "QuotaReserved=False (ExceedsMaxQuota)" in facts["history"]


def test_of_many_objects_that_a_workload_names_the_first_are_told() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": f"p{number}", "uid": f"u{number}"} for number in range(50)]
    many = msgspec.convert({"metadata": {"name": "w", "ownerReferences": owners}}, Workload)
    assert maker_of(many) == "pod/p0, pod/p1, pod/p2 and 47 more"


def test_a_placed_workload_says_where_with_what_quota_and_by_which_checks(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    told = json.loads(stage.run("explain", "pod/runs", "-o", "json", *TEAM).out)
    assert told["state"] == "Admitted"
    assert told["cluster"] == "worker-2"
    assert told["quota"] == "all (main: 2 cpu from fast)"
    assert told["checks"] == [{"name": "mk", "state": "Ready", "message": "on it"}]
    assert [one["type"] for one in told["history"]] == ["QuotaReserved", "Admitted"]
    assert "check     mk Ready: on it" in stage.run("explain", "pod/runs", *TEAM).out


@pytest.mark.parametrize(
    ("asked", "over", "said"),
    [
        pytest.param(8, 6, "main: 6 of 8 pods are done, and their quota is free", id="all were granted"),
        pytest.param(12, 9, "main: 5 of 8 pods are done, and their quota is free", id="RE-11 of 12 asked for"),
        pytest.param(8, 0, "", id="none"),
    ],
)
def test_of_a_job_in_its_tail_is_said_how_much_is_free(asked: int, over: int, said: str) -> None:
    assignment = {"name": "main", "count": 8, "flavors": {"cpu": "fast"}, "resourceUsage": {"cpu": "8"}}
    status = {
        "admission": {"clusterQueue": "all", "podSetAssignments": [assignment]},
        "reclaimablePods": [{"name": "main", "count": over}],
    }
    document = {"metadata": {"name": "w"}, "spec": {"podSets": [{"name": "main", "count": asked}]}, "status": status}
    assert explanation_of(msgspec.convert(document, Workload), dt.datetime.now(dt.UTC)).reclaimed == said


def test_hd_181_one_that_is_held_although_it_is_admitted_says_so_and_why(stage: Stage) -> None:
    why = "cluster b names epoch 2 of this workload, its record knows 1: raise the annotation gatelift.dev/epoch"
    status = admitted("worker-2")
    stage.workload(
        "runs", status={**status, "conditions": [*status["conditions"], condition(HELD, "True", "EpochAhead", why)]}
    )
    stage.workload(
        "ran", status={**status, "conditions": [*status["conditions"], condition(HELD, "False", "EpochAhead", why)]}
    )
    said = stage.run("explain", "pod/runs", *TEAM)
    assert f"held      EpochAhead: {why}" in said.out
    assert json.loads(stage.run("explain", "pod/runs", "-o", "json", *TEAM).out)["held"] == f"EpochAhead: {why}"
    assert json.loads(stage.run("explain", "pod/ran", "-o", "json", *TEAM).out)["held"] == ""


def test_an_eviction_is_told_with_its_reason() -> None:
    raw = {
        "metadata": {"name": "w", "namespace": "team", "annotations": {"gatelift.dev/epoch": "2"}},
        "status": {"conditions": [condition("Evicted", "True", "AdmissionCheck", "worker-1 refused")]},
    }
    workload = msgspec.convert(raw, Workload)
    told = explanation_of(workload, dt.datetime(2026, 1, 1, 0, 1, 1, tzinfo=dt.UTC))
    assert (told.state, told.reason, told.because, told.epoch) == ("Evicted", "AdmissionCheck", "worker-1 refused", 2)
    assert told.history == ("60s ago: Evicted=True (AdmissionCheck) worker-1 refused",)


def test_the_present_workload_is_meant_where_an_old_one_was_made_for_the_same_name(stage: Stage) -> None:
    stage.workload("again", status={"conditions": [condition("Finished", "True", "Succeeded")]})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "again", "uid": "uid-job"}
    stage.workload("later", ownerReferences=[owner])
    assert json.loads(stage.run("explain", "again", "-o", "json", *TEAM).out)["made_for"] == "job/again"
    assert json.loads(stage.run("explain", "pod/again", "-o", "json", *TEAM).out)["made_for"] == "pod/again"


def test_a_workloads_own_name_comes_first(stage: Stage) -> None:
    stage.workload("x")
    stage.workload("y", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "pod-x", "uid": "u"}])
    assert json.loads(stage.run("explain", "pod-x", "-o", "json", *TEAM).out)["workload"] == "team/pod-x"
