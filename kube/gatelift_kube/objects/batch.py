"""batch/v1: Job."""

from __future__ import annotations

import msgspec

from gatelift_kube.objects.core import PodTemplate
from gatelift_kube.objects.meta import Condition, LabelSelector, ObjectMeta, Struct


class JobSpec(Struct, frozen=True, gc=False):
    """batch/v1 JobSpec, the fields that deciding needs."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    backoff_limit: int | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    manual_selector: bool | None = None
    selector: LabelSelector | None = None
    ttl_seconds_after_finished: int | None = msgspec.field(default=None, name="ttlSecondsAfterFinished")
    template: PodTemplate = PodTemplate()


class UncountedTerminatedPods(Struct, frozen=True, gc=False):
    """batch/v1 UncountedTerminatedPods."""

    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Struct, frozen=True, gc=False):
    """batch/v1 JobStatus."""

    active: int = 0
    ready: int | None = None
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(Struct, frozen=True, gc=False):
    """batch/v1 Job."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()
