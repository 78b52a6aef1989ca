"""What only a newer API or another controller knows of a Workload's status is still there after each of our writes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gatelift.core.records import admission_writes, release_writes, status_writes
from gatelift.core.records.attempts import Ending
from gatelift_admission.values.model import Reserve
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.conditions import put
from gatelift_kube.objects.kueue import Admission, Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import WORKLOAD, ObjectKey
from gatelift_wire.values.messages import DisconnectPolicy

NOW = "2026-11-21T00:00:00Z"
ADMISSION = Admission(cluster_queue="shared")
ENDING = Ending(reason="Preempted", message="for another", preempted="InClusterQueue")
CHOICE = admission_writes.Choice(cluster="a", epoch=2, term=5, policy=DisconnectPolicy.WAIT, check="dispatch")
CHECKS = ("dispatch", "budget")


def condition(type_: str, status: str) -> dict[str, Any]:
    known = {"type": type_, "status": status, "reason": "Said", "message": "", "lastTransitionTime": NOW}
    return {**known, "severity": f"of {type_}", "details": {"a": [1]}}


def check(name: str, state: str) -> dict[str, Any]:
    update = {"name": "main", "annotations": {"gatelift.dev/term": "4"}, "zone": "z1"}
    known = {"name": name, "state": state, "message": "", "lastTransitionTime": NOW, "podSetUpdates": [update]}
    return {**known, "expiresAt": f"of {name}"}


DOCUMENT: dict[str, Any] = {
    "metadata": {"name": "w", "namespace": "team", "uid": "u", "resourceVersion": "7"},
    "spec": {"podSets": [{"name": "main", "count": 1, "template": {}}], "queueName": "main"},
    "status": {
        "conditions": [condition("QuotaReserved", "True"), condition("Admitted", "True"), condition("Evicted", "True")],
        "admission": {
            "clusterQueue": "shared",
            "podSetAssignments": [
                {
                    "name": "main",
                    "flavors": {"cpu": "default", "memory": "default"},
                    "resourceUsage": {"cpu": "1500m", "memory": "1Gi", "pods": 1},
                    "count": 0,
                    "topologyAssignment": {"levels": ["rack"], "slices": [{"domainCount": 1}]},
                }
            ],
            "grantedBy": "another",
        },
        "admissionChecks": [check("dispatch", "Ready"), check("budget", "Retry")],
        "clusterName": "a",
        "nominatedClusterNames": ["a", "b"],
        "reclaimablePods": [{"name": "main", "count": 0, "since": NOW}],
        "requeueState": {"count": 0, "requeueAt": NOW, "factor": 2},
        "schedulingStats": {
            "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 1, "lastAt": NOW}],
            "attempts": 3,
        },
        "resourceRequests": [{"name": "main", "resources": {"cpu": "1500m"}, "perPod": {"cpu": "1500m"}}],
        "accumulatedPastExecutionTimeSeconds": 0,
        "unhealthyNodes": [{"name": "n1"}],
    },
}
"""Every field of a status, with values that look like none, and in every part a field that we do not know."""


def workload() -> Workload:
    read = read_object(WORKLOAD, json.dumps(DOCUMENT).encode())
    assert isinstance(read, Workload)
    return read


def released(of: Workload, requeue: release_writes.Requeue | None = None) -> bytes:
    used = release_writes.Used(check="dispatch", epoch=1, term=5)
    given_back = release_writes.GivenBack(
        evicted=ENDING, reason="Preempted", message="for another", requeue=requeue, used=used
    )
    return release_writes.release_write(of, given_back, NOW)


def reserve(admission: Admission) -> Reserve:
    return Reserve("u", ObjectKey("team", "w"), admission, CHECKS, 0.0, "", "Quota reserved", "")


WRITES: dict[str, Callable[[Workload], bytes]] = {
    "reservation": lambda of: admission_writes.reservation_write(of, reserve(ADMISSION), 2, NOW),
    "admission": lambda of: admission_writes.admission_write(of, reserve(ADMISSION), CHOICE, NOW),
    "adoption": lambda of: admission_writes.adoption_write(of, 6),
    "eviction": lambda of: release_writes.eviction_write(of, ENDING, NOW),
    "release": released,
    "waiting": lambda of: status_writes.waiting_write(of, "WaitingForQuota", "not now", NOW),
    "requeued": lambda of: status_writes.requeued_write(of, "BackoffFinished", "it is over", NOW),
    "reclaim": lambda of: status_writes.reclaim_write(of, (("main", 1),)),
    "finished": lambda of: status_writes.finished_write(of, "Succeeded", "all pods are done", NOW),
}
RESERVES = {"conditions", "admission", "admissionChecks", "resourceRequests"}
CHANGES: dict[str, set[str]] = {
    "reservation": {*RESERVES, "clusterName"},  # of a winner that somebody left there, it has none
    "admission": {*RESERVES, "clusterName", "nominatedClusterNames"},
    "adoption": {"admissionChecks"},
    "eviction": {"conditions", "schedulingStats"},
    "release": {
        *("conditions", "admission", "admissionChecks", "clusterName", "nominatedClusterNames", "reclaimablePods"),
        *("schedulingStats", "accumulatedPastExecutionTimeSeconds"),
    },
    "waiting": {"conditions"},
    "requeued": {"conditions", "requeueState"},
    "reclaim": {"reclaimablePods"},
    "finished": {"conditions"},
}
"""What each write is about."""


def unknown(entries: list[dict[str, Any]], key: str, names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {entry[key]: [entry[name] for name in names] for entry in entries if set(names) <= set(entry)}


@pytest.mark.parametrize("name", WRITES)
def test_no_write_of_a_status_loses_what_it_does_not_know(name: str) -> None:
    body = WRITES[name](workload())
    written = json.loads(body)["status"]
    assert "$more" not in body.decode()
    before = DOCUMENT["status"]
    for part, key, names in (
        ("conditions", "type", ("severity", "details")),
        ("admissionChecks", "name", ("expiresAt",)),
    ):
        if part in written:
            assert unknown(written[part], key, names) == unknown(before[part], key, names)
    assert written["schedulingStats"]["attempts"] == 3
    assert [one["lastAt"] for one in written["schedulingStats"]["evictions"]] == [NOW]
    assert written["requeueState"]["factor"] == 2


@pytest.mark.parametrize("name", WRITES)
def test_a_write_of_a_status_leaves_all_that_it_is_not_about_as_it_was(name: str) -> None:
    before, written = DOCUMENT["status"], json.loads(WRITES[name](workload()))["status"]
    kept = set(before) - CHANGES[name]
    assert {part: written.get(part) for part in kept} == {part: before[part] for part in kept}
    assert set(written) <= set(before)


def test_a_write_of_a_status_names_the_object_the_version_and_the_kind_that_it_replaces() -> None:
    body = json.loads(status_writes.finished_write(workload(), "Succeeded", "", NOW))
    assert (body["apiVersion"], body["kind"]) == ("kueue.x-k8s.io/v1beta2", "Workload")
    assert body["metadata"] == {"name": "w", "namespace": "team", "uid": "u", "resourceVersion": "7"}
    assert set(body) == {"apiVersion", "kind", "metadata", "status"}, "what is no status is not ours to say"


@pytest.mark.parametrize("name", ["reservation", "admission"])
def test_an_admission_that_is_written_again_keeps_what_others_have_put_into_it(name: str) -> None:
    of = workload()
    assert of.status.admission is not None
    same = known_part(of.status.admission)
    other = msgspec.structs.replace(same, cluster_queue="other")

    def written(admission: Admission) -> dict[str, Any]:
        if name == "reservation":
            body = admission_writes.reservation_write(of, reserve(admission), 2, NOW)
        else:
            body = admission_writes.admission_write(of, reserve(admission), CHOICE, NOW)
        found: dict[str, Any] = json.loads(body)["status"]["admission"]
        return found

    assert written(same) == DOCUMENT["status"]["admission"]
    (assignment,) = written(other)["podSetAssignments"]
    assert "grantedBy" not in written(other), "another grant is not what they spoke of"
    assert "topologyAssignment" not in assignment


def test_a_backoff_that_begins_keeps_what_others_have_put_beside_it() -> None:
    later = "2026-11-21T00:05:00Z"
    written = json.loads(released(workload(), release_writes.Requeue(count=3, at=later)))["status"]
    assert written["requeueState"] == {"count": 3, "requeueAt": later, "factor": 2}


def test_a_backoff_that_is_over_leaves_no_time_behind() -> None:
    written = json.loads(status_writes.requeued_write(workload(), "BackoffFinished", "it is over", NOW))["status"]
    assert written["requeueState"] == {"count": 0, "factor": 2}


def test_the_updates_that_a_check_asks_for_keep_what_we_do_not_know_of_them() -> None:
    written = json.loads(admission_writes.adoption_write(workload(), 6))["status"]["admissionChecks"]
    assert [each["podSetUpdates"] for each in written] == [
        [{"name": "main", "annotations": {"gatelift.dev/term": "6"}, "zone": "z1"}]
    ] * 2


def test_what_is_read_with_unknown_fields_says_the_same_as_without() -> None:
    plain = copy.deepcopy(DOCUMENT)
    for each in plain["status"]["conditions"]:
        del each["severity"], each["details"]
    read = read_object(WORKLOAD, json.dumps(plain).encode())
    assert isinstance(read, Workload)
    for ours, theirs in zip(workload().status.conditions, read.status.conditions, strict=True):
        assert (ours.type, ours.status, ours.reason) == (theirs.type, theirs.status, theirs.reason)
        assert theirs.more is None
        assert ours.more == {"severity": f"of {ours.type}", "details": {"a": [1]}}


def test_a_condition_that_says_what_it_said_is_no_change_though_it_has_unknown_fields() -> None:
    conditions = workload().status.conditions
    again = Condition(type="Admitted", status="True", reason="Said")
    assert put(conditions, again, "2027-01-01T00:00:00Z") is conditions
