"""Writes to `WorkerCluster.status`: what each is for, and what will be true once it has succeeded (rule R2). Pure.

Neighbours: `cluster_record` (decides which comes next), `link` (acts on the outcome), `cluster_facts` (what
is changed).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gatelift.core.api import informing
from gatelift.core.clusters import fencing
from gatelift.core.clusters.cluster_facts import Facts
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.versions import newer
from gatelift_wire.sessions.session import GreetingReceived, LeaseRenewed


class StatusPurpose(enum.Enum):
    """What a write to WorkerCluster is for, dearest first: all but ANSWER are to its status."""

    SESSION = "session"
    ANSWER = "answer"
    LOST = "lost"
    FENCED = "fenced"
    UNREACHABLE = "unreachable"
    DOUBT = "doubt"
    PUT_BACK = "numbers put back"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write in flight: what will be true once it has succeeded, and the greeting it was made for (SESSION)."""

    write_id: int
    purpose: StatusPurpose
    changes: Mapping[str, Any]
    stream_id: int = 0


def doubted(term: int, ours: int) -> str:
    """Return what is told of a term that an agent says it has seen, and no leader wrote."""
    return (
        f"its agent says that it has seen term {term}, which nobody wrote here (ours is {ours}): it is not served; "
        "is it an agent of another or of a restored manager?"
    )


class Numbers(NamedTuple):
    """The term of who writes, and the session that comes next."""

    term: int
    next_session: int


def changes_of(
    purpose: StatusPurpose,
    found: WorkerCluster,
    facts: Facts,
    said: GreetingReceived | LeaseRenewed | None,
    numbers: Numbers,
) -> dict[str, Any]:
    """Return what will be true of the facts when the write has succeeded; until then nothing of it is.

    `said` is the greeting or the renewal that the write is about.
    """
    next_session = numbers.next_session
    if purpose is StatusPurpose.ANSWER:
        return {}  # the status is left alone
    changes: dict[str, Any] = {"term": numbers.term}
    if facts.informs:
        changes["written_capacity"] = facts.capacity
    match purpose, said:
        case StatusPurpose.SESSION, GreetingReceived(hello=hello):
            changes |= {
                "session": next_session,
                "connected": True,
                "lost": False,
                "agent_instance": hello.instance,
                "api_reachable": hello.api_reachable,
                **informing.who(hello),
            }
        case StatusPurpose.LOST, _:
            changes |= {"connected": False, "lost": True}
            if not found.status.session and facts.placements:
                # Made anew and never heard since: what is charged there is of an earlier object's sessions, and a
                # person's word about that must have a session to name.
                changes["session"] = next_session
        case StatusPurpose.FENCED, _:
            through, who = fencing.fence_wanted(found), fencing.fence_author(found)
            changes |= {"fenced_through": max(through, found.status.fenced_through_session), "fenced_by": who}
            after = fencing.fence_finding(found)
            if after:
                changes |= {"fenced_after": after, "fenced_after_through": through}
        case StatusPurpose.UNREACHABLE, LeaseRenewed(api_reachable=reachable):
            changes |= {"api_reachable": reachable}
        case _:
            pass
    return changes


def latest(known: WorkerCluster | None, found: WorkerCluster) -> WorkerCluster:
    """Return what is to be believed: `found`, unless it is the answer to a write, overtaken by what somebody wrote."""
    overtaken = known is not None and known.metadata.uid == found.metadata.uid and newer(known.metadata, found.metadata)
    return known if known is not None and overtaken else found
