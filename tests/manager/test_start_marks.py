"""A pod says from its start on which queues and Workload let it go (KEP-976, PG-26); no Job's pod does."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift.core.dispatching.additions import start_marks, with_additions
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Commit, PodSetRequest
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import World, a_world

SAID = {
    "kueue.x-k8s.io/local-queue-name",
    "kueue.x-k8s.io/cluster-queue-name",
    "kueue.x-k8s.io/workload",
}


def committed(document: dict[str, Any]) -> tuple[World, dict[str, Any]]:
    world = a_world(a_setting(), clusters=("a",))
    world.api.apply(document)
    world.settle()
    [(_, commit)] = world.messages(Commit)
    return world, json.loads(commit.pod_sets[0].additions or b"{}")


def a_workload(queue: str, cluster_queue: str, **status: Any) -> Workload:
    admission = {"clusterQueue": cluster_queue, "podSetAssignments": []}
    document = {
        "metadata": {"name": "w"},
        "spec": {"queueName": queue, "podSets": []},
        "status": {"admission": admission, **status},
    }
    return msgspec.convert(document, Workload)


def test_a_pod_is_started_with_the_names_of_its_queues_and_of_its_workload() -> None:
    world, added = committed(a_pod().document())
    workload = world.find("Workload")
    assert added == {
        "labels": {
            "kueue.x-k8s.io/local-queue-name": workload["spec"]["queueName"],
            "kueue.x-k8s.io/cluster-queue-name": workload["status"]["admission"]["clusterQueue"],
        },
        "annotations": {"kueue.x-k8s.io/workload": workload["metadata"]["name"]},
    }


def test_the_template_of_a_job_stays_as_its_user_wrote_it() -> None:
    _, added = committed(a_job())
    assert not SAID & {*added.get("labels", {}), *added.get("annotations", {})}


@pytest.mark.parametrize(("length", "said"), [(63, True), (64, False), (0, False)])
def test_a_name_that_no_label_has_room_for_is_left_out(length: int, said: bool) -> None:
    marks = start_marks(a_workload("q" * length, "c"))
    assert ("kueue.x-k8s.io/local-queue-name" in marks["labels"]) is said
    assert marks["labels"]["kueue.x-k8s.io/cluster-queue-name"] == "c"


def test_no_check_says_by_which_queue_a_pod_was_let_go() -> None:
    forged = {"labels": {"kueue.x-k8s.io/cluster-queue-name": "another", "team": "x"}}
    check = {
        "name": "budget",
        "state": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "podSetUpdates": [{"name": "main", **forged}],
    }
    workload = a_workload("q", "c", admissionChecks=[check])
    asked = (PodSetRequest(name="main", count=1),)
    [one] = with_additions(asked, workload, ("budget",), start_marks(workload))
    labels = json.loads(one.additions)["labels"]
    assert (labels["kueue.x-k8s.io/cluster-queue-name"], labels["team"]) == ("c", "x")
