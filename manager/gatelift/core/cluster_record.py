"""The record of one worker cluster: its WorkerCluster object, the facts that it is to show, the one write in flight.

Rule R2: what is concluded from silence (lost), what a person says (fenced), and each session number take effect only
after a write to `WorkerCluster.status` that is conditional on its resourceVersion. Which write comes next follows from
the state alone (`next_write`). Neighbours: `link` (hears, and acts on what is written), `link_writes` (what each write
changes), `cluster_status` (the documents), `fencing` (a person's word).

A standby keeps no facts: it knows the object, and a leader begins from that as it is then. What an earlier leader wrote
and this one had not seen is adopted as long as nothing has been written in the own term; afterwards nobody else writes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatelift.core import cluster_status, fencing
from gatelift.core.cluster_status import Facts
from gatelift.core.commands import Note
from gatelift.core.link_writes import Purpose, Write, changes_of, latest
from gatelift.core.linking import Leading, Outcome
from gatelift.core.long_grants import LongGrants
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.writes import WriteDone, WriteError, WriteFailed
from gatelift_wire import session as wire
from gatelift_wire.session_manager import ManagerSession

INFO_SECONDS = 1.0
"""Facts that only people read (capacity, counts) are written at most this often."""

RETRY_SECONDS = 1.0
"""After a write that failed or whose outcome nobody knows: the watch brings the newer object within this, or we ask."""


class ClusterRecord:
    """What is recorded of one cluster, and what waits to be: set by `link`, written from `pump`."""

    def __init__(self, name: str, session: ManagerSession, leading: Leading) -> None:
        self.name = name
        self.object: WorkerCluster | None = None
        self.facts = Facts()
        self.held = True
        """Nothing is written for now, since this process may not."""
        self.grants = LongGrants(session)
        self.greeting: wire.GreetingReceived | None = None
        self.renewal: wire.LeaseRenewed | None = None
        self.lost_session: int | None = None
        self.doubted_term = 0
        self.restored = False
        """The agent whose session was written last remembers less than is recorded: absence proves nothing."""
        self._leading = leading
        self._write: Write | None = None
        self._written_session = 0
        self._not_before = 0.0

    @property
    def write_id(self) -> int | None:
        """The id of the write in flight."""
        return self._write.write_id if self._write else None

    # --- what is known ---------------------------------------------------------------------------------------------

    def lead(self, now: float) -> None:
        """Begin from the object as it is now, whatever was seen or done before."""
        self._begin_anew()
        if self.object is not None:
            self.facts.adopt(self.object)
            self.facts.lease_seconds = self.object.status.lease_seconds
            self._written_session = max(self._written_session, self.object.status.session)
        self.grants.led(now)

    def step_down(self) -> None:
        """Keep nothing but the object."""
        self._begin_anew()
        self._write = None
        self.grants.stepped_down()

    def _begin_anew(self) -> None:
        self.greeting = self.renewal = self.lost_session = None
        self._not_before, self.doubted_term, self.restored = 0.0, 0, False
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
        if self._write is None or self._write.purpose is not Purpose.SESSION:  # not what we are writing ourselves
            self.grants.seen(self.facts, found.status.lease_seconds)
        if anew or found.status.term < self._leading.term:
            self.facts.adopt(found)
        if anew:
            self.facts.lease_seconds = found.status.lease_seconds
        self.facts.adopt_certificate(found)
        self.facts.restored_session = max(self.facts.restored_session, found.status.restored_session)
        self._written_session = max(self._written_session, found.status.session)

    def fenced(self) -> tuple[int, str]:
        """Return through which session nothing of this cluster runs any more, and who says so; (0, "") for none.

        Derived from the status by every leader, so that a word outlives whoever took it. It counts while the cluster
        is lost in that very session, and only when this leader has written here itself: then nobody else has, and
        what it knows is not behind (R2).
        """
        found = self.object
        if found is None or not self._leading.term or found.status.term != self._leading.term:
            return 0, ""
        through = found.status.fenced_through_session
        counts = self._lost(found) and 0 < through == found.status.session
        return (through, found.status.fenced_by) if counts else (0, "")

    def _lost(self, found: WorkerCluster) -> bool:
        """Say whether the cluster is lost and that is written."""
        return self.facts.lost and cluster_status.shown_lost(found)

    # --- writes ----------------------------------------------------------------------------------------------------

    def due(self) -> float | None:
        """Return when `pump` has something to do."""
        if self._write is not None or self.held:
            return None
        purpose = self.next_write()
        return self.grants.due(self.facts) if purpose is None else self._due(purpose)

    def hurry(self, now: float) -> None:
        """Let the next write go out at once."""
        self._not_before = now

    def pump(self, now: float, out: Outcome) -> None:
        """Send the next write, if one is due and this process may."""
        found = self.object
        if self._write is not None or found is None:
            return
        self.held = not self._leading.valid(now)
        if self.held or now < self._not_before:
            return
        self.grants.lower(self.facts, now)
        purpose = self.next_write()
        if purpose is None or now < self._due(purpose):
            return
        write_id = self._leading.ids.take()
        changes = self._changes(purpose, found)
        stream_id = self.greeting.stream_id if self.greeting is not None else 0
        self._write = Write(write_id=write_id, purpose=purpose, changes=changes, stream_id=stream_id)
        if purpose is Purpose.ANSWER:
            out.commands.append(fencing.answer(write_id, found, shown_lost=self._lost(found)))
            return
        facts = replace(self.facts, **changes)
        status = cluster_status.document(found, facts, self._leading.wall.text(now))
        out.commands.append(cluster_status.patch(write_id, found, status))

    def _changes(self, purpose: Purpose, found: WorkerCluster) -> dict[str, Any]:
        said = self.greeting if purpose is Purpose.SESSION else self.renewal
        changes = changes_of(purpose, found, self.facts, said, self._leading.term, self._written_session + 1)
        if purpose is Purpose.SESSION and self.greeting is not None:
            # Compared with what the write is conditional on: it may be newer than what was known at the greeting.
            self.restored = cluster_status.is_restored(found, self.greeting.hello)
            changes["lease_seconds"] = max(self.facts.lease_seconds, self.grants.needed)
            if self.restored:
                changes["restored_session"] = changes["session"]
        return changes

    def _due(self, purpose: Purpose) -> float:
        """Return when a write may go out; silence counts only when all grants are over that anybody gave (P3)."""
        return max(self._not_before, self.grants.silence_counts_at) if purpose is Purpose.LOST else self._not_before

    def next_write(self) -> Purpose | None:
        """Return what is to be written first.

        A session goes before a person's word, so that no word is taken about a session that its agent has left behind;
        the answer to a word that does not count goes before *lost*, so that no word lies there that comes to count.
        """
        found = self.object
        if found is None:
            return None
        if self.greeting is not None:
            return Purpose.SESSION
        word = fencing.said(found)
        counts = word is not None and fencing.counts(found, word, shown_lost=self._lost(found))
        if word is not None and not counts:
            return Purpose.ANSWER
        if self.lost_session is not None:
            return Purpose.LOST
        if counts:
            return Purpose.FENCED
        if self.renewal is not None and self.facts.api_reachable != self.renewal.api_reachable:
            return Purpose.UNREACHABLE
        if self.doubted_term:
            return Purpose.DOUBT
        return Purpose.INFO if cluster_status.differs(found, self.facts) else None

    def answered(self, event: WriteDone | WriteFailed, now: float, out: Outcome) -> Write | None:
        """Take the outcome of the write in flight; return it if what it says is now true."""
        write = self._write
        if write is None or write.write_id != event.write_id:
            return None
        self._write = None
        if isinstance(event, WriteFailed):
            self._not_before = now + RETRY_SECONDS
            if event.error in {WriteError.CONFLICT, WriteError.PRECONDITION}:
                self.doubted_term = 0
            elif event.error not in (WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.NOT_SENT):
                text = f"WorkerCluster status ({write.purpose.value}) could not be written: {event.message}"
                out.commands.append(Note(level="warning", text=text, cluster=self.name))
            return None
        if not isinstance(event.object, WorkerCluster):
            return None
        self.facts = replace(self.facts, **write.changes)
        self.adopt(event.object)
        self._not_before = now if write.purpose is not Purpose.INFO else now + INFO_SECONDS
        return write
