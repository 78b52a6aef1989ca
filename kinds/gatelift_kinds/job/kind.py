"""batch/v1 Job, not elastic: held back by `suspend`, let go by unsuspending, over by its conditions. Pure.

Stopping has a handshake. A Job controller whose cache is behind may still make pods of a Job that has been suspended
again; so the stop also takes the condition Suspended away through `/status`, and counts as carried out when the
controller has put it back: its status writes carry the resourceVersion it saw, hence it saw the suspension.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gatelift_kinds.job import charged as job_charged
from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import pods as job_pods
from gatelift_kinds.job import rules as job_rules
from gatelift_kinds.job import running as job_running
from gatelift_kinds.job import selector as job_selector
from gatelift_kinds.job import status as job_status
from gatelift_kinds.job import template as job_template
from gatelift_kinds.job import template_before
from gatelift_kinds.job.hook import HOOK
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.generated_labels import own_labels
from gatelift_kinds.shared.hooks import Hook
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import Json, decode, encode, guards, read_as, stop_marked
from gatelift_kinds.shared.pods import count_pods, holds_resources, leaves
from gatelift_kinds.shared.review import Correction, HeldChange, Verdict, WebhookFacts
from gatelift_kinds.shared.values import (
    ALL_GRANTED,
    Charged,
    ObjectEnd,
    Part,
    PatchStep,
    Placing,
    PodSpecAt,
    Priority,
    PriorityNames,
    Rights,
    Seen,
    Sight,
    Step,
    UserChange,
)
from gatelift_kinds.shared.workload_document import describes, pod_set_document, workload_document
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.batch import Job, JobStatus
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import JOB, Resource
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import PodSetCounts

_SUSPENDED_AT_CREATION = 1  # metadata.generation grows with every change of spec; a lift is one


LABELS_NAME = ("batch.kubernetes.io/job-name", "job-name")
LABELS_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
"""Put on the pods of a Job by its controller, the second spelling before Kubernetes 1.27; they stay on orphans."""


class JobKind(Kind[Job]):
    """See `gatelift_kinds.kind.Kind`.

    What is not said here is nothing: the user's Job carries no label or finalizer of ours, what keeps its pods from
    running its Workload says, and their gates are the user's to give.
    """

    name: str = "Job"
    resource: Resource = JOB
    struct: type[Any] = Job
    pods_are_children: bool = True
    reclaims: bool = True
    pod_specs: tuple[PodSpecAt, ...] = (PodSpecAt(markers.DEFAULT_POD_SET, ("template",)),)
    sight: Sight = Sight()
    """All, as Kueue does: what runs must not go out of sight with a label that its user may take off."""

    # --- the user's Job ---------------------------------------------------------------------------------------

    rights: Rights = Rights(
        at_worker_status=("patch",),
        at_worker_status_why="The handshake of stopping a Job goes through its status.",
        asked=("get",),
    )
    hook: Hook | None = HOOK

    def managed(self, obj: Job) -> bool:
        """Return whether it names a queue and is the Job controller's or MultiKueue's."""
        return bool(self.queue_name(obj)) and obj.spec.managed_by in job_rules.MANAGERS

    def queue_name(self, obj: Job) -> str:
        """Return the queue label."""
        return obj.metadata.labels.get(markers.QUEUE_NAME, "")

    def priority_names(self, obj: Job) -> PriorityNames:
        """Return the class label and what the pod template says."""
        spec = obj.spec.template.spec
        return PriorityNames(
            workload_class=obj.metadata.labels.get(markers.PRIORITY_CLASS, ""),
            pod_class=spec.priority_class_name,
            pod_priority=spec.priority,
        )

    def workload_name(self, obj: Job) -> str:
        """Return `job-<name>-<5 hex>`."""
        return workload_name(JOB.kind, JOB.group, obj.metadata.name, obj.metadata.uid)

    def workload_document(self, obj: Job, raw: bytes, priority: Priority) -> bytes:
        """Return a Workload of one pod set `main`: as many pods as may run at once."""
        template = decode(raw)["spec"].get("template") or {}
        metadata = template.get("metadata") or {}
        return workload_document(
            name=self.workload_name(obj),
            owner=JOB,
            meta=obj.metadata,
            queue=self.queue_name(obj),
            priority=priority,
            pod_sets=[
                pod_set_document(
                    markers.DEFAULT_POD_SET,
                    job_partial.pods_at_once(job_partial.asked(obj)),
                    {**metadata, "labels": own_labels(metadata.get("labels") or {})},
                    template.get("spec") or {},
                    min_count=job_partial.min_count(obj),
                )
            ],
        )

    def equivalent(self, workload: Workload, obj: Job) -> bool:
        """Return whether the Workload asks for what the Job does. A finished Workload is the record of a run."""
        return describes(workload, obj.metadata, self.pod_sets(obj), started=template_before.changed(obj))

    def pod_sets(self, obj: Job) -> tuple[PodSet, ...]:
        """Return one pod set: as many pods as may run at once."""
        return (
            PodSet(
                name=markers.DEFAULT_POD_SET,
                count=job_partial.pods_at_once(job_partial.asked(obj)),
                min_count=job_partial.min_count(obj),
                template=obj.spec.template,
            ),
        )

    def made(self, meta: ObjectMeta) -> tuple[str, str] | None:
        """Return the controller if it is a Job; without one, what the labels say that the Job controller left.

        A Job that is deleted with the policy Orphan leaves pods without an owner.
        """
        if any(one.controller for one in meta.owner_references):
            return super().made(meta)
        name, uid = _first(meta, LABELS_NAME), _first(meta, LABELS_UID)
        return (name, uid) if name and uid else None

    def suspended(self, obj: Job) -> bool:
        """Return whether `spec.suspend` is set."""
        return obj.spec.suspend is True

    def home_only(self, obj: Job) -> str:
        """Return which `managedBy` it would need: without it, whoever unsuspends it here starts its pods here."""
        if job_running.elsewhere(obj):
            return ""
        return f"{job_rules.expected_manager(obj.spec.managed_by)}: make it anew without that field"

    def away_only(self, obj: Job) -> str:
        """Return that no controller here makes its pods, where `managedBy` names MultiKueue."""
        return f"spec.managedBy: {job_rules.NOBODY_RUNS}" if job_running.elsewhere(obj) else ""

    def nowhere(self, obj: Job) -> str:
        """Return that it finds its pods by labels of its user's, or that they would wait at our gate for ever."""
        return job_selector.why_not(obj) or job_template.why_not(obj)

    def outcome(self, obj: Job) -> ObjectEnd | None:
        """Return the word of the condition Complete or Failed."""
        for condition in obj.status.conditions:
            if condition.status == "True" and condition.type in {"Complete", "Failed"}:
                return ObjectEnd(succeeded=condition.type == "Complete", message=condition.message)
        return None

    def pods_ready(self, obj: Job) -> bool:
        """Return whether as many pods as may run at once are ready or have succeeded."""
        return obj.status.succeeded + (obj.status.ready or 0) >= job_running.pods_at_once(obj)

    def parts(self, obj: Job, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Return the Job without what only its own cluster can generate or decide, for as many pods as are granted.

        `ttlSecondsAfterFinished` stays at home too: the user's own Job has it, and at the worker it would remove
        pods before their end was reported.
        """
        spec = decode(raw)["spec"]
        for field in ("managedBy", "suspend", "ttlSecondsAfterFinished"):
            spec.pop(field, None)
        spec.update(job_partial.lowered(obj, granted.get(markers.DEFAULT_POD_SET)))
        if not spec.get("manualSelector"):
            spec.pop("selector", None)
        metadata = spec.setdefault("template", {}).get("metadata") or {}
        spec["template"]["metadata"] = {
            "labels": own_labels(markers.travelling(metadata.get("labels") or {})),
            "annotations": markers.travelling(metadata.get("annotations") or {}),
        }
        marks = {
            "labels": own_labels(markers.travelling(obj.metadata.labels)),
            "annotations": job_template.own_annotations(markers.travelling(obj.metadata.annotations)),
        }
        return (
            Part(
                name=obj.metadata.name,
                pod_set=markers.DEFAULT_POD_SET,
                metadata=encode(marks),
                spec=encode(spec),
            ),
        )

    def shown(self, obj: Job, reported: bytes) -> bytes:
        """Return what is on the list."""
        return encode(job_status.shown(obj, reported))

    def mirror_patch(self, obj: Job, raw: bytes, reported: bytes) -> bytes | None:
        """Return the patch that shows the worker Job's status; None while the user's Job is still suspended."""
        return None if self.suspended(obj) else job_status.mirror(obj, raw, reported)

    def says_ready(self, obj: Job, reported: bytes) -> bool:
        """Return whether as many pods would be ready, or have succeeded, with this status."""
        status = read_as(JobStatus, reported)
        return status is not None and self.pods_ready(msgspec.structs.replace(obj, status=status))

    def end_patch(self, obj: Job, raw: bytes, outcome: ObjectEnd, wall: str) -> bytes | None:
        """Return the conditions that end a Job; None while the user's Job is still suspended, or is over."""
        if self.suspended(obj) or self.outcome(obj) is not None:
            return None
        return job_status.ended(obj, raw, outcome, wall)

    def placed_step(self, obj: Job, key: PlacementKey, granted: Mapping[str, int] = ALL_GRANTED) -> PatchStep | None:
        """Return the patch that unsuspends a Job whose pods run elsewhere, so that its status can be shown."""
        if not job_running.elsewhere(obj) or job_running.let_go(obj, key):
            return None
        change = job_partial.home_change(obj, granted.get(markers.DEFAULT_POD_SET))
        return PatchStep(body=_home_patch(obj, {"suspend": False}, change, shown=str(key)))

    def user_change(
        self, obj: Job, workload: Workload, key: PlacementKey, granted: Mapping[str, int]
    ) -> UserChange | None:
        """Return whether its user suspended it, or gave it another size or shape than was admitted."""
        return None if self.outcome(obj) is not None else job_running.user_change(obj, workload, key, granted)

    def unplaced_steps(self, obj: Job, raw: bytes, wall: str) -> tuple[PatchStep, ...]:
        """Return the patches that suspend the user's Job and take the run from its status; counters never fall.

        The status of a Job whose pods run here is its controller's, and what was added to it the local agent's.
        """
        if self.outcome(obj) is not None:
            return ()
        if not job_running.elsewhere(obj):
            return () if self.suspended(obj) else (PatchStep(body=_home_patch(obj, {"suspend": True}, {})),)
        steps: list[PatchStep] = []
        restore = job_partial.home_restore(obj)
        if not self.suspended(obj) or restore or job_running.ANNOTATION_SHOWN in obj.metadata.annotations:
            steps.append(PatchStep(body=_home_patch(obj, {"suspend": True}, restore, shown=None)))
        status = job_status.reset(obj, raw, wall)
        if status is not None:
            steps.append(PatchStep(body=status, subresource="status"))
        return tuple(steps)

    def lets_itself_go(self, obj: Job) -> bool:
        """Return whether it is unsuspended and shows no placement: its user, or another controller, did that."""
        return not (self.suspended(obj) or self.bears_marks(obj) or self.outcome(obj) is not None)

    def bears_marks(self, obj: Job) -> bool:
        """Return whether it shows a placement, or its template has our additions."""
        return job_running.ANNOTATION_SHOWN in obj.metadata.annotations or template_before.changed(obj)

    # --- the worker's Job, or the user's own at `local` --------------------------------------------------------

    def document(self, part: Part, placing: Placing) -> bytes:
        """Return the Job, suspended; its pods get our labels through the template, the finalizer is the Job's only."""
        return job_template.document(part, placing)

    def spec_problem(self, spec: Mapping[str, Any]) -> str:
        """Return why a Job that names its own pods is not made."""
        return job_selector.chosen_in(spec)

    def lifted(self, obj: Job) -> bool:
        """Return whether it is not suspended."""
        return not self.suspended(obj)

    def let_go_here(self, obj: Job) -> bool:
        """Return whether it is not suspended, and its template has our additions."""
        return not self.suspended(obj) and template_before.changed(obj)

    def local_hold_step(self, obj: Job) -> PatchStep | None:
        """Return the patch that suspends a Job without our additions: its pods would carry no labels of ours."""
        if self.suspended(obj) or template_before.changed(obj) or self.outcome(obj) is not None:
            return None
        return PatchStep(body=_home_patch(obj, {"suspend": True}, {}))

    def liftable(self, obj: Job, key: PlacementKey) -> bool:
        """Return whether it is suspended, and neither stopped by us nor being deleted; and no pod of it is left.

        A Job that somebody else had let go at `local` may have some: they would run without their placement's labels.
        """
        quiet = not obj.status.active and not obj.status.terminating
        held = self.suspended(obj) and obj.metadata.deletion_timestamp is None
        return held and quiet and not stop_marked(obj.metadata, key)

    def lift_patch(self, obj: Job) -> bytes:
        """Return the patch that unsuspends."""
        return encode([*guards(obj.metadata), {"op": "replace", "path": "/spec/suspend", "value": False}])

    def local_lift_patch(self, obj: Job, raw: bytes, placing: Placing) -> bytes:
        """Return one patch: the template's labels, annotations, selector, tolerations, and unsuspend."""
        return job_template.local_lift_patch(obj, raw, placing)

    def stop_step(self, obj: Job, key: PlacementKey) -> Step | None:
        """Return the patch that suspends and marks, then the one of the handshake.

        What was let go again since the handshake has it anew: its controller's word may be from before. Who has
        announced its end makes no pods and answers nothing: it ends once they have, for which it needs a start time.
        """
        if self.outcome(obj) is not None:
            return None
        if job_status.lacks_start(obj):
            return PatchStep(body=job_status.start_body(obj), subresource="status")
        if not self.suspended(obj) and job_status.stop_asked(obj, key):
            return PatchStep(body=job_status.stop_not_asked_body(obj), subresource="status")
        if not self.suspended(obj) or not stop_marked(obj.metadata, key):
            return PatchStep(body=job_status.suspend_body(obj, key))
        if self._asks_acknowledgement(obj, key) and not job_status.announces_end(obj):
            return PatchStep(body=job_status.stop_asked_body(obj, key), subresource="status")
        return None

    def local_stop_step(self, obj: Job, raw: bytes, key: PlacementKey) -> Step | None:
        """Return, one after the other: suspend; handshake and no start time; the template as it was.

        The API server takes a change of the template only from a suspended Job without start time.
        """
        step = self.stop_step(obj, key)
        if isinstance(step, PatchStep) and not step.subresource:
            return PatchStep(body=job_status.suspend_body(obj, key, version=obj.metadata.resource_version))
        if obj.metadata.deletion_timestamp is not None:
            return None  # its controller answers no handshake any more, and nobody starts it again
        if step is not None or self.outcome(obj) is not None or not template_before.changed(obj):
            return step
        if job_status.announces_end(obj):
            return None  # it is not let go again, and its end is not to be kept from it
        if obj.status.start_time is not None:
            return PatchStep(body=job_status.stop_asked_body(obj, key), subresource="status")
        if not job_status.stop_acknowledged(obj, key):
            return None
        return PatchStep(body=template_before.restore_patch(obj, raw), kind=PatchKind.JSON, restores=True)

    def local_note(self, obj: Job) -> str:
        """Return the annotation, if it is the one that was written with the lift."""
        return template_before.genuine(obj)

    def local_note_patch(self, obj: Job, raw: bytes, said: str) -> bytes | None:
        """Return the patch of the annotation."""
        return template_before.note_patch(obj, raw, said)

    def stopped(self, obj: Job, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether the Job is over, or suspended and its controller has seen that; and no pod is left.

        The controller makes no pod for a Job that is being deleted, and answers nothing about it.
        """
        if any(holds_resources(pod) for pod in pods):
            return False
        over = self.outcome(obj) is not None
        quiet = over or obj.metadata.deletion_timestamp is not None or not obj.status.terminating
        return quiet and job_running.makes_none(obj, key, over=over, seen=not self._unacknowledged(obj, key))

    def leaving(self, obj: Job, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return whether no pod of it is active by its controller's word (Kueue's rule), and each one known leaves."""
        over, seen = self.outcome(obj) is not None, not self._unacknowledged(obj, key)
        return all(map(leaves, pods)) and job_running.makes_none(obj, key, over=over, seen=seen)

    def counts(self, obj: Job, pods: Sequence[Pod]) -> tuple[PodSetCounts, ...]:
        """Return the counts of its pods; those that ended are the Job's own counters, since pods go away."""
        counted = count_pods(markers.DEFAULT_POD_SET, pods)
        return (
            PodSetCounts(
                name=counted.name,
                active=counted.active,
                ready=counted.ready,
                succeeded=max(counted.succeeded, obj.status.succeeded),
                failed=max(counted.failed, obj.status.failed),
                terminating=counted.terminating,
                remaining=counted.remaining,
            ),
        )

    def reclaimable(self, obj: Job) -> tuple[tuple[str, int], ...]:
        """Return `count - min(count, remaining completions)`: what the tail of the Job needs no longer.

        Failed indexes of an Indexed Job need no pod any more; retried failures do. With more pods at once than
        completions the count is the completions (Kueue released too much there).
        """
        parallelism = 1 if obj.spec.parallelism is None else obj.spec.parallelism
        completions = parallelism if obj.spec.completions is None else obj.spec.completions
        ended = job_pods.completed(obj, completions)
        if not ended:
            return ()
        count = job_running.pods_at_once(obj)
        reclaimed = count - min(count, max(completions - ended, 0))
        return ((markers.DEFAULT_POD_SET, reclaimed),) if reclaimed else ()

    def pods_ended(self, obj: Job) -> int:
        """Return the pods that its controller counted as ended, noted ones included."""
        return job_pods.counted(obj)

    def at_rest(self, obj: Job, raw: bytes) -> bool:
        """Return whether its controller counts no pod that runs or stops."""
        return not (obj.status.active or obj.status.terminating)

    def seen(self, obj: Job, raw: bytes) -> Seen:
        """Return its conditions, and its whole status."""
        return Seen((tuple((one.type, one.status) for one in obj.status.conditions),), (obj.status,))

    def moments(self, obj: Job) -> tuple[str, ...]:
        """Return when its conditions changed."""
        return tuple(one.last_transition_time for one in obj.status.conditions if one.last_transition_time)

    def noted(self, obj: Job) -> tuple[str, ...]:
        """Return what its status says of pods that were not counted yet."""
        return job_pods.noted(obj)

    def uncounted(self, obj: Job, found: Sequence[Pod]) -> int:
        """Return those that are missing beside the pods that are there and those that were counted."""
        return job_pods.uncounted(obj, found)

    def missing(self, obj: Job, seen: PodSetCounts) -> tuple[int, int]:
        """Return those that neither we have seen nor its controller counts."""
        return job_pods.missing(obj, seen)

    def charged(self, obj: Job, raw: bytes) -> Charged:
        """Return parallelism, completions and the digest of the template."""
        return job_charged.of_job(obj, raw)

    def pods_of_it(self, obj: Job, raw: bytes) -> Mapping[str, bytes]:
        """Return a pod of its template, owned by it."""
        return {markers.DEFAULT_POD_SET: job_template.pod_document(obj, raw)}

    def put_back(self, obj: Job, raw: bytes, wanted: Charged) -> bytes | None:
        """Return the patch of parallelism and completions; None once the template is another one."""
        return job_charged.put_back(obj, raw, wanted)

    def may_put_back(self, obj: Job, wanted: Charged, pods: Sequence[Pod]) -> bool:
        """Return whether its pods become fewer, or nothing of those that an edit ended still stops."""
        return job_charged.has_settled(obj, wanted, pods)

    def put_back_starts(self, obj: Job, wanted: Charged) -> bool:
        """Return whether it is let go, and was made smaller than it is to be."""
        return not self.suspended(obj) and job_charged.grows(obj, wanted)

    def _asks_acknowledgement(self, obj: Job, key: PlacementKey) -> bool:
        return obj.metadata.generation > _SUSPENDED_AT_CREATION and not job_status.stop_asked(obj, key)

    def _unacknowledged(self, obj: Job, key: PlacementKey) -> bool:
        return obj.metadata.generation > _SUSPENDED_AT_CREATION and not job_status.stop_acknowledged(obj, key)

    # --- the webhook -------------------------------------------------------------------------------------------

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return suspend, managedBy, default queue and priority class."""
        return job_rules.defaults(obj, facts)

    def corrected(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Correction:
        """Return that a waiting Job stays suspended."""
        return job_rules.corrected(old, new, facts)

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a new Job."""
        return job_rules.validate_create(obj, facts)

    def held_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[HeldChange, ...]:
        """Return what a run takes no notice of, while it is suspended."""
        return job_rules.held_changes(old, new)

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a change of a Job."""
        return job_rules.validate_update(old, new, facts)


def _first(meta: ObjectMeta, names: tuple[str, ...]) -> str:
    return next((meta.labels[name] for name in names if meta.labels.get(name)), "")


def _home_patch(obj: Job, spec: Json, change: Json, *, shown: str | None = None) -> bytes:
    """Return the merge patch of the user's Job as it was seen: what is due, how many pods at once, and what it shows.

    For that version alone: a patch whose answer was lost must not land on the next placement.
    """
    meta = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
    notes = dict(change.get("metadata", {}).get("annotations", {}))
    if shown is not None or job_running.ANNOTATION_SHOWN in obj.metadata.annotations:
        notes[job_running.ANNOTATION_SHOWN] = shown
    metadata: Json = {**meta, "annotations": notes} if notes else meta
    return encode({"metadata": metadata, "spec": {**spec, **change.get("spec", {})}})
