"""Pods of a Job that the watch calls gone: perhaps only their labels were taken off. Each is asked for first.

A watch by label says the same of both. The question is the write that puts the labels back, with the pod's UID: it
brings the pod back into view, or proves that it is gone. Until then the pod is counted as it was seen last.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_kinds.registry import Registry
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID

RETRY_SECONDS = 5.0
"""Pause after a question without an answer; the client's own retries are behind it."""

_LABELS = (LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)


def ask(world: World, placement: Placement, now: float) -> None:
    """Ask for each pod of this placement that no watch shows. A deposed replica asks for nothing."""
    for hidden in placement.hidden.values():
        if hidden.asked or not world.leadership.acts(now):
            continue
        if hidden.retry_at > now:
            world.wakes.ask(placement.key, hidden.retry_at)
        elif world.has_room(placement):
            hidden.asked = True
            meta = hidden.pod.metadata
            body = {"metadata": {"uid": meta.uid, "labels": _labels(world.kinds, hidden.pod)}}
            asking.child_labels(world, placement, hidden.pod, msgspec.json.encode(body), now)


def _labels(kinds: Registry, pod: Pod) -> dict[str, str]:
    """Return our labels of a pod: as its mark says, or as they were seen last."""
    for mark in ownership.marks(kinds, pod):
        return {LABEL_ORIGIN: mark.origin, LABEL_WORKLOAD_UID: mark.key.uid, LABEL_EPOCH: str(mark.key.epoch)}
    return {name: pod.metadata.labels.get(name, "") for name in _LABELS}


def found(placement: Placement, name: str) -> Pod | None:
    """Return the hidden pod of a name, None when there is none (any more)."""
    return next((each.pod for each in placement.hidden.values() if each.pod.metadata.name == name), None)


def unanswered(placement: Placement, pod: Pod, now: float) -> None:
    """Take that nobody could tell whether a pod is there."""
    hidden = placement.hidden.get(pod.metadata.uid)
    if hidden is not None:
        hidden.asked, hidden.retry_at = False, now + RETRY_SECONDS
