"""Kueue's objects in version v1beta1 and in v1beta2, either way: renamed fields, one list in place of another. Pure.

What v1beta1 cannot say is kept under its name of v1beta2, so that nothing is lost by a client that reads and writes the
older version. What only v1beta1 had and Kueue gave up (`pendingWorkloadsStatus`, `flavors` in a LocalQueue's status) is
dropped. Neighbours: `server` takes the questions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gatelift.webhooks.envelope import Envelope
from gatelift_kube.values.resources import KUEUE_GROUP

Json = dict[str, Any]
OLD, NEW = f"{KUEUE_GROUP}/v1beta1", f"{KUEUE_GROUP}/v1beta2"
API_VERSION = "apiextensions.k8s.io/v1"
_SOURCES = {
    f"{KUEUE_GROUP}/workloadpriorityclass": (KUEUE_GROUP, "WorkloadPriorityClass"),
    "scheduling.k8s.io/priorityclass": ("scheduling.k8s.io", "PriorityClass"),
}
_SEARCH_ON = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
"""What v1beta1 allowed for whenCanBorrow and whenCanPreempt besides."""


class ConversionError(Exception):
    """The object cannot be converted; the text says why, in one line."""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Json]


_REVIEW = Envelope(API_VERSION, "ConversionReview", _Request)


def answer(body: bytes | bytearray) -> bytes:
    """Answer a ConversionReview. BadReviewError: it is none, so there is nobody to answer to."""
    request = _REVIEW.open(body)
    response: Json = {"uid": request.uid}
    try:
        response["convertedObjects"] = [converted(one, request.desired_api_version) for one in request.objects]
        response["result"] = {"status": "Success"}
    except ConversionError as error:
        response = {"uid": request.uid, "result": {"status": "Failure", "message": str(error)}}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "ConversionReview", "response": response})


def converted(document: Json, version: str) -> Json:
    """Return an object in another version, metadata untouched. ConversionError names what cannot be converted."""
    is_version = document.get("apiVersion")
    if version not in (OLD, NEW) or is_version not in (OLD, NEW):
        raise ConversionError(f"from {is_version} to {version}: only {OLD} and {NEW} are known")
    new = {**document, "apiVersion": version}
    steps = _STEPS.get(str(document.get("kind")))
    if is_version == version or steps is None:
        return new
    step = steps[0] if version == NEW else steps[1]
    for part in ("spec", "status"):
        if isinstance(new.get(part), dict):
            new[part] = dict(new[part])
    try:
        step(new.get("spec") or {}, new.get("status") or {})
    except (AttributeError, KeyError, TypeError) as error:
        raise ConversionError(f"{document.get('kind')}: a field has another type than the API says: {error}") from error
    return new


def _move(fields: Json, old: str, new: str) -> None:
    if old in fields:
        fields[new] = fields.pop(old)


def _queue_up(spec: Json, status: Json) -> None:
    _move(spec, "cohort", "cohortName")
    flat = spec.pop("admissionChecks", None)
    if flat and not spec.get("admissionChecksStrategy"):
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in flat]}
    search = spec.get("flavorFungibility")
    if search:
        spec["flavorFungibility"] = {name: _SEARCH_ON.get(value, value) for name, value in search.items()}
    status.pop("pendingWorkloadsStatus", None)


def _queue_down(spec: Json, _status: Json) -> None:
    _move(spec, "cohortName", "cohort")


def _local_up(_spec: Json, status: Json) -> None:
    _move(status, "flavorUsage", "flavorsUsage")
    status.pop("flavors", None)


def _local_down(_spec: Json, status: Json) -> None:
    _move(status, "flavorsUsage", "flavorUsage")


def _cluster_up(spec: Json, _status: Json) -> None:
    source = {name: spec.pop(name) for name in ("kubeConfig", "clusterProfileRef") if name in spec}
    if source:
        spec["clusterSource"] = source


def _cluster_down(spec: Json, _status: Json) -> None:
    spec.update(spec.pop("clusterSource", None) or {})


def _workload_up(spec: Json, status: Json) -> None:
    name, source = spec.pop("priorityClassName", ""), spec.pop("priorityClassSource", "")
    if name and source in _SOURCES:
        group, kind = _SOURCES[source]
        spec["priorityClassRef"] = {"group": group, "kind": kind, "name": name}
    _move(status, "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds")


def _workload_down(spec: Json, status: Json) -> None:
    ref = spec.pop("priorityClassRef", None)
    if ref:
        spec["priorityClassName"] = ref["name"]
        spec["priorityClassSource"] = next(
            source for source, known in _SOURCES.items() if known == (ref["group"], ref["kind"])
        )
    _move(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")


_STEPS: dict[str, tuple[Callable[[Json, Json], None], Callable[[Json, Json], None]]] = {
    "ClusterQueue": (_queue_up, _queue_down),
    "LocalQueue": (_local_up, _local_down),
    "MultiKueueCluster": (_cluster_up, _cluster_down),
    "Workload": (_workload_up, _workload_down),
}
"""Up to v1beta2 and down to v1beta1; kinds that are not here look the same in both."""
