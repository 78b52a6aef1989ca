"""The conditions of a WorkerCluster: what people are shown of its facts. Pure.

Neighbours: `cluster_facts` (what is true), `cluster_status` (writes them with all else), `foreign_runs` and `informing`
(conditions of their own).
"""

from __future__ import annotations

from gatelift.core.api import informing
from gatelift.core.clusters import foreign_runs, identity
from gatelift.core.clusters.cluster_facts import (
    CONNECTED,
    FENCED,
    LOST,
    NO_NEW_WORK,
    REPLACED,
    RESTORED,
    SECOND_AGENT,
    TAKEN_OVER,
    Facts,
)
from gatelift.core.clusters.fencing import ANNOTATION_FENCE_REFUSED
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.meta import Condition

OURS = frozenset(
    {
        CONNECTED,
        FENCED,
        NO_NEW_WORK,
        REPLACED,
        RESTORED,
        SECOND_AGENT,
        TAKEN_OVER,
        foreign_runs.CONDITION,
        informing.CONDITION,
    }
)
"""The types that are written here; what others put beside them goes where there is no room."""

REFUSED_CHARACTERS_MAX = 1000
"""Of an annotation that anybody may write, in a condition."""


def _connected(found: WorkerCluster, facts: Facts) -> Condition:
    if facts.connected and facts.session_open:
        status, reason, message = "True", CONNECTED, f"Session {facts.session} with agent {facts.agent_version}"
    elif facts.connected:
        status, reason = "Unknown", "NoSession"
        message = f"Session {facts.session} is not open: nothing new is sent, running work is left alone"
    elif facts.lost:
        status, reason = "False", LOST
        message = "The lease ran out: running work is left alone, its quota stays charged, nothing new is sent"
    else:
        status, reason, message = "False", "NeverConnected", "No agent of this cluster has connected yet"
    return Condition(
        type=CONNECTED, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )


def _doubts(found: WorkerCluster, facts: Facts) -> tuple[Condition, ...]:
    """Return what is shown of a worker that came back older than its record, or of another one under its name."""
    name, left = found.metadata.name, facts.unexplained
    listed = f"{left} placements of before are not in its inventory" if left is not None else "its inventory is awaited"
    restored = f"In session {facts.restored_session} it remembered less than is recorded: it was restored from a backup"
    other = "another cluster greeted under this name, or this WorkerCluster was made anew"
    replaced = f"In session {facts.replaced_session} {other}"
    taken_over = f"In session {facts.taken_over_session} another agent took over, with a Lease of its own"
    out = []
    for type_, session, reason, what in (
        (RESTORED, facts.restored_session, "OlderThanItsRecord", restored),
        (REPLACED, facts.replaced_session, "AnotherCluster", replaced),
        (TAKEN_OVER, facts.taken_over_session, "AnotherLease", taken_over),
    ):
        if not session:
            continue
        over = session <= facts.settled_session
        if over:
            message = f"{what}; nothing of before is left that it does not list"
        else:
            message = f"{what}; {listed}: they stay charged. When nothing of them runs: gatelift cluster fenced {name}"
            if identity.awaits_person(found, session):
                message += f". Nothing new is placed there; for that alone: gatelift cluster cordon {name} --off"
        out.append(
            Condition(
                type=type_,
                status="False" if over else "True",
                reason="Settled" if over else reason,
                message=message,
                observed_generation=found.metadata.generation,
            )
        )
    return tuple(out)


def _second_agent(found: WorkerCluster, facts: Facts) -> Condition | None:
    """Return what is shown of another agent that greets beside the one that is served."""
    if facts.second_agent:
        status, reason, message = "True", "TurnedAway", facts.second_agent
    elif conditions.find(found.status.conditions, SECOND_AGENT) is not None:
        status, reason, message = "False", "Gone", "No other agent greets as this cluster any more"
    else:
        return None
    return Condition(
        type=SECOND_AGENT, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )


def _no_new_work(found: WorkerCluster, facts: Facts) -> Condition | None:
    """Return what is shown of a cluster that gets no new work for what it has said."""
    reason, message = facts.no_new_work
    if reason:
        status = "True"
    elif conditions.find(found.status.conditions, NO_NEW_WORK) is not None:
        status, reason, message = "False", "None", "Nothing that it says keeps new work from it any more"
    else:
        return None
    return Condition(
        type=NO_NEW_WORK, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )


def _fenced(found: WorkerCluster, facts: Facts) -> Condition | None:
    """Return how a person's last word was answered."""
    refused = found.metadata.annotations.get(ANNOTATION_FENCE_REFUSED, "")
    through = max(facts.fenced_through, found.status.fenced_through_session)
    if refused:
        status, reason, message = "False", "Refused", refused[:REFUSED_CHARACTERS_MAX]
    elif through:
        who = facts.fenced_by or found.status.fenced_by
        status, reason = "True", "SaidByPerson"
        message = f"Nothing of a session up to {through} runs any more, says {who}"
    else:
        return None
    return Condition(
        type=FENCED, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )


def of(found: WorkerCluster, facts: Facts) -> tuple[Condition, ...]:
    """Return what is shown now, a condition of ours each."""
    foreign = foreign_runs.condition(found, facts.foreign)
    doubts = (*_doubts(found, facts), _second_agent(found, facts), _no_new_work(found, facts))
    said = (
        _connected(found, facts),
        *doubts,
        _fenced(found, facts),
        foreign,
        informing.condition(found, facts.left_out),
    )
    return tuple(condition for condition in said if condition is not None)


def put(found: WorkerCluster, facts: Facts, wall: str) -> tuple[Condition, ...]:
    """Return all conditions of the status, those of others kept as far as there is room."""
    kept = found.status.conditions
    for condition in of(found, facts):
        kept = conditions.put(kept, condition, wall)
    return conditions.fitting(kept, OURS)


def leaves_out(found: WorkerCluster, facts: Facts, wall: str) -> tuple[str, ...]:
    """Return the types of others' conditions that a write of these facts leaves out."""
    return conditions.left_out(found.status.conditions, (each.type for each in put(found, facts, wall)), OURS)


def shows(found: WorkerCluster, new: Condition) -> bool:
    """Say whether the status shows this condition already."""
    old = conditions.find(found.status.conditions, new.type)
    return old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message)
