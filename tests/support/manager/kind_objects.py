"""Users' and workers' objects as an API server serves them, for tests of the kinds."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_sandbox.embedded.patching import json_patch, merge
from gatelift_wire.values.keys import PlacementKey

Json = dict[str, Any]

KEY = PlacementKey("wl-uid", 3)
GATE = {"name": "kueue.x-k8s.io/admission"}
QUEUED = {"kueue.x-k8s.io/queue-name": "q"}
WALL = "2026-01-02T03:04:05Z"


def a_pod(name: str = "p", *, gates: tuple[Json, ...] = (GATE,), **metadata: Any) -> Json:
    """Return a pod as the webhook leaves it: queued, managed, gated."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "labels": {**QUEUED, "kueue.x-k8s.io/managed": "true", "app": "x"},
            "finalizers": ["kueue.x-k8s.io/managed"],
            **metadata,
        },
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": list(gates),
            "tolerations": [{"key": "own", "operator": "Exists"}],
        },
        "status": {
            "phase": "Pending",
            "qosClass": "Burstable",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
        },
    }


def a_job(name: str = "j", **spec: Any) -> Json:
    """Return a Job as the webhook leaves it: queued and suspended."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "generation": 1,
            "labels": {**QUEUED, "batch.kubernetes.io/controller-uid": f"uid-{name}", "team": "a"},
        },
        "spec": {
            "suspend": True,
            "parallelism": 3,
            "completions": 5,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": f"uid-{name}"}},
            "template": {
                "metadata": {"labels": {"job-name": name, "app": "x"}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                    "nodeSelector": {"zone": "z"},
                },
            },
            **spec,
        },
        "status": {},
    }


def condition(type_: str, status: str = "True", **more: str) -> Json:
    return {"type": type_, "status": status, "reason": "R", "message": "M", "lastTransitionTime": WALL, **more}


def raw(document: Json) -> bytes:
    return json.dumps(document).encode()


def pod(document: Json) -> Pod:
    return msgspec.convert(document, Pod)


def job(document: Json) -> Job:
    return msgspec.convert(document, Job)


def workload(body: bytes) -> Workload:
    return msgspec.json.decode(body, type=Workload)


def patched(document: Json, body: bytes) -> Json:
    """Return the object after a JSON patch, as the API server would apply it; its errors when a test fails."""
    return json_patch(json.loads(json.dumps(document)), json.loads(body))


def merged(document: Json, body: bytes) -> Json:
    """Return the object after a merge patch."""
    result: Json = merge(json.loads(json.dumps(document)), json.loads(body))
    return result
