"""When all of an object is on its way out, by deletions that were accepted (KEP-6143; Kueue's PC-109 to PC-115)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kinds.job.kind import JobKind
from gatelift_kinds.job.status import stop_asked_body
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared.patches import stop_mark
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.keys import PlacementKey

KEY = PlacementKey("uid-1", 1)
LATER = "2026-01-01T00:01:00Z"


def a_pod(phase: str = "Running", *, deleted: bool = False, node: str = "n") -> Pod:
    meta: dict[str, Any] = {"name": "p", "namespace": "team", "uid": "u"}
    if deleted:
        meta |= {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 60}
    document = {"metadata": meta, "spec": {"nodeName": node, "containers": []}, "status": {"phase": phase}}
    return msgspec.json.decode(msgspec.json.encode(document), type=Pod)


@pytest.mark.parametrize(
    ("pod", "leaves"),
    [
        pytest.param(a_pod(), False, id="it runs, and nobody has deleted it"),
        pytest.param(a_pod(deleted=True), True, id="it runs, within its grace (PC-112)"),
        pytest.param(a_pod("Succeeded"), True, id="it has succeeded (PC-110)"),
        pytest.param(a_pod("Failed"), True, id="it has failed (PC-110)"),
        pytest.param(a_pod("Pending"), False, id="it is bound, pulls its image, and nobody has deleted it"),
        pytest.param(a_pod("Pending", deleted=True), True, id="it is bound, and deleted before it started"),
        pytest.param(a_pod("Pending", deleted=True, node=""), True, id="it was deleted before it was bound"),
    ],
)
def test_a_pod_leaves_once_its_deletion_is_accepted(pod: Pod, leaves: bool) -> None:
    assert PodKind().leaving(pod, (), KEY) is leaves


def a_job(*, active: int = 0, suspended: bool = True, seen: bool = True) -> Job:
    asked = msgspec.json.decode(stop_asked_body(msgspec.json.decode(b'{"metadata":{}}', type=Job), KEY))
    conditions = asked["status"]["conditions"] if seen else []
    said = [{"type": "Suspended", "status": "True"}] if seen else []
    document = {
        "metadata": {"name": "j", "namespace": "team", "uid": "u", "generation": 3, "labels": stop_mark(KEY)},
        "spec": {"suspend": suspended, "template": {"spec": {"containers": []}}},
        "status": {"active": active, "terminating": 2, "conditions": [*conditions, *said]},
    }
    return msgspec.json.decode(msgspec.json.encode(document), type=Job)


LEAVING = (a_pod(deleted=True), a_pod("Failed"))


@pytest.mark.parametrize(
    ("job", "pods", "leaves"),
    [
        pytest.param(
            a_job(), LEAVING, True, id="its controller counts none as active, and terminating ones do not count"
        ),
        pytest.param(a_job(), (*LEAVING, a_pod()), False, id="one of its pods is not deleted"),
        pytest.param(a_job(active=1), LEAVING, False, id="its controller counts one that nobody has seen"),
        pytest.param(a_job(seen=False), LEAVING, False, id="its controller has not seen that it is suspended"),
        pytest.param(a_job(suspended=False), LEAVING, False, id="somebody has let it go again"),
    ],
)
def test_a_job_leaves_by_kueues_rule_once_each_pod_that_is_known_does(
    job: Job, pods: tuple[Pod, ...], leaves: bool
) -> None:
    """QR-5: Kueue's rule for Jobs."""
    assert JobKind().leaving(job, pods, KEY) is leaves
