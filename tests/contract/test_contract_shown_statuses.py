"""HD-460: what a worker says of a pod or Job reads, once written, as it was written: nothing is left to write.

What an API server stores otherwise than it was sent was never shown, so it was written again and again for ever.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.values.resources import JOB, POD, Resource
from support.servers.contract_api import Api, job, pod

pytestmark = pytest.mark.contract

START = "2026-01-01T00:00:00Z"
READY = {"type": "Ready", "status": "True"}
CONTAINER = {"name": "main", "ready": True, "restartCount": 0, "image": "x", "imageID": ""}

PODS: dict[str, dict[str, Any]] = {
    "plain": {"phase": "Running", "conditions": [READY]},
    "fraction": {"phase": "Running", "startTime": "2026-01-01T00:00:00.5Z", "conditions": [READY]},
    "offset": {"phase": "Running", "startTime": "2026-01-01T02:00:00+02:00", "conditions": [READY]},
    "year-1": {"phase": "Running", "startTime": "0001-01-01T00:00:00.5Z", "conditions": [READY]},
    "year-0": {"phase": "Running", "startTime": "0001-01-01T00:00:00+05:00", "conditions": [READY]},
    "year-10000": {"phase": "Running", "startTime": "9999-12-31T23:59:59-05:00", "conditions": [READY]},
    "epoch": {"phase": "Running", "startTime": "1970-01-01T00:00:00Z", "conditions": [READY]},
    "condition-fraction": {"phase": "Running", "conditions": [{**READY, "lastTransitionTime": f"{START[:-1]}.25Z"}]},
    "condition-bare": {"phase": "Running", "conditions": [{"type": "Ready"}]},
    "condition-empty": {"phase": "Running", "conditions": [{**READY, "reason": "", "message": ""}]},
    "empty-words": {"phase": "Running", "reason": "", "message": "", "conditions": [READY]},
    "empty-phase": {"phase": "", "conditions": [READY]},
    "empty-lists": {"phase": "Running", "conditions": [], "containerStatuses": [], "initContainerStatuses": []},
    "bare-container": {"phase": "Running", "containerStatuses": [{"name": "main"}]},
    "no-image": {
        "phase": "Running",
        "containerStatuses": [
            {"name": "main", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": START}}}
        ],
    },
    "waiting-empty": {"phase": "Pending", "containerStatuses": [{**CONTAINER, "state": {"waiting": {}}}]},
    "running-empty": {"phase": "Pending", "containerStatuses": [{**CONTAINER, "state": {"running": {}}}]},
    "terminated-empty": {"phase": "Pending", "containerStatuses": [{**CONTAINER, "state": {"terminated": {}}}]},
    "last-state-empty": {"phase": "Pending", "containerStatuses": [{**CONTAINER, "state": {}, "lastState": {}}]},
    "container-id-empty": {
        "phase": "Running",
        "containerStatuses": [{**CONTAINER, "containerID": "", "started": False, "restartCount": -1}],
    },
    "signal-0": {
        "phase": "Failed",
        "containerStatuses": [{**CONTAINER, "state": {"terminated": {"exitCode": 0, "signal": 0, "reason": ""}}}],
    },
    "two-alike": {"phase": "Running", "containerStatuses": [CONTAINER, CONTAINER]},
    "ephemeral": {"phase": "Running", "ephemeralContainerStatuses": [{**CONTAINER, "name": "e"}]},
}
JOBS: dict[str, dict[str, Any]] = {
    "plain": {"active": 1, "ready": 1, "startTime": START},
    "fraction": {"active": 1, "startTime": "2026-01-01T00:00:00.5Z"},
    "zeros": dict.fromkeys(("active", "ready", "succeeded", "failed", "terminating"), 0) | {"startTime": START},
    "empty-indexes": {"active": 1, "completedIndexes": "", "startTime": START},
    "empty-conditions": {"active": 1, "conditions": [], "startTime": START},
    "condition-fraction": {
        "active": 1,
        "startTime": START,
        "conditions": [{"type": "X", "status": "True", "lastProbeTime": f"{START[:-1]}.7Z"}],
    },
}


async def left_to_write(api: Api, kind: Kind[Any], resource: Resource, path: str, said: Any) -> bytes | None:
    """Write what shows a status; return what would be written after that."""

    async def patch() -> bytes | None:
        raw = json.dumps((await api.get(path)).ok()).encode()
        return kind.mirror_patch(read_object(resource, raw), raw, json.dumps(said).encode())

    body = await patch()
    if body is not None:
        (await api.patch(f"{path}/status", body)).ok()
    return await patch()


async def test_hd_460_what_a_worker_says_of_a_pod_comes_to_rest(api: Api) -> None:
    space = await api.namespace()
    left = {}
    for name, said in PODS.items():
        made = pod(name, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}], restartPolicy="Never")
        (await api.post(f"{space}/pods", made)).ok()
        left[name] = await left_to_write(api, POD_KIND, POD, f"{space}/pods/{name}", said)
    assert left == dict.fromkeys(PODS)


async def test_hd_460_what_a_worker_says_of_a_job_comes_to_rest(api: Api) -> None:
    jobs = f"/apis/batch/v1{(await api.namespace()).removeprefix('/api/v1')}/jobs"
    left = {}
    for name, said in JOBS.items():
        (await api.post(jobs, job(name, managedBy="kueue.x-k8s.io/multikueue"))).ok()
        left[name] = await left_to_write(api, JOB_KIND, JOB, f"{jobs}/{name}", said)
    assert left == dict.fromkeys(JOBS)
