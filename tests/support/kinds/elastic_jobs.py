"""Elastic Jobs (KEP-77) as an API server serves them: at home, at a worker, and their first slice."""

from __future__ import annotations

import json
from typing import Any

from gatelift_kinds.registry import ELASTIC_JOB_KIND as KIND
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.values import Placing, PodSetStart, Priority
from gatelift_kube.objects.kueue import Workload
from support.manager.kind_objects import KEY, Json, a_job, job, raw, workload

ELASTIC = markers.ELASTIC_JOB
GATE = {"name": ELASTIC}
MULTIKUEUE: Json = {"managedBy": "kueue.x-k8s.io/multikueue"}


def an_elastic(name: str = "j", *, generation: int = 1, **spec: Any) -> Json:
    """Return a Job as the webhook leaves one that asks to be elastic: suspended, and its template gated."""
    document = a_job(name, **spec)
    document["metadata"] |= {"annotations": {ELASTIC: "true"}, "generation": generation}
    document["spec"]["template"]["spec"]["schedulingGates"] = [GATE]
    return document


def a_placing(count: int | None = 3, size: int | None = 1) -> Placing:
    start = PodSetStart(pod_set="main", count=count)
    return Placing(key=KEY, origin="home", namespace="ns", starts=(start,), size=size)


def at_worker(user: Json, count: int = 3, size: int | None = 1) -> Json:
    (part,) = KIND.parts(job(user), raw(user), {"main": count})
    made: Json = json.loads(KIND.document(part, a_placing(count, size)))
    made["metadata"] |= {"uid": "uid-w", "resourceVersion": "9", "generation": 1}
    return {**made, "status": {}}


def first_slice(user: Json, kind: Any = KIND) -> Json:
    made: Json = json.loads(kind.workload_document(job(user), raw(user), Priority(value=7)))
    return made


def stored(document: Json, uid: str = "uid-1") -> Json:
    meta = {**document["metadata"], "uid": uid, "resourceVersion": "5"}
    return {**document, "metadata": meta}


def as_workload(document: Json) -> Workload:
    return workload(raw(document))
