"""What a pod says of its end before it is deleted: the condition TerminationTarget, as Kueue writes it. Pure.

Kueue's behaviour: pods-and-slices 2.9. It informs whoever sees the pod go, and an operator who finds it gone in a log:
no stop waits for it. Without a time where nobody has one: an agent's core has no wall clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gatelift_kinds.shared.patches import Json, encode, guards, pointer, status_of
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.conditions import TRUE
from gatelift_kube.objects.core import PodCondition
from gatelift_kube.objects.meta import ObjectMeta

CONDITION = "TerminationTarget"
EVICTED_REASON = "WorkloadEvictedDueTo"
"""How the reason begins where the Workload was evicted; the reason of the eviction follows."""
WORKLOAD_DELETED = "WorkloadDeleted"
NOT_ADMITTED = "NotAdmitted"
NO_MATCHING_WORKLOAD = "NoMatchingWorkload"
MESSAGES = {WORKLOAD_DELETED: "Workload is deleted"}
_REASON_CHARS_MAX = 128
"""Of what follows `EVICTED_REASON`: our own have a third of it, a check's or a person's is not believed beyond."""

_OF_STOPS = {
    "WorkloadDeleted": WORKLOAD_DELETED,
    "OwnerDeleted": WORKLOAD_DELETED,  # with the user's object, or out of its queue: its Workload goes
    "NoMatchingWorkload": NO_MATCHING_WORKLOAD,
    "NotLive": NOT_ADMITTED,
    "Finished": NOT_ADMITTED,
    "Forgotten": NOT_ADMITTED,
    "Superseded": NOT_ADMITTED,
}
"""Reasons of a stop that are no eviction."""
_RUNS_AGAIN = frozenset({NOT_ADMITTED, NO_MATCHING_WORKLOAD})
"""Reasons of the condition, but for those of an eviction, after which a work may run again."""


def reason_of(stop: str) -> str:
    """Return the condition's reason for the reason of a stop; total: what is no word is said to be `NotAdmitted`."""
    known = _OF_STOPS.get(stop)
    if known is not None:
        return known
    is_word = stop.isascii() and stop.isalnum() and len(stop) <= _REASON_CHARS_MAX
    return EVICTED_REASON + stop if is_word else NOT_ADMITTED


def said_step(meta: ObjectMeta, raw: bytes, reason: str, message: str, wall: str = "") -> PatchStep | None:
    """Return the write that says it on a pod, None where it is said; `wall` (RFC 3339) "": nobody knows the time.

    Appended, so that what a kubelet writes meanwhile stays; tied to the version where there is no list to append to, or
    an older word of this kind to replace.
    """
    present: list[Any] = status_of(raw).get("conditions") or []
    said: Json = {"type": CONDITION, "status": TRUE, "reason": reason, "message": message}
    if wall:
        said["lastTransitionTime"] = wall
    at = next((index for index, one in enumerate(present) if one.get("type") == CONDITION), None)
    if at is not None and (present[at].get("status"), present[at].get("reason")) == (TRUE, reason):
        return None
    path = ("status", "conditions")
    if at is not None:
        operation: Json = {"op": "replace", "path": pointer(*path, str(at)), "value": said}
    elif present:
        operation = {"op": "add", "path": pointer(*path, "-"), "value": said}
    else:
        operation = {"op": "add", "path": pointer(*path), "value": [said]}
    tests: list[Json] = guards(meta, version=at is not None or not present)
    body = encode([*tests, operation])
    return PatchStep(body=body, kind=PatchKind.JSON, subresource="status")


def is_said(conditions: Iterable[PodCondition]) -> bool:
    """Say whether the conditions of a pod have one that a stop of ours wrote, after which its work may run again.

    Not where its Workload was deleted: that ends it for good.
    """
    said = (one.reason for one in conditions if one.type == CONDITION and one.status == TRUE)
    return any(one in _RUNS_AGAIN or one.startswith(EVICTED_REASON) for one in said)
