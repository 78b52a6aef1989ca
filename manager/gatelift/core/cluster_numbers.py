"""The session numbers in `WorkerCluster.status`: what they count as, whatever somebody has written there. Pure.

A word about a session, a doubt and its end are compared with each other by these numbers, so none of them may be what
nobody has come to. A leader that has written here in its own term knows each of them: nobody else has led since (R2),
and what differs from what it wrote, or has tried to write, is an edit. One that has only begun to lead judges them by
each other: an agent answers the sessions that it gets, so the last one lies not far above the last that was answered,
and all others are numbers of sessions. What a version counts as takes its place in all that decides (`cluster_record`),
and is written over it, conditional on that version. Decision 64 has the reasons.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift.core.identity import SESSION_JUMP_MAX
from gatelift_kube.objects.gatelift import WorkerClusterStatus

SESSION_MAX = 2**59
"""No session comes to this number: it has 18 digits, as many as a person's word may have, and is 2^27 of the farthest
jumps away that a greeting may ask for."""

WITNESS_MAX = SESSION_MAX // 2
"""From a higher number nothing is counted on that is not a session's own: what is gone on to stays below the other."""

GO_ON_ABOVE = 2**24
"""So far above the highest number that is believed it goes on where the last session's own is not: above all that may
have been written since, one a second for half a year without an answer. No number is used twice (R2)."""

DOUBTS = ("restored_session", "replaced_session", "taken_over_session")
WORDS = ("settled_session", "fenced_through_session")
SIBLINGS = ("opened_session", *DOUBTS, *WORDS)
"""Each is the number of a session; a doubt about the first one is dated to the second before that is written."""

FIELDS = {
    field.name: field.encode_name
    for field in msgspec.structs.fields(WorkerClusterStatus)
    if field.name in {"session", *SIBLINGS}
}
"""All of them, and what each is called in the document."""


def begun_from(status: WorkerClusterStatus) -> WorkerClusterStatus:
    """Return what a status counts as for a leader that has not written here in its own term.

    A last session that nobody can have come to goes on above the others; one below them was lowered. An answered
    session or a doubt that nobody can have come to is of the last session; an end of doubts, and a person's word, that
    name no session there can be are none: both only ever free what may run.
    """
    near = [each for each in _siblings(status) if each <= WITNESS_MAX]
    session = status.session
    if session > SESSION_MAX or session > max(near, default=0) + SESSION_JUMP_MAX:
        session = max(near, default=0) + GO_ON_ABOVE
    lowered = max((each for each in near if each <= session + SESSION_JUMP_MAX), default=0)
    if lowered > session + 1:
        session = lowered
    counts: dict[str, int] = {"session": session}
    for name in SIBLINGS:
        if getattr(status, name) > session + 1:
            counts[name] = 0 if name in WORDS else session
    if status.fenced_after_through > session + 1:
        counts["fenced_after_through"] = 0
    return msgspec.structs.replace(status, **counts)


def as_written(
    status: WorkerClusterStatus, known: WorkerClusterStatus, tried: Mapping[str, int]
) -> WorkerClusterStatus:
    """Return what a status counts as for a leader that has written here: what it knows, or what it has tried to write.

    Of its own term, whatever term stands there: nobody else has led since.

    `tried`: the highest number of each field in its own writes, by the document's name; one may have landed unanswered.
    Where somebody else wrote over that, the last session and doubts count as if it had, words as if it had not.
    """
    counts: dict[str, int] = {"term": known.term}
    for name, field in FIELDS.items():
        least = getattr(known, name)
        most = max(least, tried.get(field, 0))
        if not least <= getattr(status, name) <= most:
            counts[name] = most if name == "session" or name in DOUBTS else least
    return msgspec.structs.replace(status, **counts)


def tried_with(tried: Mapping[str, int], document: Mapping[str, Any]) -> dict[str, int]:
    """Return the highest numbers of all own writes, with one more document of a status."""
    return {field: max(tried.get(field, 0), document.get(field, 0)) for field in FIELDS.values()}


def document(status: WorkerClusterStatus) -> dict[str, int]:
    """Return the numbers, and the term that they are of, as a part of the document that is written over others."""
    said = {field: getattr(status, name) for name, field in FIELDS.items()}
    return {"term": status.term, **said, "fencedAfterThrough": status.fenced_after_through}


def edited(found: WorkerClusterStatus, counts: WorkerClusterStatus) -> str:
    """Return what stands there that does not count, for people; "" where all of it does."""
    before, after = document(found), document(counts)
    return ", ".join(f"{field} {number}" for field, number in before.items() if after[field] != number)


def _siblings(status: WorkerClusterStatus) -> tuple[int, ...]:
    return tuple(getattr(status, name) for name in SIBLINGS)
