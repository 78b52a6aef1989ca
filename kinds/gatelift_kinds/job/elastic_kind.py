"""batch/v1 Job, elastic where it asks for that (KEP-77); any other one is a Job as ever. Pure.

Not served yet: `registry.WITH_SLICES` alone has it. Switched off, what is elastic keeps the size that it has, its pods
are let go as before, and a change of size is what it is of any Job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatelift_kinds.job import elastic, elastic_rules, template_before
from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import running as job_running
from gatelift_kinds.job import template as job_template
from gatelift_kinds.job.kind import JobKind
from gatelift_kinds.shared import markers, slices
from gatelift_kinds.shared.hooks import Hook
from gatelift_kinds.shared.patches import Operation, decode, decode_operations, encode, pointer
from gatelift_kinds.shared.review import Correction, Verdict, WebhookFacts
from gatelift_kinds.shared.sized_pods import Surplus
from gatelift_kinds.shared.sizes import Counts, Size, SizeMark, mark_of
from gatelift_kinds.shared.values import ALL_GRANTED, Charged, Part, PatchStep, Placing, Priority, Step, UserChange
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.keys import ANNOTATION_SIZE, PlacementKey


class ElasticJobKind(JobKind):
    """See `gatelift_kinds.kind.Kind` and `gatelift_kinds.shared.resizes.Resizes`."""

    hook: Hook | None = elastic_rules.HOOK
    sliced: bool = True

    def __init__(self, *, on: bool = True) -> None:
        """`on`: sizes of what asks for it may change (`ElasticJobsViaWorkloadSlices`)."""
        self._on = on

    # --- sizes -------------------------------------------------------------------------------------------------

    def gated(self, obj: Job) -> bool:
        """Return whether its template has the gate, and it asks for that or was set to a size."""
        return elastic.is_gated(obj)

    def resizes(self, obj: Job) -> bool:
        """Return whether it is gated and asks, and the feature is on."""
        return self._on and slices.asks(obj.metadata.annotations) and elastic.is_gated(obj)

    def wanted(self, obj: Job) -> Counts:
        """Return as many pods as may run at once."""
        return elastic.wanted(obj)

    def are_ready(self, obj: Job, counts: Counts) -> bool:
        """Return whether as many pods are ready or have succeeded as these, where its user wants no fewer."""
        return self.pods_ready(obj) or elastic.are_ready(obj, counts)

    def slice_name(self, obj: Job, again: str = "") -> str:
        """Return the name with the Job's generation."""
        return elastic.slice_name(obj, again)

    def same_shape(self, workload: Workload, obj: Job) -> bool:
        """Return whether the Workload asks for what the Job does, but for the count."""
        (shape,) = self.pod_sets(obj)
        return elastic.same_shape(workload, obj, shape, started=template_before.changed(obj))

    def mark(self, obj: Job) -> SizeMark | None:
        """Return what its annotation says."""
        return mark_of(obj.metadata.annotations)

    def size_patch(self, obj: Job, size: Size) -> bytes | None:
        """Return the patch of parallelism, of completions that go with it, and of the mark."""
        return elastic.size_patch(obj, size, here=False)

    def local_size_patch(self, obj: Job, size: Size) -> bytes | None:
        """Return the patch of the mark."""
        return elastic.size_patch(obj, size, here=True)

    def charged_at(self, obj: Job, raw: bytes, mark: SizeMark) -> Charged:
        """Return parallelism and completions of that size, and the digest of the template."""
        return elastic.charged_at(self.charged(obj, raw), mark)

    def gated_pods(self, obj: Job, pods: Sequence[Pod]) -> Mapping[str, tuple[Pod, ...]]:
        """Return its pods that wait, lowest index first, then oldest first."""
        return elastic.gated_pods(obj, pods)

    def surplus(self, obj: Job, pods: Sequence[Pod], counts: Counts) -> tuple[Surplus, ...]:
        """Return how many are let go above the count."""
        return elastic.surplus(pods, counts)

    # --- what is otherwise than of any Job ---------------------------------------------------------------------

    def workload_name(self, obj: Job) -> str:
        """Return the name that a slice made now has: that of one which resizes goes with its generation."""
        return self.slice_name(obj) if self.resizes(obj) else super().workload_name(obj)

    def workload_document(self, obj: Job, raw: bytes, priority: Priority) -> bytes:
        """Return the Workload, as the first slice where the Job resizes."""
        made = super().workload_document(obj, raw, priority)
        return slices.first(made) if self.resizes(obj) else made

    def replaces(self, workload: Workload, current: Workload) -> bool:
        """Return whether it is a later slice of the same chain that says so; also of what keeps its size."""
        return slices.replaces(workload, current)

    def user_change(
        self, obj: Job, workload: Workload, key: PlacementKey, granted: Mapping[str, int]
    ) -> UserChange | None:
        """Return the same, but for another size of one that resizes."""
        if self.outcome(obj) is not None:
            return None
        return job_running.user_change(obj, workload, key, granted, any_size=self.resizes(obj))

    def parts(self, obj: Job, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Return the Job for as many pods as are granted: its user may want more by now."""
        found = super().parts(obj, raw, granted)
        if not self.gated(obj):
            return found
        count = granted.get(markers.DEFAULT_POD_SET)
        return tuple(
            Part(
                name=one.name,
                pod_set=one.pod_set,
                metadata=one.metadata,
                spec=encode(elastic.granted_spec(obj, decode(one.spec), count)),
            )
            for one in found
        )

    def document(self, part: Part, placing: Placing) -> bytes:
        """Return the Job with the mark of its size."""
        made = super().document(part, placing)
        return made if placing.size is None else encode(elastic.marked(decode(made), placing))

    def local_lift_patch(self, obj: Job, raw: bytes, placing: Placing) -> bytes:
        """Return the patch, with the mark; more pods than are granted may be wanted, and wait."""
        if placing.size is None or not self.gated(obj):
            return super().local_lift_patch(obj, raw, placing)
        operations = decode_operations(job_template.local_lift_patch(obj, raw, placing, by_count=True))
        tied = elastic.is_tied(obj.spec.completion_mode, job_partial.now(obj))
        mark: Operation = {
            "op": "add",
            "path": pointer("metadata", "annotations", ANNOTATION_SIZE),
            "value": elastic.first_mark(placing, tied=tied),
        }
        return encode([*operations, mark])

    def local_stop_step(self, obj: Job, raw: bytes, key: PlacementKey) -> Step | None:
        """Return the step; what puts the template back takes the mark off, too."""
        step = super().local_stop_step(obj, raw, key)
        if not isinstance(step, PatchStep) or not step.restores or ANNOTATION_SIZE not in obj.metadata.annotations:
            return step
        removed: Operation = {"op": "remove", "path": pointer("metadata", "annotations", ANNOTATION_SIZE)}
        body = encode([*decode_operations(step.body), removed])
        return PatchStep(body=body, kind=step.kind, subresource=step.subresource, restores=step.restores)

    # --- the webhook -------------------------------------------------------------------------------------------

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return the same, and the gate in the template of one that asks for it."""
        return elastic_rules.defaults(obj, facts) if self._on else super().defaults(obj, facts)

    def corrected(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Correction:
        """Return the same, and that the gate stays."""
        return elastic_rules.corrected(old, new, facts) if self._on else super().corrected(old, new, facts)

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a new Job."""
        return elastic_rules.validate_create(obj, facts) if self._on else super().validate_create(obj, facts)

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a change of a Job; of size there is nothing while it runs."""
        if not self._on:
            return super().validate_update(old, new, facts)
        return elastic_rules.validate_update(old, new, facts)
