"""Pods of elastic work: which wait at its gate, in which order they are let go, and how many are too many. Pure.

Let go is a pod without the gate. Its controller alone says whose it is, and its label which pod set it is of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.patches import (
    Operation,
    add_to_map,
    decode,
    encode,
    guards,
    merged_selector,
    merged_tolerations,
    remove_from_list,
)
from gatelift_kinds.shared.pods import holds_resources, leaves
from gatelift_kinds.shared.values import PodSetStart
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.numbers import whole

_GATES = ("spec", "schedulingGates")
INDEX = "batch.kubernetes.io/job-completion-index"
"""On each pod of an Indexed Job, as annotation, and as label from Kubernetes 1.28 on."""
_NO_INDEX = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """How many pods of a pod set are let go above a count.

    `going_on`: those that nobody has ended yet; `holding`: those, and what stops and still occupies a node.
    """

    pod_set: str
    going_on: int
    holding: int


def is_gated(pod: Pod) -> bool:
    """Return whether it waits at the gate of elastic work, whatever other gates it has."""
    return any(gate.name == markers.ELASTIC_JOB for gate in pod.spec.scheduling_gates)


def waits_for_size(pod: Pod) -> bool:
    """Return whether it waits at the gate of elastic work and at no other."""
    return {gate.name for gate in pod.spec.scheduling_gates} == {markers.ELASTIC_JOB}


def of(uid: str, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return those of the pods whose controller is the object of this UID."""
    return tuple(pod for pod in pods if any(one.controller and one.uid == uid for one in pod.metadata.owner_references))


def pod_set_of(pod: Pod) -> str:
    """Return of which pod set a pod says that it is, "" where it does not: then it is let go never."""
    return pod.metadata.labels.get(markers.POD_SET, "")


def in_lift_order(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods that wait at the gate and can be let go, in order: lowest index first, then oldest first.

    So a later shrink, which ends the highest indexes and the youngest pods, finds gated ones.
    """
    waiting = [pod for pod in pods if is_gated(pod) and pod_set_of(pod) and not leaves(pod)]
    return tuple(sorted(waiting, key=_place))


def _place(pod: Pod) -> tuple[int, str, str, str]:
    meta = pod.metadata
    index = whole(meta.annotations.get(INDEX) or meta.labels.get(INDEX, ""))
    return _NO_INDEX if index is None else index, meta.creation_timestamp or "", meta.name, meta.uid


def surplus(pod_set: str, count: int, pods: Iterable[Pod]) -> Surplus:
    """Return how many pods of a pod set are let go above this count; one that names none is counted in each."""
    let_go = [pod for pod in pods if not is_gated(pod) and pod_set_of(pod) in {"", pod_set} and holds_resources(pod)]
    going_on = sum(1 for pod in let_go if not leaves(pod))
    return Surplus(pod_set=pod_set, going_on=max(0, going_on - count), holding=max(0, len(let_go) - count))


def ungate_patch(pod: Pod, raw: bytes, start: PodSetStart) -> bytes:
    """Return the JSON patch, for the version that was seen, that takes the gate off, and no other one.

    With what the slice that admits it adds to its pods: an earlier one may have put other labels and annotations into
    the template. MergeConflictError: its node selector contradicts the pod, which waits on.
    """
    merged_selector(pod.spec.node_selector, start.node_selector, "spec.nodeSelector")
    present = decode(raw)["spec"].get("tolerations") or []
    tolerations = merged_tolerations(present, start.tolerations)
    operations: list[Operation] = [
        *guards(pod.metadata),
        *add_to_map(("metadata", "labels"), pod.metadata.labels, start.labels),
        *add_to_map(("metadata", "annotations"), pod.metadata.annotations, start.annotations),
        *add_to_map(("spec", "nodeSelector"), pod.spec.node_selector, start.node_selector),
    ]
    if tolerations != present:
        operations.append({"op": "add", "path": "/spec/tolerations", "value": tolerations})
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    return encode([*operations, *remove_from_list(_GATES, gates, (markers.ELASTIC_JOB,), key="name")])
