"""The record of one worker cluster: its WorkerCluster object, the facts that it is to show, the one write in flight.

Rule R2: what is concluded from silence (lost), what a person says (fenced), and each session number take effect only
after a write to `WorkerCluster.status` that is conditional on its resourceVersion. Which write comes next follows from
the state alone (`next_write`). Neighbours: `link` (hears, and acts on what is written), `link_writes` (what each write
changes), `cluster_status` (the documents), `fencing` (a person's word), `comparison` (what inventories prove),
`edited_numbers` (what somebody else has written).

A standby keeps no facts: it knows the object, and a leader begins from that as it is then. What an earlier leader wrote
and this one had not seen is adopted as long as nothing has been written in the own term; afterwards nobody else writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatelift.core.api import informing
from gatelift.core.api.commands import Note
from gatelift.core.api.speaking import AgentDoor, TurnedAway
from gatelift.core.clusters import cluster_conditions, cluster_facts, cluster_status, fencing, identity
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.comparison import InventoryComparison
from gatelift.core.clusters.edited_numbers import EditedNumbers
from gatelift.core.clusters.link_values import HigherTermRead, Vouching
from gatelift.core.clusters.link_writes import Numbers, StatusPurpose, Write, changes_of, latest
from gatelift.core.clusters.linking import Effects, Leading
from gatelift.core.clusters.long_grants import LongGrants
from gatelift.core.records import own_conditions
from gatelift_kube.deciding.writes import EmitEvent, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.messages import Hello
from gatelift_wire.values.moments import soonest

INFO_SECONDS = 1.0
"""Facts that only people read (capacity, counts) are written at most this often."""

REACH_SECONDS = 1.0
"""From one write of whether the agent reaches its API server to the next: who says yes and no in turn gets one write a
second, and no grant between, since that waits for the record (P4). The first is written at once."""

RETRY_SECONDS = 1.0
"""After a write that failed or whose outcome nobody knows: the watch brings the newer object within this, or we ask."""


class ClusterRecord:
    """What is recorded of one cluster, and what waits to be: set by `link` and `conversation`, written from `pump`."""

    def __init__(self, name: str, session: ManagerSession, leading: Leading) -> None:
        self.name = name
        self.object: WorkerCluster | None = None
        self.facts = Facts()
        self.held = True
        """Nothing is written for now, since this process may not."""
        self.grants = LongGrants(session)
        self.door = AgentDoor(lambda: f"{session.instance}/{leading.ids.take()}")
        self.greeting: wire.GreetingReceived | None = None
        self.renewal: wire.LeaseRenewed | None = None
        self.lost_session: int | None = None
        self.doubted_term = 0
        self.comparison = InventoryComparison(name)
        self.numbers = EditedNumbers(name, leading)
        self._leading = leading
        self._write: Write | None = None
        self._written_session = 0
        self._not_before = self._reach_at = 0.0
        self._informs_at = 0.0
        self._told_left_out = ""

    @property
    def term(self) -> int:
        """The term in which this process leads, 0 when it does not."""
        return self._leading.term

    @property
    def write_id(self) -> int | None:
        """The id of the write in flight."""
        return self._write.write_id if self._write else None

    # --- what is known ---------------------------------------------------------------------------------------------

    def lead(self, now: float) -> tuple[HigherTermRead, ...]:
        """Begin from the object as it is now, whatever was seen or done before; say where its term is above ours."""
        self._begin_anew()
        if self.object is not None:
            self.object = self.numbers.counted(self.object, None)
            self.facts.adopt(self.object)
            self.facts.lease_seconds = self.object.status.lease_seconds
            self.facts.adopt_certificate(self.object)
            self._written_session = max(self._written_session, self.object.status.session)
            self.comparison.settled_before = self.object.status.settled_session
        self.grants.led(now)
        return self.higher(self.object) if self.object is not None else ()

    def higher(self, found: WorkerCluster) -> tuple[HigherTermRead, ...]:
        """Return that a version's term is above ours (R3), () where it is not, or we do not lead."""
        if not found.status.term > self._leading.term > 0:
            return ()
        return (HigherTermRead(cluster=self.name, term=found.status.term, found=found),)

    def unconfirmed(self, found: WorkerCluster) -> tuple[WorkerCluster, ...]:
        """Return as what a version counts that no leader has written, by the Lease; () where a later one is known.

        Of a term before ours, so that our own is written first; but what we wrote just before it is still ours: nobody
        has led since.
        """
        known = self.object
        if not self.higher(found) or latest(known, found) is not found:
            return ()
        before = known.status.term if known is not None and known.metadata.uid == found.metadata.uid else 0
        return (self.numbers.of_term(found, before),)

    def step_down(self) -> None:
        """Keep nothing but the object."""
        self._begin_anew()
        self._write = None
        self.grants.stepped_down()

    def _begin_anew(self) -> None:
        self.greeting = self.renewal = self.lost_session = None
        self._not_before, self._reach_at, self.doubted_term = 0.0, 0.0, 0
        self.numbers.begin_anew()
        self.comparison.begin_anew()
        self.door.close()
        told = self.facts
        self.facts = Facts(
            placements=told.placements,
            offers=told.offers,
            predecessors=told.predecessors,
            predecessors_over=told.predecessors_over,
        )

    def adopt(self, found: WorkerCluster) -> None:
        """Take the object as it is now."""
        before, self.object = self.object, latest(self.object, found)
        if not self._leading.term or self.object is not found:
            return  # a standby has no facts; or it is the echo of what was overtaken
        anew = before is None or before.metadata.uid != found.metadata.uid
        self.object = found = self.numbers.counted(found, None if anew else before)
        if self._write is None or self._write.purpose is not StatusPurpose.SESSION:  # not what we are writing ourselves
            self.grants.seen(self.facts, found.status.lease_seconds)
        if anew or found.status.term < self._leading.term:
            self.facts.adopt(found)
        if anew:  # what was granted counts on, and is written into the new object (HD-261)
            self.facts.lease_seconds = max(self.facts.lease_seconds, found.status.lease_seconds)
            self.comparison.settled_before = found.status.settled_session
        self.facts.adopt_doubts(found)
        self.facts.adopt_certificate(found)
        self._written_session = max(self._written_session, found.status.session)

    def fenced(self) -> tuple[int, str]:
        """Return through which session nothing of this cluster runs any more, and who says so; (0, "") for none.

        Derived from the status by every leader, so that a word outlives whoever took it. It counts while the cluster
        is lost in that very session, or for what a cluster in doubt does not list; and only when this leader has
        written here itself: then nobody else has, and what it knows is not behind (R2).
        """
        found = self.object
        if found is None or not self._leading.term or found.status.term != self._leading.term:
            return 0, ""
        status, through = found.status, found.status.fenced_through_session
        counts = 0 < through == status.session
        if not self.facts.lost and self.lost_session is None:  # then of what the cluster in doubt did not list
            doubted = identity.latest_doubt(status)
            counts = 0 < through == doubted - 1 and self.comparison.settled_before < doubted == status.settled_session
        elif not self._lost(found):
            counts = False
        return (through, status.fenced_by) if counts else (0, "")

    @property
    def vouching(self) -> Vouching:
        """Who can tell what was placed here and a restored record may have lost."""
        return identity.vouching(self.facts)

    def may_get_work(self, found: WorkerCluster) -> bool:
        """Say whether anything may be placed: who serves the cluster is not in doubt, or a person wants it though.

        Not before its first session is written as answered: what is charged to a WorkerCluster of which that does not
        stand there was placed by way of an earlier object, whoever leads and whatever was lost.
        """
        if self.name != LOCAL_CLUSTER and not found.status.opened_session:
            return False
        return not identity.awaits_person(found, identity.doubted_in(self.facts))

    def turned_away(self, now: float) -> TurnedAway | None:
        """Return how who greets is turned away, by the object as it is known now; None when he is served."""
        found, greeting = self.object, self.greeting
        if found is None or greeting is None or self.name == LOCAL_CLUSTER:
            return None
        away = self.door.refusal(found, greeting, lost=self._lost(found))
        if away is not None and not away.ticket:
            self.beside(greeting.hello, now)
        return away

    def beside(self, hello: Hello, now: float) -> None:
        """Show that another agent greets while one is served."""
        found = self.object or WorkerCluster()
        self.facts.second_agent = self.door.beside(found.status, hello, now)

    def served(self, hello: Hello, now: float) -> None:
        """Take that who greets is welcomed."""
        self.door.close()
        if self.door.over(now, hello):
            self.facts.second_agent = ""

    def _lost(self, found: WorkerCluster) -> bool:
        """Say whether the cluster is lost and that is written."""
        return self.facts.lost and cluster_facts.shown_lost(found)

    # --- writes ----------------------------------------------------------------------------------------------------

    def due(self) -> float | None:
        """Return when `pump` has something to do."""
        if self._write is not None or self.held:
            return None
        purpose = self.next_write()
        due = self.grants.due(self.facts) if purpose is None else self._due(purpose)
        beside = self.door.beside_until if self.object is not None else None
        return soonest(due, max(self._not_before, beside) if beside is not None else None)

    def hurry(self, now: float) -> None:
        """Let the next write go out at once."""
        self._not_before = now

    def pump(self, now: float, out: Effects) -> None:
        """Send the next write, if one is due and this process may."""
        found = self.object
        if self._write is not None or found is None:
            return
        self.held = not self._leading.valid(now)
        if self.held or now < self._not_before:
            return
        self.grants.lower(self.facts, now)
        if not self.facts.informs and now >= self._informs_at:
            self.facts.informs, self.facts.refused = True, ""
        if self.facts.second_agent and self.door.beside_until is None:
            self.door.shown(now)  # an earlier leader did
        if self.door.over(now):
            self.facts.second_agent = ""
        purpose = self.next_write()
        if purpose is None or now < self._due(purpose):
            return
        write_id = self._leading.ids.take()
        changes = self._changes(purpose, found)
        stream_id = self.greeting.stream_id if self.greeting is not None else 0
        self._write = Write(write_id=write_id, purpose=purpose, changes=changes, stream_id=stream_id)
        if purpose is StatusPurpose.ANSWER:
            out.commands.append(fencing.answer(write_id, found, shown_lost=self._lost(found)))
            return
        facts, wall = replace(self.facts, **changes), self._leading.wall.text(now)
        self._tell_left_out(facts.left_out, out)
        self._tell_foreign(own_conditions.told(cluster_conditions.leaves_out(found, facts, wall)), found, out)
        status = cluster_status.document(found, facts, wall)
        status = self.numbers.put_back(found, status, out)
        out.commands.append(cluster_status.patch(write_id, found, status))

    def _tell_foreign(self, told: str, found: WorkerCluster, out: Effects) -> None:
        """Say at the object what of others has no room in its status any more."""
        if told:
            ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", self.name))
            uid, reason = found.metadata.uid, own_conditions.LEFT_OUT
            out.commands.append(EmitEvent(ref=ref, uid=uid, warning=True, reason=reason, message=told))

    def _tell_left_out(self, left_out: str, out: Effects) -> None:
        """Say once what of the worker's own words cannot be written."""
        if left_out and left_out != self._told_left_out:
            out.commands.append(Note(level="warning", text=f"not shown: {left_out}", cluster=self.name))
        self._told_left_out = left_out

    def _changes(self, purpose: StatusPurpose, found: WorkerCluster) -> dict[str, Any]:
        said = self.greeting if purpose is StatusPurpose.SESSION else self.renewal
        last = self.greeting.hello.last_session if self.greeting is not None else 0
        session = max(self._written_session, last) + 1  # above both numbers: the agent takes no other
        changes = changes_of(purpose, found, self.facts, said, Numbers(self._leading.term, session))
        if purpose is StatusPurpose.SESSION and self.greeting is not None:
            changes |= identity.recorded(found, self.facts, self.greeting.hello, changes["session"])
            changes["lease_seconds"] = max(self.facts.lease_seconds, self.grants.needed)
        elif purpose is StatusPurpose.FENCED:
            doubted = identity.doubted_in(self.facts)
            if doubted and changes["fenced_through"] >= doubted - 1:
                changes["settled_session"] = doubted
        return changes

    def _due(self, purpose: StatusPurpose) -> float:
        """Return when a write may go out; silence counts only when all grants are over that anybody gave (P3)."""
        own = {StatusPurpose.LOST: self.grants.silence_counts_at, StatusPurpose.UNREACHABLE: self._reach_at}
        return max(self._not_before, own.get(purpose, self._not_before))

    def next_write(self) -> StatusPurpose | None:
        """Return what is to be written first.

        A session goes before a person's word, so that no word is taken about a session that its agent has left behind;
        the answer to a word that does not count goes before *lost*, so that no word lies there that comes to count.
        """
        found = self.object
        if found is None or found.status.term > self._leading.term:  # R3
            return None
        if self.greeting is not None:
            return StatusPurpose.SESSION
        word = fencing.said(found)
        counts = word is not None and fencing.counts(found, word, shown_lost=self._lost(found))
        if word is not None and not counts:
            return StatusPurpose.ANSWER
        if self.lost_session is not None:
            return StatusPurpose.LOST
        if counts:
            return StatusPurpose.FENCED
        if self.renewal is not None and self.facts.api_reachable != self.renewal.api_reachable:
            return StatusPurpose.UNREACHABLE
        if self.doubted_term:
            return StatusPurpose.DOUBT
        if self.numbers.are_in(found) or found.status.lease_seconds < self.facts.lease_seconds:
            return StatusPurpose.PUT_BACK
        if self.comparison.awaited:
            return None  # so that it is shown as served together with what its inventory has shown
        return StatusPurpose.INFO if cluster_status.differs(found, self.facts) else None

    def write_unknown(self, write_id: int, now: float) -> None:
        """Take that nobody can tell the outcome of a write: what has landed is seen, and what has not is due again."""
        if self._write is not None and self._write.write_id == write_id:
            self._write = None
        self._not_before = now + RETRY_SECONDS

    def answered(self, event: WriteDone | WriteFailed, now: float, out: Effects) -> Write | None:
        """Take the outcome of the write in flight; return it if what it says is now true."""
        write = self._write
        if write is None or write.write_id != event.write_id:
            return None
        self._write = None
        if isinstance(event, WriteFailed):
            self._not_before = now + RETRY_SECONDS
            refused = informing.refused(event)
            if refused and self.facts.informs and write.purpose is not StatusPurpose.ANSWER:
                # What only informs keeps nothing waiting that follows from the protocol: at once, without it.
                self.facts.informs, self.facts.refused = False, refused
                self._informs_at, self._not_before = now + informing.AGAIN_SECONDS, now
            elif event.error in {WriteError.CONFLICT, WriteError.PRECONDITION}:
                self.doubted_term = 0
            elif event.error not in (WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.NOT_SENT):
                text = f"WorkerCluster status ({write.purpose.value}) could not be written: {event.message}"
                out.commands.append(Note(level="warning", text=text, cluster=self.name))
            return None
        if not isinstance(event.object, WorkerCluster):
            return None
        self.facts = replace(self.facts, **write.changes)
        self.adopt(event.object)
        self._not_before = now if write.purpose is not StatusPurpose.INFO else now + INFO_SECONDS
        if write.purpose is StatusPurpose.UNREACHABLE:
            self._reach_at = now + REACH_SECONDS
        return write
