"""The pods of a Job against what its controller made, makes and counted: which one nobody counted, or makes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_kinds.job import running as job_running
from gatelift_kinds.job.indexes import count_below
from gatelift_kinds.shared import pods
from gatelift_kube.objects.batch import Job, UncountedTerminatedPods
from gatelift_kube.objects.conditions import TRUE
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.messages import PodSetCounts

_NO_MORE = frozenset({"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"})
"""Conditions of a Job whose controller makes no pods."""


def counted(obj: Job) -> int:
    """Return the pods that its controller counted as ended, noted ones included.

    It counts a pod before it takes its finalizer off. Not counted are those it deletes itself (by a suspension, or when
    there are to be fewer) and those whose finalizer somebody else took off.
    """
    return obj.status.succeeded + obj.status.failed + len(noted(obj))


def noted(obj: Job) -> tuple[str, ...]:
    """Return the UIDs of the pods that its controller has noted as ended, and counts next."""
    found = obj.status.uncounted_terminated_pods or UncountedTerminatedPods()
    return (*found.succeeded, *found.failed)


def uncounted(obj: Job, found: Sequence[Pod]) -> int:
    """Return how many pods of a Job that is let go are gone at least, and were not counted; `found`: all there are.

    Its controller makes the first pods before it writes `status.startTime`, and later each in the place of one. So the
    pods that are there and those that ended are as many as the first ones and all later ones. Both times are of whole
    seconds in UTC, as API servers write them.
    """
    over = sum(map(pods.over, found))
    start = obj.status.start_time
    later = sum(1 for pod in found if start and (pod.metadata.creation_timestamp or "") > start)
    here_or_ended = len(found) - over + max(counted(obj), over)
    return max(0, job_running.pods_at_once(obj) + later - here_or_ended)


def completed(obj: Job, completions: int) -> int:
    """Return how many of its completions need no pod any more: failed indexes need none, retried failures do."""
    if obj.spec.completion_mode != "Indexed":
        return obj.status.succeeded
    return count_below(completions, obj.status.completed_indexes, obj.status.failed_indexes or "")


def missing(obj: Job, seen: PodSetCounts) -> tuple[int, int]:
    """Return how many pods of a Job are not there that its controller is to make, and how many are to be there.

    What is there is what was `seen` of them or what its controller counts, whichever is more: either may be behind.
    """
    due = _due(obj, seen)
    here = max(seen.remaining, obj.status.active + (obj.status.terminating or 0))
    return max(0, due - here), due


def _due(obj: Job, seen: PodSetCounts) -> int:
    spec = obj.spec
    stops = any(one.type in _NO_MORE and one.status == TRUE for one in obj.status.conditions)
    if stops or spec.suspend or obj.metadata.deletion_timestamp is not None:
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:  # a queue of work: once a pod of it has succeeded there are no new ones
        return 0 if seen.succeeded else parallelism
    done = max(completed(obj, spec.completions), seen.succeeded)
    return min(parallelism, max(0, spec.completions - done))
