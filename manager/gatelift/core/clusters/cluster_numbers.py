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
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift.core.clusters.identity import SESSION_JUMP_MAX
from gatelift_kube.objects.gatelift import WorkerClusterStatus
from gatelift_kube.values.plain_text import plain

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
    each.name: each.encode_name
    for each in msgspec.structs.fields(WorkerClusterStatus)
    if each.name in {"session", *SIBLINGS}
}
"""All of them, and what each is called in the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What own writes to an object have said: one of them may have landed unanswered.

    `numbers`: the highest of each field, by the document's name. `after`: the last word after a restore, which is no
    number to be compared: the finding and the session that it names; None where none was written.
    """

    numbers: Mapping[str, int] = field(default_factory=dict)
    after: tuple[str, int] | None = None

    def and_then(self, document: Mapping[str, Any]) -> Tried:
        """Return the same with one more document of a status."""
        numbers = {name: max(self.numbers.get(name, 0), document.get(name, 0)) for name in FIELDS.values()}
        after = (document["fencedAfter"], document["fencedAfterThrough"]) if "fencedAfter" in document else self.after
        return Tried(numbers=numbers, after=after)


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


def as_written(status: WorkerClusterStatus, known: WorkerClusterStatus, tried: Tried) -> WorkerClusterStatus:
    """Return what a status counts as for a leader that has written here: what it knows, or what it has tried to write.

    Of its own term, whatever term stands there: nobody else has led since. Where somebody else wrote over what it has
    tried, the last session and doubts count as if that had landed, words as if it had not.
    """
    counts: dict[str, Any] = {"term": known.term}
    for name, called in FIELDS.items():
        least = getattr(known, name)
        most = max(least, tried.numbers.get(called, 0))
        if not least <= getattr(status, name) <= most:
            counts[name] = most if name == "session" or name in DOUBTS else least
    if _after(status) != tried.after:
        counts |= {"fenced_after": known.fenced_after, "fenced_after_through": known.fenced_after_through}
    return msgspec.structs.replace(status, **counts)


def document(status: WorkerClusterStatus) -> dict[str, Any]:
    """Return the numbers, and the term that they are of, as a part of the document that is written over others."""
    said = {called: getattr(status, name) for name, called in FIELDS.items()}
    finding, through = _after(status)
    return {"term": status.term, **said, "fencedAfter": finding, "fencedAfterThrough": through}


def edited(found: WorkerClusterStatus, counts: WorkerClusterStatus) -> str:
    """Return what stands there that does not count, for people; "" where all of it does."""
    before, after = document(found), document(counts)
    differ = ((called, said) for called, said in before.items() if after[called] != said)
    return ", ".join(f"{called} {plain(str(said)) or 'nothing'}" for called, said in differ)


def _siblings(status: WorkerClusterStatus) -> tuple[int, ...]:
    return tuple(getattr(status, name) for name in SIBLINGS)


def _after(status: WorkerClusterStatus) -> tuple[str, int]:
    """Return a person's word after a restore: the finding that it names, and through which session it goes."""
    return status.fenced_after, status.fenced_after_through
