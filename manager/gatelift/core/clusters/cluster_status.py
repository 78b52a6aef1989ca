"""What the manager writes of a worker cluster: the facts, and the one patch of WorkerCluster.status made of them. Pure.

Neighbour: `cluster_record`, which decides when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.core.api import documents, informing
from gatelift.core.api.events import AgentStreamOpened
from gatelift.core.api.informing import StatedCapacity
from gatelift.core.clusters import foreign_runs
from gatelift.core.clusters.foreign_runs import ANY
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.objects import conditions
from gatelift_kube.objects import gatelift_bounds as bounds
from gatelift_kube.objects.gatelift import ForeignRunStatus, Predecessor, WorkerCluster, WorkerClusterStatus
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values import timestamps
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey

ANNOTATION_FENCED_THROUGH = "gatelift.dev/fenced-through-session"
"""A person's word, written by `gatelift cluster fenced`: nothing of a session up to this number runs any more."""

ANNOTATION_FENCED_BY = "gatelift.dev/fenced-by"
"""Who said so, in the words of whoever wrote it; the API server's audit log has the proof."""

ANNOTATION_FENCED_AFTER = "gatelift.dev/fenced-after"
"""Which restore was known to who said so, by the `since` of the finding on `local`; none where none was."""

ANNOTATION_FENCE_REFUSED = "gatelift.dev/fence-refused"
"""Why a person's word was not taken: left by the manager in place of the word."""

ANNOTATION_RESTORED_ACCEPTED = "gatelift.dev/restored-accepted"
"""A person's word, written by `gatelift cluster cordon NAME --off`: who was found restored, or another cluster, in this
session may get work."""

CONNECTED = "Connected"
FENCED = "Fenced"
LOST = "Lost"
NO_NEW_WORK = "NoNewWork"
REPLACED = "Replaced"
RESTORED = "Restored"
SECOND_AGENT = "SecondAgent"
TAKEN_OVER = "TakenOver"
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


Cordon = tuple[str, str] | None
"""Reason and message why dispatch places nothing there for what it has said, ("", "") of others; None: unheard."""

REFUSED_CHARACTERS_MAX = 1000
"""Of an annotation that anybody may write, in a condition."""


@dataclass(slots=True, kw_only=True)
class Facts:
    """What is true of a cluster now; written when it differs from the status."""

    term: int = 0
    session: int = 0
    opened_session: int = 0
    connected: bool = False
    session_open: bool = False
    lost: bool = False
    restored_session: int = 0
    replaced_session: int = 0
    taken_over_session: int = 0
    settled_session: int = 0
    cluster_uid: str = ""
    agent_lease: str = ""
    second_agent: str = ""
    """What people are told of another agent that greets beside the one that is served, "" when there is none."""
    no_new_work: tuple[str, str] = ("", "")
    """Reason and message why nothing is placed there for what it has said; empty where that is not so."""
    mark: int = 0
    unexplained: int | None = None
    """Charged here and not listed by the present session's inventory, while that proves nothing; None: not compared."""
    lease_seconds: int = 0
    fenced_through: int = 0
    fenced_by: str = ""
    fenced_after: str = ""
    fenced_after_through: int = 0
    agent_version: str = ""
    agent_instance: str = ""
    replicas: int = 0
    api_reachable: bool = True
    placements: int = 0
    offers: int = 0
    last_seen: str = ""
    """When it was last heard of by this process, "" for never: of silence itself nothing is written here."""
    certificate_key: str = ""
    """The key of which `certificate_issued_at` speaks: another one that is approved has used no certificate yet."""
    certificate_issued_at: str = ""
    foreign: tuple[ForeignRunStatus, ...] = ()
    predecessors: tuple[Predecessor, ...] = ()
    predecessors_over: frozenset[PlacementKey] = frozenset()
    capacity: StatedCapacity | None = None
    written_capacity: StatedCapacity | None = None
    informs: bool = True
    """What only people read of it is written, too: not for a while after the API server has refused it."""
    refused: str = ""
    """What it said then, "" when nothing was refused."""

    def adopt(self, found: WorkerCluster) -> None:
        """Take over what an earlier process wrote; grants of leases are counted by `long_grants`."""
        status = found.status
        self.term, self.session, self.opened_session = status.term, status.session, status.opened_session
        self.restored_session, self.replaced_session = status.restored_session, status.replaced_session
        self.taken_over_session, self.settled_session = status.taken_over_session, status.settled_session
        self.cluster_uid, self.agent_lease, self.mark = status.cluster_uid, status.agent_lease, status.mark
        self.fenced_through, self.fenced_by = status.fenced_through_session, status.fenced_by
        self.fenced_after, self.fenced_after_through = status.fenced_after, status.fenced_after_through
        self.agent_version, self.agent_instance = status.agent_version, status.agent_instance
        self.replicas, self.connected = status.agent_replicas, status.connected
        self.api_reachable, self.foreign = status.api_reachable is not False, status.foreign
        self.lost = shown_lost(found)
        beside = conditions.find(status.conditions, SECOND_AGENT)
        self.second_agent = beside.message if beside is not None and beside.status == "True" else ""
        cordoned = conditions.find(found.status.conditions, NO_NEW_WORK)
        told = cordoned is not None and cordoned.status == "True"
        self.no_new_work = (cordoned.reason, cordoned.message) if cordoned is not None and told else ("", "")

    def place(self, placements: int, offers: int, cordon: Cordon) -> None:
        """Take how much is placed and offered, and why nothing more is; None: what was shown of that stays."""
        self.placements, self.offers, self.no_new_work = placements, offers, cordon or self.no_new_work

    def counted(self) -> tuple[object, ...]:
        """Return what is counted of it: other numbers are news."""
        return self.placements, self.offers, self.unexplained, self.opened_session, self.no_new_work

    @property
    def left_out(self) -> str:
        """What people are told of what cannot be written, as of the last write."""
        return self.refused or (self.written_capacity.shown.left_out if self.written_capacity is not None else "")

    def adopt_doubts(self, found: WorkerCluster) -> None:
        """Take over doubts and their ends, which are never taken back, and the latest word after a restore.

        Also of a write of which nobody could tell.
        """
        status = found.status
        self.restored_session = max(self.restored_session, status.restored_session)
        self.replaced_session = max(self.replaced_session, status.replaced_session)
        self.taken_over_session = max(self.taken_over_session, status.taken_over_session)
        self.settled_session = max(self.settled_session, status.settled_session)
        self.fenced_after, self.fenced_after_through = status.fenced_after, status.fenced_after_through

    def adopt_certificate(self, found: WorkerCluster) -> None:
        """Take over when the newest certificate was issued that the approved key has used (texts sort by time)."""
        known = self.certificate_issued_at if self.certificate_key == found.status.key_digest else ""
        self.certificate_key = found.status.key_digest
        self.certificate_issued_at = max(known, found.status.certificate_issued_at or "")

    def uses_certificate(self, opened: AgentStreamOpened) -> None:
        """Take that an agent greets with a certificate: who replays its signing request has one made, and uses none."""
        if opened.issued_at and opened.key_digest == self.certificate_key:
            self.certificate_issued_at = max(self.certificate_issued_at, timestamps.to_text(opened.issued_at))


def shown_lost(found: WorkerCluster) -> bool:
    """Say whether the status shows the cluster as lost."""
    connected = conditions.find(found.status.conditions, CONNECTED)
    return connected is not None and connected.reason == LOST


def fence_wanted(found: WorkerCluster) -> int:
    """Return the session number of a person's *fenced*, 0 when there is none or it is no number."""
    return _number(found, ANNOTATION_FENCED_THROUGH)


def _number(found: WorkerCluster, annotation: str) -> int:
    text = found.metadata.annotations.get(annotation, "")
    return whole(text) or 0


def awaits_person(found: WorkerCluster, doubted_session: int) -> bool:
    """Say whether who serves the cluster is in doubt, and nobody has said yet that it may get work all the same."""
    return doubted_session > _number(found, ANNOTATION_RESTORED_ACCEPTED)


def fence_author(found: WorkerCluster) -> str:
    """Return who said *fenced*, as the status can hold it."""
    who = found.metadata.annotations.get(ANNOTATION_FENCED_BY, "unknown")
    return plain(who, bounds.longest(WorkerClusterStatus, "fencedBy"))


def fence_finding(found: WorkerCluster) -> str:
    """Return which finding of a restore was known to who said *fenced*, as the status can hold it; "" for none."""
    return plain(
        found.metadata.annotations.get(ANNOTATION_FENCED_AFTER, ""), bounds.longest(WorkerClusterStatus, "fencedAfter")
    )


def differs(found: WorkerCluster, facts: Facts) -> bool:
    """Say whether the status no longer tells what is true."""
    status = found.status
    shown = (status.connected, status.opened_session)
    true = (facts.connected, facts.opened_session)
    if _doubted(status) != _doubted(facts):
        return True
    if status.lease_seconds != facts.lease_seconds:
        return True
    if (status.predecessors, status.foreign) != (predecessors(found, facts), facts.foreign):
        return True
    counts = (status.placements, status.offers, status.agent_replicas)
    informs = facts.capacity is not facts.written_capacity or counts != (facts.placements, facts.offers, facts.replicas)
    certificate = bool(facts.certificate_issued_at) and status.certificate_issued_at != facts.certificate_issued_at
    if found.spec.revoked and found.status.key_digest:
        return True
    if shown != true or (facts.informs and informs) or certificate:
        return True
    return not all(_same(found, condition) for condition in _conditions(found, facts))


def _doubted(said: Facts | WorkerClusterStatus) -> tuple[int, ...]:
    sessions = (said.restored_session, said.replaced_session, said.taken_over_session, said.settled_session)
    return (*sessions, said.unexplained or 0)


def document(found: WorkerCluster, facts: Facts, wall: str) -> dict[str, Any]:
    """Return the `.status` of a merge patch that says all facts, but for those that only inform where `informs` is off.

    What follows from the protocol (session, lost, doubts, what holds work) never depends on those.
    """
    status: dict[str, Any] = {
        "term": max(facts.term, found.status.term),
        "session": max(facts.session, found.status.session),
        "openedSession": facts.opened_session,
        "restoredSession": facts.restored_session,
        "replacedSession": facts.replaced_session,
        "takenOverSession": facts.taken_over_session,
        "settledSession": facts.settled_session,
        "clusterUid": facts.cluster_uid,
        "agentLease": facts.agent_lease,
        "mark": facts.mark,
        "unexplained": facts.unexplained or 0,
        "leaseSeconds": facts.lease_seconds,
        "connected": facts.connected,
        "agentInstance": facts.agent_instance,
        "apiReachable": facts.api_reachable,
        "predecessors": predecessors(found, facts),
        "foreign": facts.foreign,
        "lastSeen": facts.last_seen or found.status.last_seen,
        "conditions": documents.conditions(_put(found, facts, wall)),
    }
    if _says_more(found.status, facts):
        status |= {"fencedThroughSession": facts.fenced_through, "fencedBy": facts.fenced_by, "fencedAt": wall}
        status |= {"fencedAfter": facts.fenced_after, "fencedAfterThrough": facts.fenced_after_through}
    if facts.informs:
        status |= _informs(facts)
    if facts.certificate_issued_at:
        status["certificateIssuedAt"] = facts.certificate_issued_at
    if found.spec.revoked:
        # The key's approval ends with the revocation: a cluster that is added again starts from a new token.
        status |= {"keyDigest": "", "enrolment": None}
    return status


def _says_more(status: WorkerClusterStatus, facts: Facts) -> bool:
    """Say whether a person's word is to be written: about a later session, or after a restore that was found since."""
    if facts.fenced_through != status.fenced_through_session:
        return facts.fenced_through > status.fenced_through_session
    after = (status.fenced_after, status.fenced_after_through)
    return (facts.fenced_after, facts.fenced_after_through) != after


def predecessors(found: WorkerCluster, facts: Facts) -> tuple[Predecessor, ...]:
    """Return what is to be remembered: what this process knows, and what stands there and is not known to be over.

    What finds no room is remembered as one that stands for all objects.
    """
    known = {PlacementKey(each.workload_uid, each.epoch) for each in facts.predecessors} | facts.predecessors_over
    kept = (one for one in found.status.predecessors if PlacementKey(one.workload_uid, one.epoch) not in known)
    every = (*facts.predecessors, *kept)
    if len(every) <= bounds.PREDECESSORS_MAX:
        return every
    named = [each for each in every if each.kind != ANY.kind or each.name != ANY.name]
    session = max(each.session for each in every)
    return (*named[: bounds.PREDECESSORS_MAX - 1], Predecessor(*ANY, workload_uid=ANY.name, epoch=1, session=session))


def patch(write_id: int, found: WorkerCluster, status: dict[str, Any]) -> Patch:
    """Return the status write, conditional on UID and resourceVersion."""
    metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return Patch(
        write_id=write_id,
        ref=ObjectRef(WORKER_CLUSTER, ObjectKey("", found.metadata.name)),
        body=msgspec.json.encode({"metadata": metadata, "status": status}),
        subresource="status",
    )


def _informs(facts: Facts) -> dict[str, Any]:
    """Return what only people read: a part of the document that may be left out of any write."""
    said: dict[str, Any] = {
        "agentVersion": facts.agent_version,
        "agentReplicas": facts.replicas,
        "placements": facts.placements,
        "offers": facts.offers,
    }
    return said if facts.capacity is None else {**said, "capacity": facts.capacity.shown.capacity}


def _condition(found: WorkerCluster, facts: Facts) -> Condition:
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
            if awaits_person(found, session):
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


def _conditions(found: WorkerCluster, facts: Facts) -> tuple[Condition, ...]:
    foreign = foreign_runs.condition(found, facts.foreign)
    doubts = (*_doubts(found, facts), _second_agent(found, facts), _no_new_work(found, facts))
    said = (
        _condition(found, facts),
        *doubts,
        _fenced(found, facts),
        foreign,
        informing.condition(found, facts.left_out),
    )
    return tuple(condition for condition in said if condition is not None)


def _put(found: WorkerCluster, facts: Facts, wall: str) -> tuple[Condition, ...]:
    kept = found.status.conditions
    for condition in _conditions(found, facts):
        kept = conditions.put(kept, condition, wall)
    return conditions.fitting(kept, OURS)


def leaves_out(found: WorkerCluster, facts: Facts, wall: str) -> tuple[str, ...]:
    """Return the types of others' conditions that a write of these facts leaves out."""
    return conditions.left_out(found.status.conditions, (each.type for each in _put(found, facts, wall)), OURS)


def _same(found: WorkerCluster, new: Condition) -> bool:
    old = conditions.find(found.status.conditions, new.type)
    return old is not None and (old.status, old.reason, old.message) == (new.status, new.reason, new.message)
