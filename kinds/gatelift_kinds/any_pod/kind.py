"""A pod, alone or in a group: held back by a gate, let go by its removal, over when Succeeded or Failed. Pure.

Kueue's behaviour: pods-and-slices 2.4 to 2.9; status on the way back: MultiKueue's rules for pods (the user's pod
stays gated for ever when the run is elsewhere).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatelift_kinds.any_pod import charged as pod_charged
from gatelift_kinds.any_pod import status as pod_status
from gatelift_kinds.any_pod.hook import HOOK
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers, placed_mark, placed_on, pod_trouble, shown_status, termination
from gatelift_kinds.shared.hooks import Hook
from gatelift_kinds.shared.patches import (
    Json,
    Operation,
    add_to_map,
    decode,
    encode,
    guards,
    merged_selector,
    merged_tolerations,
    read_as,
    remove_from_list,
    status_of,
    status_patch,
    stop_mark,
    stop_marked,
    without_finalizer,
)
from gatelift_kinds.shared.pods import leaves, over, unbound_and_deleting
from gatelift_kinds.shared.values import (
    Charged,
    DeleteStep,
    ObjectEnd,
    Part,
    PatchStep,
    Placing,
    PodSpecAt,
    PriorityNames,
    Seen,
    Sight,
    Step,
)
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Pod, PodStatus
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import JOB, POD, Resource
from gatelift_wire.values.keys import FINALIZER_REPORT, PlacementKey

_GATES = ("spec", "schedulingGates")
_OF_CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_UNGATED = (
    f"spec.schedulingGates: without {markers.ADMISSION_GATE} the pod runs where it is: make it anew while the webhook "
    f"is asked, without the label {markers.MANAGED}"
)


UNREACHABLE = "ClusterUnreachable"
"""Reason of Ready=Unknown on a user's pod whose cluster nobody hears of."""


class AnyPodKind(Kind[Pod]):
    """See `gatelift_kinds.kind.Kind`. What its Workload is, and what of its pod set it travels as, says each kind.

    What is not said here is nothing: a pod runs wherever it is let go, has one size and is charged as it is, stays
    gated at home when it runs elsewhere, is stopped by deleting it, and is never put back.
    """

    resource: Resource = POD
    struct: type[Any] = Pod
    pod_specs: tuple[PodSpecAt, ...] = (PodSpecAt(markers.DEFAULT_POD_SET),)
    sight: Sight = Sight(
        labels=f"{markers.MANAGED}={markers.MANAGED_VALUE}",
        unmarked=f"{markers.QUEUE_NAME},{markers.MANAGED}!={markers.MANAGED_VALUE}",
        lost=f"!{markers.QUEUE_NAME},{markers.MANAGED}!={markers.MANAGED_VALUE}",
        lost_fields="spec.nodeName=",
    )
    """Only those that queue: a policy keeps their label. What names a queue and has lost it is told of besides; what
    has lost both labels and has no node is listed, since what waits at our gate has none."""

    # --- the user's pod ---------------------------------------------------------------------------------------

    hook: Hook | None = HOOK

    def managed(self, obj: Pod) -> bool:
        """Return whether the webhook took the pod over.

        Of a pod that a Job controls the label says nothing: it comes with the Job's template. Gate or finalizer do. Of
        one of no Job they say it together with the queue's name: the label alone was taken off (`marked_step`).
        """
        if obj.metadata.labels.get(markers.MANAGED) != markers.MANAGED_VALUE:
            return self._lost_its_mark(obj)
        return not _of_job(obj) or self._was_taken_over(obj)

    def marked_step(self, obj: Pod) -> PatchStep | None:
        """Return the patch that puts the label of managed pods back."""
        if not self._lost_its_mark(obj):
            return None
        mark = {markers.MANAGED: markers.MANAGED_VALUE}
        operations = [*guards(obj.metadata), *add_to_map(("metadata", "labels"), obj.metadata.labels, mark)]
        return PatchStep(body=encode(operations), kind=PatchKind.JSON)

    def out_of_sight(self, obj: Pod) -> bool:
        """Return whether it has neither label by which pods are watched; nor is it of a Job, as nobody's."""
        meta = obj.metadata
        shown = meta.labels.get(markers.MANAGED) == markers.MANAGED_VALUE or markers.QUEUE_NAME in meta.labels
        return not (shown or _of_job(obj))

    def _lost_its_mark(self, obj: Pod) -> bool:
        """Return whether it was taken over and names a queue, and the label that says so was taken off.

        A pod with a suspending parent has the gate as well, and never had the label.
        """
        meta = obj.metadata
        if meta.labels.get(markers.MANAGED) == markers.MANAGED_VALUE or _of_job(obj):
            return False
        asks = markers.QUEUE_NAME in meta.labels and markers.POD_SUSPENDING_PARENT not in meta.annotations
        return asks and self._was_taken_over(obj)

    def _was_taken_over(self, obj: Pod) -> bool:
        return not self.lifted(obj) or markers.MANAGED in obj.metadata.finalizers

    def queue_name(self, obj: Pod) -> str:
        """Return the queue label."""
        return obj.metadata.labels.get(markers.QUEUE_NAME, "")

    def priority_names(self, obj: Pod) -> PriorityNames:
        """Return the class label and what the pod's spec says."""
        return PriorityNames(
            workload_class=obj.metadata.labels.get(markers.PRIORITY_CLASS, ""),
            pod_class=obj.spec.priority_class_name,
            pod_priority=obj.spec.priority,
        )

    def suspended(self, obj: Pod) -> bool:
        """Return whether it is gated or over."""
        return not self.lifted(obj) or over(obj)

    def home_only(self, obj: Pod) -> str:
        """Return that it is not held back, if our gate is not there: it runs here, or may."""
        return _UNGATED if self.lifted(obj) else ""

    def outcome(self, obj: Pod) -> ObjectEnd | None:
        """Return the phase's word and the status message."""
        return ObjectEnd(succeeded=obj.status.phase == "Succeeded", message=obj.status.message) if over(obj) else None

    def pods_ready(self, obj: Pod) -> bool:
        """Return whether it is Ready, or was when its cluster was last heard of, or has succeeded."""
        said = [one for one in obj.status.conditions if one.type == "Ready"]
        ready = any(one.status == "True" or (one.status, one.reason) == ("Unknown", UNREACHABLE) for one in said)
        return ready or obj.status.phase == "Succeeded"

    def shown(self, obj: Pod, reported: bytes) -> bytes:
        """Return what is on the list, no address among it."""
        return encode(shown_status.of_pod(reported))

    def mirror_patch(self, obj: Pod, raw: bytes, reported: bytes) -> bytes | None:
        """Return the patch that shows of the worker pod's status what is on the list, no address among it.

        While the worker's pod is unscheduled, the user's pod keeps its own PodScheduled (reason SchedulingGated), so
        that no autoscaler of the management cluster takes it for a pod that lacks a node.
        """
        old = status_of(raw)
        new = shown_status.of_pod(reported)
        conditions = pod_trouble.without(new.pop("conditions", []))
        if not self.lifted(obj) and not _scheduled(conditions):
            mine = [one for one in old.get("conditions") or [] if one.get("type") == "PodScheduled"]
            if mine:
                conditions = [one for one in conditions if one.get("type") != "PodScheduled"] + mine
        if new.get("phase") not in {"Succeeded", "Failed"}:
            conditions += pod_trouble.only(old.get("conditions") or [])
        if conditions:
            new["conditions"] = conditions
        if "qosClass" in old:  # immutable; the same by the same spec, but for what a worker's LimitRange adds
            new["qosClass"] = old["qosClass"]
        return status_patch(obj.metadata, old, new)

    def says_ready(self, obj: Pod, reported: bytes) -> bool:
        """Return whether it would be Ready, or have succeeded, with this status."""
        status = read_as(PodStatus, reported)
        return status is not None and self.pods_ready(msgspec.structs.replace(obj, status=status))

    def unreachable_patch(self, obj: Pod, raw: bytes, message: str, wall: str) -> bytes | None:
        """Return the patch by which what was Ready is so no more, as a node's controller says it of a lost node."""
        if over(obj):
            return None
        old = status_of(raw)
        unknown = {"status": "Unknown", "reason": UNREACHABLE, "message": message, "lastTransitionTime": wall}
        conditions = [
            {**one, **unknown} if (one.get("type"), one.get("status")) == ("Ready", "True") else one
            for one in old.get("conditions") or []
        ]
        return status_patch(obj.metadata, old, {**old, "conditions": conditions})

    def trouble_patch(self, obj: Pod, raw: bytes, said: Condition | None) -> bytes | None:
        """Return the patch of the condition, for this version: on `local` the kubelet writes beside us."""
        shown = any(one.type == pod_trouble.CONDITION for one in obj.status.conditions)
        if over(obj) or (said is None and not shown):
            return None
        old = status_of(raw).get("conditions") or []
        new = pod_trouble.said_on(old, said)
        if new == old:
            return None
        meta = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
        return encode({"metadata": meta, "status": {"conditions": new}})

    def end_patch(self, obj: Pod, raw: bytes, outcome: ObjectEnd, wall: str) -> bytes | None:
        """Return phase, message and conditions of a pod that is over; what its containers showed is dropped."""
        if over(obj):
            return None
        old = status_of(raw)
        new = {key: value for key, value in old.items() if key not in _OF_CONTAINERS}
        new["phase"] = outcome.reason
        if outcome.message:
            new["message"] = outcome.message
        new["conditions"] = [_completed(one, wall) for one in pod_trouble.without(old.get("conditions") or [])]
        return status_patch(obj.metadata, old, new)

    def unplaced_steps(self, obj: Pod, raw: bytes, wall: str) -> tuple[PatchStep, ...]:
        """Return the patch to the status of a pod that waits at its gate."""
        if self.lifted(obj):
            return ()
        old = status_of(raw)
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        mine = [one for one in old.get("conditions") or [] if one.get("type") == "PodScheduled"]
        waiting = [one for one in mine if one.get("reason") == "SchedulingGated"]
        ours = pod_trouble.only(old.get("conditions") or [])
        refused = [one for one in ours if one.get("reason") == pod_trouble.START_REFUSED]
        waiting = waiting or [{**gated, "lastTransitionTime": wall}]
        new: Json = {"phase": "Pending", "conditions": waiting + refused}
        if "qosClass" in old:
            new["qosClass"] = old["qosClass"]
        body = status_patch(obj.metadata, old, new)
        return (PatchStep(body=body, subresource="status"),) if body else ()

    def bears_marks(self, obj: Pod) -> bool:
        """Return whether it has the gate or the finalizer."""
        return self._was_taken_over(obj)

    def told_step(self, obj: Pod, raw: bytes, reason: str, wall: str) -> PatchStep | None:
        """Return the write of the condition TerminationTarget, as Kueue says it of what it ends."""
        said = termination.reason_of(reason)
        return termination.said_step(obj.metadata, raw, said, termination.MESSAGES.get(said, ""), wall)

    def release_step(self, obj: Pod) -> PatchStep | None:
        """Return the patch that drops the finalizer of taken-over pods."""
        body = without_finalizer(obj.metadata, markers.MANAGED)
        return PatchStep(body=body, kind=PatchKind.JSON) if body else None

    # --- the worker's pod, or the user's own at `local` --------------------------------------------------------

    def document(self, part: Part, placing: Placing) -> bytes:
        """Return the pod with our gate, labels, report finalizer, and the flavor's placement."""
        marks, spec = decode(part.metadata), decode(part.spec)
        start = placing.start(part.pod_set)
        selector = merged_selector(spec.get("nodeSelector") or {}, start.node_selector, "spec.nodeSelector")
        own = placed_mark.of_pod(placing, part.name)
        tolerations = merged_tolerations(placed_mark.without(spec.get("tolerations") or []), (*start.tolerations, *own))
        if selector:
            spec["nodeSelector"] = selector
        if tolerations:
            spec["tolerations"] = tolerations
        spec["schedulingGates"] = [*spec.get("schedulingGates", []), {"name": markers.ADMISSION_GATE}]
        metadata = {
            "name": part.name,
            "namespace": placing.namespace,
            "labels": {
                **marks.get("labels", {}),
                **start.labels,
                markers.POD_SET: part.pod_set,
                **placing.owner_labels,
            },
            "annotations": {**marks.get("annotations", {}), **start.annotations},
            "finalizers": [FINALIZER_REPORT],
        }
        return encode({"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": spec})

    def lifted(self, obj: Pod) -> bool:
        """Return whether our gate is gone."""
        return markers.ADMISSION_GATE not in [gate.name for gate in obj.spec.scheduling_gates]

    def let_go_here(self, obj: Pod) -> bool:
        """Return whether our gate is gone."""
        return self.lifted(obj)

    def liftable(self, obj: Pod, key: PlacementKey) -> bool:
        """Return whether no gate but ours is left."""
        last = not self.lifted(obj) and not set(_gate_names(obj)).difference(markers.GATES_OF_ADMISSION)
        return last and obj.metadata.deletion_timestamp is None and not stop_marked(obj.metadata, key)

    def lift_patch(self, obj: Pod) -> bytes:
        """Return the patch that removes our gates and nothing else."""
        return encode([*guards(obj.metadata), *_ungate(obj, markers.GATES_OF_ADMISSION)])

    def local_lift_patch(self, obj: Pod, raw: bytes, placing: Placing) -> bytes:
        """Return one patch: labels, annotations, node selector, tolerations, gate."""
        pod_set = self.pod_set_of(obj, raw)
        start = placing.start(pod_set)
        spec = decode(raw)["spec"]
        labels = {**start.labels, markers.POD_SET: pod_set, **placing.owner_labels}
        merged_selector(obj.spec.node_selector, start.node_selector, "spec.nodeSelector")
        present = spec.get("tolerations") or []
        noted = pod_set if self.gathers else ""
        own = placed_mark.of_pod(placing, obj.metadata.name, obj.metadata.uid, noted)
        notes = {**start.annotations, **placed_on.added(placed_on.HOME, obj.metadata.annotations, start.annotations)}
        tolerations = merged_tolerations(present, (*start.tolerations, *own))
        operations: list[Operation] = [
            *guards(obj.metadata),
            *add_to_map(("metadata", "labels"), obj.metadata.labels, labels),
            *add_to_map(("metadata", "annotations"), obj.metadata.annotations, notes),
            *add_to_map(("spec", "nodeSelector"), obj.spec.node_selector, start.node_selector),
        ]
        if tolerations != present:
            operations.append({"op": "add", "path": "/spec/tolerations", "value": tolerations})
        return encode([*operations, *_ungate(obj, markers.GATES_OF_ADMISSION)])

    def pod_set_of(self, obj: Pod, raw: bytes) -> str:
        """Return which pod set of its Workload a pod at its gate is of."""
        return markers.DEFAULT_POD_SET

    def stop_step(self, obj: Pod, key: PlacementKey) -> Step | None:
        """Return the deletion: a pod cannot be gated again. None once it is being deleted."""
        return DeleteStep() if obj.metadata.deletion_timestamp is None else None

    def local_stop_step(self, obj: Pod, raw: bytes, key: PlacementKey) -> Step | None:
        """Return the deletion of a pod that was let go, as Kueue ends a single pod, or the mark on a gated one.

        The mark names the version in which the gate was seen: it fails on a pod that a late lift has let go since.
        """
        if obj.metadata.deletion_timestamp is not None or over(obj):
            return None
        if self.lifted(obj):
            return DeleteStep()
        if stop_marked(obj.metadata, key):
            return None
        mark = add_to_map(("metadata", "labels"), obj.metadata.labels, stop_mark(key))
        return PatchStep(body=encode([*guards(obj.metadata), *mark]), kind=PatchKind.JSON)

    def local_told_step(self, obj: Pod, raw: bytes, reason: str, message: str) -> PatchStep | None:
        """Return the write of the condition TerminationTarget, as Kueue says it of what it ends."""
        return termination.said_step(obj.metadata, raw, termination.reason_of(reason), message)

    def stopped(self, obj: Pod, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether it is over, was deleted before it was bound, or is gated and marked (`local`)."""
        return over(obj) or unbound_and_deleting(obj) or (not self.lifted(obj) and stop_marked(obj.metadata, key))

    def leaving(self, obj: Pod, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether it is being deleted or over, or was never let go and is marked (`local`)."""
        return leaves(obj) or self.stopped(obj, pods, key)

    def at_rest(self, obj: Pod, raw: bytes) -> bool:
        """Return whether no container of it runs, whatever its phase says."""
        return not pod_status.containers_run(raw)

    def seen(self, obj: Pod, raw: bytes) -> Seen:
        """Return its end and Ready, and what its containers do."""
        return pod_status.seen(obj, raw)

    def moments(self, obj: Pod) -> tuple[str, ...]:
        """Return when its conditions changed."""
        return tuple(one.last_transition_time for one in obj.status.conditions if one.last_transition_time)

    def user_gates_patch(self, obj: Pod, remaining: Sequence[str]) -> bytes | None:
        """Return the patch that removes gates that the user has removed from the pod at home; ours is never touched."""
        keep = {*remaining, *markers.GATES_OF_ADMISSION}
        removal = _ungate(obj, tuple(name for name in _gate_names(obj) if name not in keep))
        return encode([*guards(obj.metadata), *removal]) if removal else None

    def charged(self, obj: Pod, raw: bytes) -> Charged:
        """Return the digest of its requests."""
        return pod_charged.of_pod(obj)

    def uncharged(self, raw: bytes) -> Mapping[str, str]:
        """Return the digests of its images, deadline, tolerations and ephemeral containers."""
        return pod_charged.uncharged(raw)


def _gate_names(obj: Pod) -> tuple[str, ...]:
    return tuple(gate.name for gate in obj.spec.scheduling_gates)


def _of_job(obj: Pod) -> bool:
    """Return whether a Job controls it, as the object says: a queued one is queued itself, not its pods."""
    job = (JOB.api_version, JOB.kind)
    return any(one.controller and (one.api_version, one.kind) == job for one in obj.metadata.owner_references)


def _ungate(obj: Pod, names: Sequence[str]) -> list[Operation]:
    return remove_from_list(_GATES, _gate_names(obj), names, key="name")


def _completed(condition: Json, wall: str) -> Json:
    """Return what a kubelet makes of Ready and ContainersReady when a pod is over."""
    if condition.get("type") not in {"Ready", "ContainersReady"} or condition.get("status") != "True":
        return condition
    return {"type": condition["type"], "status": "False", "reason": "PodCompleted", "lastTransitionTime": wall}


def _scheduled(conditions: Sequence[Json]) -> bool:
    return any(one.get("type") == "PodScheduled" and one.get("status") == "True" for one in conditions)
