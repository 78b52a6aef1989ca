"""What only a newer API or another controller knows of a Workload's status is still there after each of our writes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core import record
from gatelift.core.attempts import Ending
from gatelift_kube.conditions import put
from gatelift_kube.decoding import read_object
from gatelift_kube.objects.kueue import Admission, Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.resources import WORKLOAD
from gatelift_wire.messages import DisconnectPolicy

NOW = "2026-11-21T00:00:00Z"
ADMISSION = Admission(cluster_queue="shared")
ENDING = Ending(reason="Preempted", message="for another", preempted="InClusterQueue")
CHOICE = record.Choice(cluster="a", epoch=2, term=5, policy=DisconnectPolicy.WAIT, check="dispatch")
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
        "admission": {"clusterQueue": "shared"},
        "admissionChecks": [check("dispatch", "Ready"), check("budget", "Retry")],
        "schedulingStats": {
            "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 1, "lastAt": NOW}],
        },
    },
}
"""A Workload with a field that we do not know in every list that we write whole."""


def workload() -> Workload:
    read = read_object(WORKLOAD, json.dumps(DOCUMENT).encode())
    assert isinstance(read, Workload)
    return read


def released(of: Workload) -> bytes:
    used = record.Used(check="dispatch", epoch=1, term=5)
    return record.release_patch(
        of, evicted=ENDING, reason="Preempted", message="for another", requeue=None, used=used, wall=NOW
    )


WRITES: dict[str, Callable[[Workload], bytes | None]] = {
    "reservation": lambda of: record.reservation_patch(of, ADMISSION, CHECKS, "Quota reserved", NOW),
    "admission": lambda of: record.admission_patch(of, ADMISSION, CHECKS, "Quota reserved", CHOICE, NOW),
    "adoption": lambda of: record.adoption_patch(of, 6),
    "eviction": lambda of: record.eviction_patch(of, ENDING, NOW),
    "release": released,
    "waiting": lambda of: record.waiting_patch(of, "WaitingForQuota", "not now", NOW),
    "requeued": lambda of: record.requeued_patch(of, "BackoffFinished", "it is over", NOW),
    "finished": lambda of: record.finished_patch(of, "Succeeded", "all pods are done", NOW),
}


def unknown(entries: list[dict[str, Any]], key: str, names: tuple[str, ...]) -> dict[str, list[Any]]:
    return {entry[key]: [entry[name] for name in names] for entry in entries if set(names) <= set(entry)}


@pytest.mark.parametrize("name", WRITES)
def test_no_write_of_a_status_loses_what_it_does_not_know(name: str) -> None:
    body = WRITES[name](workload())
    assert body is not None
    written = json.loads(body)["status"]
    assert "$more" not in body.decode()
    before = DOCUMENT["status"]
    for part, key, names in (
        ("conditions", "type", ("severity", "details")),
        ("admissionChecks", "name", ("expiresAt",)),
    ):
        if part in written:
            assert unknown(written[part], key, names) == unknown(before[part], key, names)
    for stats in (written.get("schedulingStats") or {}).get("evictions", []):
        assert (stats["reason"], stats["count"], stats["lastAt"]) == ("Preempted", 2, NOW)


def test_the_updates_that_a_check_asks_for_keep_what_we_do_not_know_of_them() -> None:
    written = json.loads(record.adoption_patch(workload(), 6))["status"]["admissionChecks"]
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
