"""What the policies `gatelift-manager-pods` and `gatelift-manager-jobs` ask of what the manager changes, in Python.

The embedded store evaluates no policies. Simulated management clusters hold every write of the manager and of its agent
of `local` to this, so that no history needs a write that they refuse (IS-54); that all say the same is shown on real
API servers (`tests/e2e/test_manager_marks.py`), by the cases below: each is a document without a name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
PREFIXES = ("gatelift.dev/", "kueue.x-k8s.io/")
GATE = "kueue.x-k8s.io/admission"
PLACED = "placed-as.gatelift.dev/"
ELSEWHERE = "kueue.x-k8s.io/multikueue"


def bears_a_mark(document: Mapping[str, Any]) -> bool:
    """Return whether a Pod or Job has a label, annotation, finalizer, gate or toleration of ours, or runs elsewhere."""
    spec: Json = document.get("spec") or {}
    template: Json = spec.get("template") or {}
    return (
        _named(document)
        or spec.get("managedBy") == ELSEWHERE
        or any(one.get("name") == GATE for one in spec.get("schedulingGates") or [])
        or _named(template)
        or any(_placed(one) for one in (spec, template.get("spec") or {}))
    )


def _named(document: Mapping[str, Any]) -> bool:
    meta: Json = document.get("metadata") or {}
    names = [name for part in ("labels", "annotations", "finalizers") for name in meta.get(part) or ()]
    return any(name.startswith(PREFIXES) for name in names)


def _placed(spec: Mapping[str, Any]) -> bool:
    return any(PLACED in one.get("key", "") for one in spec.get("tolerations") or [])


def _pod(meta: Json | None = None, **spec: Any) -> Json:
    pod = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "x"}, **(meta or {})}, "spec": pod}


def _job(meta: Json | None = None, template: Json | None = None, pod: Json | None = None, **spec: Any) -> Json:
    inner = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never", **(pod or {})}
    job = {"suspend": True, "template": {"metadata": template or {}, "spec": inner}, **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": {"app": "x"}, **(meta or {})}, "spec": job}


_TOLERATION = {"key": f"job-1.{PLACED}pod_uid", "operator": "Exists", "effect": "NoSchedule"}
_OTHERS = {"key": "example.com/gpu", "operator": "Exists"}
MARKED: dict[str, Json] = {
    "pod-queue": _pod({"labels": {"kueue.x-k8s.io/queue-name": "q"}}),
    "pod-run": _pod({"labels": {"gatelift.dev/origin": "home"}}),
    "pod-annotation": _pod({"annotations": {"gatelift.dev/placed-on": "one"}}),
    "pod-finalizer": _pod({"finalizers": ["kueue.x-k8s.io/managed"]}),
    "pod-gate": _pod(schedulingGates=[{"name": GATE}]),
    "pod-toleration": _pod(tolerations=[_OTHERS, _TOLERATION]),
    "job-queue": _job({"labels": {"kueue.x-k8s.io/queue-name": "q"}}),
    "job-annotation": _job({"annotations": {"gatelift.dev/shown": "u@1"}}),
    "job-elsewhere": _job(managedBy=ELSEWHERE),
    "job-template-label": _job(template={"labels": {"gatelift.dev/origin": "home"}}),
    "job-template-annotation": _job(template={"annotations": {"gatelift.dev/x": "y"}}),
    "job-toleration": _job(pod={"tolerations": [_TOLERATION]}),
}
UNMARKED: dict[str, Json] = {
    "pod": _pod(),
    "pod-bare": {**_pod(), "metadata": {}},
    "pod-of-others": _pod(
        {"annotations": {"example.com/gatelift.dev": "x"}, "finalizers": ["example.com/kueue.x-k8s.io"]},
        schedulingGates=[{"name": "example.com/gate"}],
        tolerations=[_OTHERS, {"operator": "Exists", "effect": "NoExecute"}],
    ),
    "job": _job(),
    "job-of-others": _job(managedBy="example.com/runner", pod={"tolerations": [_OTHERS]}),
}
