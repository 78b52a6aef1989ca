"""The Workload object made for a user's object, as Kueue makes it. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, written
from gatelift_kinds.shared.patches import decode, encode
from gatelift_kinds.shared.values import Priority
from gatelift_kube.objects.core import Container, PodSpec
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import WORKLOAD, Resource
from gatelift_wire.values.keys import ANNOTATION_CLUSTER, ANNOTATION_DISCONNECT, ANNOTATION_EPOCH

FIRST_EPOCH = "1"


def workload_document(
    *,
    name: str,
    owner: Resource,
    meta: ObjectMeta,
    queue: str,
    priority: Priority,
    pod_sets: list[dict[str, Any]],
) -> bytes:
    """Return the complete Workload, owned by the object with this metadata, with our epoch and Kueue's finalizer."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": meta.namespace,
        "annotations": {**copied(meta.annotations), ANNOTATION_OWNER: written(owner, meta)},
        "ownerReferences": [
            {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": meta.name,
                "uid": meta.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if len(meta.uid) <= markers.LABEL_VALUE_LENGTH_MAX:
        metadata["labels"] = {markers.JOB_UID: meta.uid}
    limit = markers.max_execution_seconds(meta.labels)
    return assembled(metadata, pod_sets=pod_sets, queue=queue, priority=priority, limit=limit)


def assembled(
    metadata: dict[str, Any], *, pod_sets: list[dict[str, Any]], queue: str, priority: Priority, limit: int | None
) -> bytes:
    """Return a Workload of this metadata in its first epoch, with Kueue's finalizer; `limit` in seconds."""
    spec: dict[str, Any] = {"active": True, "podSets": pod_sets, "priority": priority.value}
    if queue:
        spec["queueName"] = queue
    if priority.ref is not None:
        spec["priorityClassRef"] = msgspec.to_builtins(priority.ref)
    if limit is not None:
        spec["maximumExecutionTimeSeconds"] = limit
    annotations = {**metadata.get("annotations", {}), ANNOTATION_EPOCH: FIRST_EPOCH}
    metadata = {**metadata, "annotations": annotations, "finalizers": [markers.RESOURCE_IN_USE]}
    return encode({"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind, "metadata": metadata, "spec": spec})


def labelled(document: bytes, labels: Mapping[str, str], keys: Sequence[str]) -> bytes:
    """Return a Workload that has those of an object's labels that are copied; its own ones stay."""
    found = {key: labels[key] for key in keys if key in labels}
    if not found:
        return document
    workload = decode(document)
    workload["metadata"]["labels"] = {**found, **workload["metadata"].get("labels", {})}
    return encode(workload)


def pod_set_document(
    name: str, count: int, metadata: Mapping[str, Any], spec: Mapping[str, Any], *, min_count: int | None = None
) -> dict[str, Any]:
    """Return one pod set with its whole template; of the template's metadata, labels and annotations."""
    marks: dict[str, Any] = {}
    if metadata.get("labels"):
        marks["labels"] = metadata["labels"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key != markers.LAST_APPLIED
    }
    if annotations:
        marks["annotations"] = annotations
    template: dict[str, Any] = {"spec": spec}
    if marks:
        template["metadata"] = marks
    smallest = {} if min_count is None else {"minCount": min_count}
    return {"name": name, "count": count, **smallest, "template": template}


def describes(workload: Workload, meta: ObjectMeta, shapes: tuple[PodSet, ...], *, started: bool) -> bool:
    """Return whether the Workload says the same as the object: pod sets, counts, execution limit, pods' needs.

    `started` objects have been given a flavor's placement, so selectors and tolerations are compared before only.
    """
    if workload.spec.maximum_execution_time_seconds != markers.max_execution_seconds(meta.labels):
        return False
    if len(workload.spec.pod_sets) != len(shapes):
        return False
    return all(
        (mine.name, mine.count, mine.min_count) == (theirs.name, theirs.count, theirs.min_count)
        and same_needs(mine, theirs, started=started)
        for mine, theirs in zip(shapes, workload.spec.pod_sets, strict=True)
    )


def same_needs(mine: PodSet, theirs: PodSet, *, started: bool) -> bool:
    """Return whether two pod sets ask for the same per pod; where it is `started`, wherever that shall run."""
    a, b = mine.template.spec, theirs.template.spec
    if _needs(a) != _needs(b):
        return False
    return started or (a.node_selector, a.affinity, a.tolerations) == (b.node_selector, b.affinity, b.tolerations)


def needs_digest(spec: PodSpec) -> str:
    """Return the digest of what a pod needs: the same for two specs for which `same_needs` holds wherever they run."""
    return hashlib.sha256(msgspec.json.encode(_needs(spec), order="sorted")).hexdigest()


def _needs(spec: PodSpec) -> tuple[Any, ...]:
    return (
        tuple(_container(one) for one in spec.containers),
        tuple(_container(one) for one in spec.init_containers),
        spec.overhead,
        spec.resources,
        spec.runtime_class_name,
        spec.priority,
    )


def _container(one: Container) -> tuple[Any, ...]:
    return (one.resources, one.restart_policy)


def copied(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what goes on to the Workload: provisioning parameters, admission gates, wishes about placement."""
    wanted = {markers.ADMISSION_GATED_BY, ANNOTATION_CLUSTER, ANNOTATION_DISCONNECT}
    return {
        key: value for key, value in annotations.items() if key in wanted or key.startswith(markers.PROVISIONING_PREFIX)
    }
