"""What a pod says of its end before it is deleted (PG-26): each reason of a stop, and a write that loses nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kinds.shared import termination
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.core import Pod
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.patching import json_patch

Json = dict[str, Any]


def a_pod(*conditions: Json) -> Json:
    status: Json = {"phase": "Running", **({"conditions": list(conditions)} if conditions else {})}
    return {"metadata": {"name": "p", "uid": "u", "resourceVersion": "7"}, "spec": {}, "status": status}


def said(document: Json, reason: str = "NotAdmitted") -> PatchStep | None:
    raw = json.dumps(document).encode()
    return termination.said_step(msgspec.json.decode(raw, type=Pod).metadata, raw, reason, "why")


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("Preempted", "WorkloadEvictedDueToPreempted"),
        ("PodsReadyTimeout", "WorkloadEvictedDueToPodsReadyTimeout"),
        ("AdmissionCheck", "WorkloadEvictedDueToAdmissionCheck"),
        ("ClusterQueueStopped", "WorkloadEvictedDueToClusterQueueStopped"),
        ("LocalQueueStopped", "WorkloadEvictedDueToLocalQueueStopped"),
        ("NodeFailures", "WorkloadEvictedDueToNodeFailures"),
        ("Deactivated", "WorkloadEvictedDueToDeactivated"),
        (
            "DeactivatedDueToMaximumExecutionTimeExceeded",
            "WorkloadEvictedDueToDeactivatedDueToMaximumExecutionTimeExceeded",
        ),
        ("NoMatchingWorkload", "NoMatchingWorkload"),
        ("WorkloadDeleted", "WorkloadDeleted"),
        ("OwnerDeleted", "WorkloadDeleted"),
        ("NotLive", "NotAdmitted"),
        ("Finished", "NotAdmitted"),
        ("Forgotten", "NotAdmitted"),
        ("Superseded", "NotAdmitted"),
        ("", "NotAdmitted"),
        ("no word", "NotAdmitted"),
        ("x" * 1_000, "NotAdmitted"),
    ],
)
def test_pg_26_the_reason_of_each_stop_is_said_as_kueue_says_it(stop: str, reason: str) -> None:
    assert termination.reason_of(stop) == reason


def test_pg_26_it_is_added_to_what_a_kubelet_has_said_by_then() -> None:
    step = said(a_pod({"type": "Ready", "status": "True"}))
    assert step is not None
    assert step.subresource == "status"
    since = a_pod({"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"})
    since["metadata"]["resourceVersion"] = "8"
    after = json_patch(since, json.loads(step.body))
    assert [one["type"] for one in after["status"]["conditions"]] == ["Ready", "Initialized", "TerminationTarget"]
    assert after["status"]["conditions"][-1]["reason"] == "NotAdmitted"


def test_pg_26_another_pod_of_that_name_is_not_told() -> None:
    step = said(a_pod({"type": "Ready", "status": "True"}))
    assert step is not None
    other = a_pod({"type": "Ready", "status": "True"})
    other["metadata"]["uid"] = "another"
    with pytest.raises(RequestRefusedError):
        json_patch(other, json.loads(step.body))


@pytest.mark.parametrize("old", [{"type": "TerminationTarget", "status": "True", "reason": "Older"}, None])
def test_pg_26_where_the_list_is_written_anew_it_is_for_the_version_that_was_seen(old: Json | None) -> None:
    before = a_pod(old) if old else a_pod()
    step = said(before)
    assert step is not None
    after = json_patch(before, json.loads(step.body))
    assert [one["reason"] for one in after["status"]["conditions"]] == ["NotAdmitted"]
    since = a_pod({"type": "Ready", "status": "True"})
    since["metadata"]["resourceVersion"] = "8"
    with pytest.raises(RequestRefusedError):
        json_patch(since, json.loads(step.body))


def test_pg_26_what_is_said_already_is_not_said_again() -> None:
    assert said(a_pod({"type": "TerminationTarget", "status": "True", "reason": "NotAdmitted"})) is None
