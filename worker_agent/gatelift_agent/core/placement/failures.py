"""Which container of a placement failed first, kept until its end is told: pods of a Job may be gone by then.

For people alone: nothing is decided by it, and what is not known is left out. Not at `local`, where the pods are there
to be looked at. Neighbours: `observing` tells of pods, `closing` asks.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import EndingKind, Placement
from gatelift_kinds.shared import failed_container
from gatelift_kinds.shared.failed_container import PodFailure
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.told import FailedContainer

JOBS_MAX = 4096
"""Jobs of which a failed container is remembered, with 2 KiB of its words each: 8 MiB. The oldest goes first, and is
told without it: more than fail on one worker at a time."""


class Failures:
    """What failed first of each Job's pods, by the Job's UID."""

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[str, PodFailure] = {}

    def __len__(self) -> int:
        return len(self._first)

    def seen(self, job: str, pod: Pod, raw: bytes) -> None:
        """Take a pod of a Job as it was seen."""
        found = failed_container.first(self._first.get(job), failed_container.of_pod(pod, raw))
        if found is None:
            return
        self._first[job] = found
        if len(self._first) > JOBS_MAX:
            del self._first[next(iter(self._first))]

    def forget(self, placement: Placement) -> None:
        """Forget what is known of a placement that is over."""
        for tracked in placement.objects.values():
            self._first.pop(tracked.uid, None)

    def of(self, placement: Placement) -> FailedContainer | None:
        """Return which container failed first of a placement that failed; None: it did not, or nobody knows."""
        ending = placement.ending
        if ending is None or ending.kind is not EndingKind.FINISHED or ending.succeeded:
            return None
        found: PodFailure | None = None
        for tracked in placement.objects.values():
            pod = tracked.last_object if tracked.object is None else tracked.object
            own = failed_container.of_pod(pod, tracked.raw) if isinstance(pod, Pod) else self._first.get(tracked.uid)
            found = failed_container.first(found, own)
        return found.container if found is not None else None
