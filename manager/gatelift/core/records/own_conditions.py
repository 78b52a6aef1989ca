"""Which conditions are Gatelift's (and Kueue's), and what others have to leave when a list of them is full. Pure.

Whoever may write a status may fill its conditions up to what the CRD takes. What we write goes first then: theirs are
left out, first come first gone, and people are told. Neighbours: `status_writes` writes such lists, `kept_record` puts
ours back.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.records import admitted_by, drains, epochs
from gatelift_kinds.shared import pod_trouble
from gatelift_kube.objects.conditions import CONDITIONS_MAX, left_out
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain

RECORD = frozenset(
    {
        texts.QUOTA_RESERVED,
        texts.ADMITTED,
        texts.EVICTED,
        texts.PREEMPTED,
        texts.REQUEUED,
        texts.BLOCKED_ON_GATES,
        texts.DEACTIVATION_TARGET,
        texts.PODS_READY,
        epochs.EPOCH_USED,
        admitted_by.ADMITTED_BY,
        drains.CONDITION,
    }
)
"""Of a Workload: those that only Gatelift writes; Finished is final, whoever wrote it."""
WORKLOAD = RECORD | {texts.FINISHED, texts.HELD, pod_trouble.CONDITION, texts.REPLACEMENTS}
"""Of a Workload: all that Gatelift or Kueue write."""

LEFT_OUT = "ConditionsLeftOut"
"""Reason of the event."""
_TYPE_CHARS_MAX = 64
"""Of a type that somebody else chose, in that event."""


class _Said(msgspec.Struct, frozen=True):
    type: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Said, ...] = ()


class _Written(msgspec.Struct, frozen=True):
    status: _Status = _Status()


_WRITTEN = msgspec.json.Decoder(_Written)


def leaves_out(known: Workload, body: bytes) -> str:
    """Return what people are told of others' conditions that this write of a whole status leaves out, "" of none."""
    if sum(each.type not in WORKLOAD for each in known.status.conditions) <= CONDITIONS_MAX - len(WORKLOAD):
        return ""  # there is room for all of ours beside them
    written = _WRITTEN.decode(body).status.conditions
    return told(left_out(known.status.conditions, (each.type for each in written), WORKLOAD))


def told(types: tuple[str, ...]) -> str:
    """Return what people are told of these, "" of none."""
    if not types:
        return ""
    named = texts.listing([plain(each, _TYPE_CHARS_MAX) for each in types])
    return (
        f"status.conditions holds at most {CONDITIONS_MAX}, and was full of what others have put there: left out, so "
        f"that Gatelift's own have room: {named}; look who writes them"
    )
