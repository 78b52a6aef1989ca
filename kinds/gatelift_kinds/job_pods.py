"""The pods of a Job against what its controller made and counted: whether one went that nobody counted. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_kinds import job_running, pods
from gatelift_kube.objects.batch import Job, UncountedTerminatedPods
from gatelift_kube.objects.core import Pod


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
