"""Objects of v1beta1 and v1beta2, either way, and the reviews by which an API server asks for them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gatelift.webhooks import conversion
from gatelift.webhooks.conversion import NEW, OLD

Json = dict[str, Any]
CONDITIONS = [{"type": "Active", "status": "True"}]
PAIRS = [
    pytest.param(
        "ClusterQueue",
        {"spec": {"cohort": "team", "stopPolicy": "Hold"}, "status": {"conditions": CONDITIONS}},
        {"spec": {"cohortName": "team", "stopPolicy": "Hold"}, "status": {"conditions": CONDITIONS}},
        id="the cohort of a ClusterQueue",
    ),
    pytest.param(
        "LocalQueue",
        {"spec": {"clusterQueue": "cq"}, "status": {"flavorUsage": [{"name": "f"}], "flavorsReservation": []}},
        {"spec": {"clusterQueue": "cq"}, "status": {"flavorsUsage": [{"name": "f"}], "flavorsReservation": []}},
        id="the usage of a LocalQueue",
    ),
    pytest.param(
        "MultiKueueCluster",
        {"spec": {"kubeConfig": {"location": "s", "locationType": "Secret"}}},
        {"spec": {"clusterSource": {"kubeConfig": {"location": "s", "locationType": "Secret"}}}},
        id="the source of a MultiKueueCluster",
    ),
    pytest.param(
        "Workload",
        {"spec": {"priorityClassName": "a", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}},
        {"spec": {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "a"}}},
        id="the WorkloadPriorityClass of a Workload",
    ),
    pytest.param(
        "Workload",
        {"spec": {"priorityClassName": "a", "priorityClassSource": "scheduling.k8s.io/priorityclass"}},
        {"spec": {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "a"}}},
        id="the PriorityClass of a Workload",
    ),
    pytest.param(
        "Workload",
        {"spec": {"podSets": []}, "status": {"accumulatedPastExexcutionTimeSeconds": 7, "clusterName": "w"}},
        {"spec": {"podSets": []}, "status": {"accumulatedPastExecutionTimeSeconds": 7, "clusterName": "w"}},
        id="the time that a Workload has run",
    ),
    pytest.param("Cohort", {"spec": {"parentName": "a"}}, {"spec": {"parentName": "a"}}, id="a kind without renames"),
]


def an_object(kind: str, version: str, parts: Json) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "it", "uid": "u"}, **copy.deepcopy(parts)}


@pytest.mark.parametrize(("kind", "old", "new"), PAIRS)
def test_both_versions_say_the_same(kind: str, old: Json, new: Json) -> None:
    older, newer = an_object(kind, OLD, old), an_object(kind, NEW, new)
    kept = copy.deepcopy((older, newer))
    assert conversion.converted(older, NEW) == newer
    assert conversion.converted(newer, OLD) == older
    assert conversion.converted(newer, NEW) == newer
    assert (older, newer) == kept, "what came in is left as it is"


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (
            "ClusterQueue",
            {"spec": {"admissionChecks": ["a", "b"]}},
            {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]}}},
        ),
        (
            "ClusterQueue",
            {"spec": {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}},
            {"spec": {"flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}}},
        ),
        ("ClusterQueue", {"status": {"pendingWorkloadsStatus": {"x": 1}}}, {"status": {}}),
        ("LocalQueue", {"status": {"flavors": [{"name": "f"}]}}, {"status": {}}),
        ("Workload", {"spec": {"priorityClassName": "a", "priorityClassSource": ""}}, {"spec": {}}),
    ],
    ids=["flat checks", "old words", "what is shown elsewhere", "what was given up", "a class of no kind"],
)
def test_what_only_the_older_version_has_becomes(kind: str, old: Json, new: Json) -> None:
    assert conversion.converted(an_object(kind, OLD, old), NEW) == an_object(kind, NEW, new)


def test_what_only_the_newer_version_has_survives_a_client_of_the_older_one() -> None:
    queue = an_object("ClusterQueue", NEW, {"spec": {"concurrentAdmissionPolicy": {"migration": {}}}})
    assert conversion.converted(conversion.converted(queue, OLD), NEW) == queue


def review(version: str, *objects: Json, **changed: Any) -> bytes:
    request = {"uid": "r", "desiredAPIVersion": version, "objects": list(objects)}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request, **changed}
    return json.dumps(body).encode()


def test_a_review_is_answered_with_its_objects_in_order() -> None:
    objects = [an_object("ClusterQueue", OLD, {"spec": {"cohort": name}}) for name in "ab"]
    response = json.loads(conversion.answer(review(NEW, *objects)))["response"]
    assert (response["uid"], response["result"]) == ("r", {"status": "Success"})
    assert [one["spec"]["cohortName"] for one in response["convertedObjects"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("document", "version", "text"),
    [
        (an_object("ClusterQueue", OLD, {}), "kueue.x-k8s.io/v1", "only kueue.x-k8s.io/v1beta1 and"),
        ({"kind": "ClusterQueue"}, NEW, "from None to"),
        (
            an_object("ClusterQueue", OLD, {"spec": {"flavorFungibility": 3}}),
            NEW,
            "ClusterQueue: a field has another type",
        ),
        (
            an_object("Workload", NEW, {"spec": {"priorityClassRef": {"name": "a"}}}),
            OLD,
            "Workload: a field has another type",
        ),
    ],
)
def test_what_cannot_be_converted_is_told_in_one_line(document: Json, version: str, text: str) -> None:
    response = json.loads(conversion.answer(review(version, document)))["response"]
    assert "convertedObjects" not in response
    assert response["result"]["status"] == "Failure"
    assert text in response["result"]["message"]
