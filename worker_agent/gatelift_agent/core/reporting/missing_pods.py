"""Pods of a Job that its controller does not make, as where a ResourceQuota lets some of them pass and not all.

The Job's status does not say so, and its controller's events are not ours to read. So it is noticed by what is not
there once no pod of it has come for a while, and the API server is asked by a dry run what it says of one more: that
needs no right which the agent has not. Asked once, and again when something of the Job has changed or nobody could
tell, so that a trouble that lasts costs nothing. At home there is no right to make pods, and its user reads the events
himself. It moves nothing.
Neighbours: `troubles` calls, `outcomes` brings the answer.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.placement.pods_of_jobs import Shortage
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import SamplePod
from gatelift_kinds.shared import pod_trouble
from gatelift_kinds.shared.pod_trouble import Trouble
from gatelift_kube.deciding.writes import WriteDone, WriteError, WriteFailed
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import PodSetCounts

MISSING_SECONDS = 8.0
"""Pods are missing when none has come for so long: a Job's controller makes them within a second or two, and a busy one
makes some. Shorter than the manager waits with the end of a trouble, so an agent that starts again takes nothing back.
"""
AGAIN_SECONDS = 60.0
"""While pods of a Job are missing, the API server is asked again after this at the earliest."""
_SAYS_WHY = frozenset({WriteError.QUOTA, WriteError.DENIED})
"""Answers that are about the pod."""
_NEVER_SAYS = frozenset({WriteError.FORBIDDEN, WriteError.INVALID, WriteError.TOO_LARGE, WriteError.NOT_FOUND})
"""Answers that are about the asking, and no others for asking again. What is in neither is of a moment."""


def trouble(world: World, placement: Placement, seen: PodSetCounts, now: float) -> Trouble | None:
    """Return that pods of one pod set are not there, once that has stood; `seen`: those that are known."""
    tracked = next((each for each in placement.objects.values() if each.object is not None), None)
    if tracked is None or tracked.object is None:
        return None
    lacks, due = world.kind(placement).missing(tracked.object, seen)
    if not lacks:
        placement.shortages.pop(seen.name, None)
        return None
    made = seen.remaining + seen.succeeded + seen.failed
    found = placement.shortages.setdefault(seen.name, Shortage(since=now, made=made))
    if made > found.made:
        found.since, found.made = now, made
    at = found.since + MISSING_SECONDS
    if now < at:
        world.wakes.ask(placement.key, at)
        return None
    _ask(world, placement, tracked, seen.name, now)
    if found.again and now < found.again_at:  # after that whatever lets it ask looks here
        world.wakes.ask(placement.key, found.again_at)
    if not found.answered or (seen.failed and not found.why):
        return None  # a controller waits before it makes another pod in the place of one that failed
    return pod_trouble.missing(tracked.name, lacks, due, found.why)


def answered(placement: Placement, pod_set: str, event: WriteDone | WriteFailed) -> None:
    """Take what the API server said of one more pod."""
    found = placement.shortages.get(pod_set)
    if found is None:
        return
    found.asking, found.answered = False, True
    found.again = isinstance(event, WriteFailed) and event.error not in _SAYS_WHY | _NEVER_SAYS
    if isinstance(event, WriteDone):
        found.why = ""
    elif event.error in _SAYS_WHY:
        _, forbidden, why = event.message.partition(" is forbidden: ")  # the pod before it has a name of chance
        found.why = plain(why if forbidden else event.message, pod_trouble.TEXT_CHARS_MAX)


def _ask(world: World, placement: Placement, tracked: Tracked, pod_set: str, now: float) -> None:
    found = placement.shortages[pod_set]
    if world.local:
        found.answered = True
        return
    if found.asking or now < found.again_at or starting.why_not(world, placement, now):
        return  # of its end tells an answer, or whatever makes us look here
    body = world.kind(placement).pods_of_it(tracked.object, tracked.raw).get(pod_set)
    if body is not None and world.has_room(placement):
        found.asking, found.again, found.again_at = True, False, now + AGAIN_SECONDS
        asking.why(world, placement, tracked, SamplePod(pod_set, body), now)
