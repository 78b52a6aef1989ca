"""All that the machine holds, and the few ways in which every part of it writes, sends, notes and marks.

`Core` has no decisions: `machine` feeds it, `owners`, `reconcile`, `dispatch`, `mirror`, `checks` decide on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gatelift.core.api.agenda import Agenda, Key, Look
from gatelift.core.api.commands import Command, Note, Read, StepDown
from gatelift.core.api.inflight import InFlight, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.resting import Resting
from gatelift.core.api.status_budget import StatusBudget
from gatelift.core.api.unsent import Unsent
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.link_values import ClusterView, LinksPort, Sent, WriteIds
from gatelift.core.records import own_conditions
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import Knowledge, key_of
from gatelift.core.records.ledger import AttemptLedger
from gatelift.core.records.work import Owner, Work
from gatelift.core.state.asked_owners import AskedOwners
from gatelift.core.state.caution import Caution
from gatelift.core.state.cluster_changes import ClusterChanges
from gatelift.core.state.cluster_waiters import ClusterWaiters
from gatelift.core.state.creations import Creations
from gatelift.core.state.dispatch_values import DispatchFailures
from gatelift.core.state.doubts import Doubts
from gatelift.core.state.fenced import FencedPlacements
from gatelift.core.state.not_ready import NotReady
from gatelift.core.state.open_offers import OpenOffers
from gatelift.core.state.out_of_sight import OutOfSight
from gatelift.core.state.placements import Placements
from gatelift.core.state.predecessors import Predecessors
from gatelift.core.state.sessions import Sessions
from gatelift.core.state.settings import CoreSettings
from gatelift.core.state.shown_queues import ShownQueues
from gatelift.core.state.untaken import Untaken
from gatelift.core.state.waiters import Waiters
from gatelift.core.state.waiting_reasons import WaitingReasons
from gatelift.core.state.word_writes import WordWrites
from gatelift_kinds.registry import Registry
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, KubeObject, Patch, PatchKind
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import (
    WORKER_CLUSTER,
    WORKLOAD,
    ObjectKey,
    ObjectRef,
)
from gatelift_wire.sessions.leases import landed_seconds
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Message

EVENT_CHARS_MAX = 1024
"""Limit of the API server on an event's message."""
MARKS_PER_CALL = 1000
"""Keys marked in one call when all of a cluster are to be looked at: about 2 us each."""
INFORM = Key(Look.INFORM, ObjectKey("", ""))
"""Rings when there may be a token for whoever waits to inform."""
DOUBTS = Key(Look.DOUBTS, ObjectKey("", ""))
"""Marked when something waits for a list of Workloads, and when dispatch goes on."""
UNSENT = Key(Look.UNSENT, ObjectKey("", ""))
"""Rings when objects whose write found no turn are looked at, should no other write end before."""
UNSENT_SECONDS = 1.0
"""After so long a turn is free again, whatever became of the others: a tenth of the time that a write waits for one."""
UNSENT_AT_ONCE = 64
"""Objects looked at then: as many as are written at a time."""


class Decided(NamedTuple):
    """The object that is written, in the version that it was decided on.

    `uid`: of the Workload that it is for; `word_of`: the cluster whose report it follows (`word_writes`).
    """

    ref: ObjectRef
    version: str
    uid: str = ""
    word_of: str = ""


@dataclass(slots=True)
class Core:
    """The machine's state. `out` collects the commands of the present call of `handle`."""

    settings: CoreSettings
    links: LinksPort
    ids: WriteIds
    ledger: AttemptLedger
    knowledge: Knowledge
    agenda: Agenda = field(default_factory=Agenda)
    inflight: InFlight = field(default_factory=InFlight)
    resting: Resting = field(default_factory=Resting)
    wall: Wall = field(default_factory=Wall)
    failures: DispatchFailures = field(default_factory=DispatchFailures)
    open_offers: OpenOffers = field(default_factory=OpenOffers)
    predecessors: Predecessors = field(default_factory=Predecessors)
    out_of_sight: OutOfSight = field(default_factory=OutOfSight)
    placements: Placements = field(default_factory=Placements)
    cluster_waiters: ClusterWaiters = field(default_factory=ClusterWaiters)
    cluster_changes: ClusterChanges = field(default_factory=ClusterChanges)
    waiting_reasons: WaitingReasons = field(default_factory=WaitingReasons)
    sessions: Sessions = field(default_factory=Sessions)
    not_ready: NotReady = field(default_factory=NotReady)
    classless: Waiters[str, ObjectRef] = field(default_factory=Waiters)  # missing class -> who names it
    unsent: Unsent = field(default_factory=Unsent)
    budget: StatusBudget = field(default_factory=StatusBudget)
    words: WordWrites = field(default_factory=WordWrites)
    doubts: Doubts = field(default_factory=Doubts)
    contained: Contained[Key | ObjectRef | str] = field(default_factory=Contained)
    untaken: Untaken = field(default_factory=Untaken)
    creations: Creations = field(default_factory=Creations)
    sought: Waiters[ObjectRef, Key] = field(default_factory=Waiters)
    """User's object that no cache has -> the Workloads that wait for the answer whether it is there."""
    asked_owners: AskedOwners = field(default_factory=AskedOwners)
    now: float = 0.0
    shown_queues: ShownQueues = field(default_factory=ShownQueues)
    term: int = 0
    leads_until: float = 0.0
    record_revision: int = 0
    fenced: FencedPlacements = field(default_factory=FencedPlacements)
    caution: Caution = field(default_factory=Caution)
    rebuilt: bool = False
    stepped_down: bool = False
    _attempts: dict[str, Attempt] = field(default_factory=dict)
    _later: deque[str] = field(default_factory=deque)  # UIDs of attempts to look at, by the thousand
    _commands: list[Command] = field(default_factory=list)

    @property
    def kinds(self) -> Registry:
        """The kinds that are served."""
        return self.settings.kinds

    def leads(self, now: float) -> bool:
        """Say whether this process may act: it leads and its own lease is valid (R2, R3)."""
        return self.term > 0 and self.leads_until > now and not self.stepped_down

    @property
    def stands_still(self) -> bool:
        """Say whether nothing more is looked at: it has stepped down, or asks whether it leads (R3)."""
        return self.stepped_down or self.caution.terms.asking

    def lead(self, term: int) -> None:
        """Begin to lead, in a term of our own."""
        self.term = term

    def leads_as_long_as(self, until: float) -> None:
        """Take until when our own lease is valid."""
        self.leads_until = until

    def stand_still(self) -> None:
        """Do nothing any more: the lead is lost."""
        self.stepped_down = True

    def has_rebuilt(self) -> None:
        """Take that all attempts that the records tell of are there."""
        self.rebuilt = True

    def may_inform(self, key: Key, now: float) -> bool:
        """Say whether a write that only informs may go out now; if not, `key` is looked at when its turn comes."""
        may = self.budget.ask(key, now)
        if not may:
            self.agenda.wake(INFORM, now + self.budget.wait)
        return may

    def inform_later(self, key: Key, now: float) -> None:
        """Look at `key` again when its turn comes, after all others that wait."""
        self.budget.leave(key)
        self.budget.stand(key)
        self.agenda.wake(INFORM, now + self.budget.wait)

    def call_to_inform(self, now: float) -> None:
        """Look at those whose turn it is to inform."""
        for key in self.budget.call(now):
            self.agenda.mark(key)
        if self.budget.waiting:
            self.agenda.wake(INFORM, now + self.budget.wait)

    # --- what goes out -----------------------------------------------------------------------------------------

    def begin_call(self, now: float) -> None:
        """Take the time of a call of the machine, of which nothing has gone out yet."""
        self.now = now
        self._commands = []

    @property
    def commands(self) -> list[Command]:
        """What the present call asks for, in order."""
        return self._commands

    def command(self, *commands: Command) -> None:
        """Ask for something that is no write."""
        self._commands.extend(commands)

    def take_commands(self, begun: int) -> list[Command]:
        """Take back what was asked for since there were so many commands."""
        taken = self._commands[begun:]
        del self._commands[begun:]
        return taken

    def next_revision(self) -> int:
        """Count one more write of the record, and return its number."""
        self.record_revision += 1
        return self.record_revision

    # --- attempts ----------------------------------------------------------------------------------------------

    @property
    def attempts(self) -> Mapping[str, Attempt]:
        """All attempts, by the UID of their Workload."""
        return self._attempts

    def begin_attempt(self, attempt: Attempt) -> None:
        """Take an attempt that begins, in the place of one of an earlier epoch."""
        self._attempts[attempt.uid] = attempt

    def end_attempt(self, uid: str) -> None:
        """Take that an attempt is over; what is kept about its Workload stays, see `drop_attempt`."""
        self._attempts.pop(uid, None)

    # --- writes ------------------------------------------------------------------------------------------------

    def patch(self, decided: Decided, step: PatchStep, purpose: Purpose, *, informs: bool = False) -> None:
        """Ask for a patch; at most one request per object is out, the caller has looked (`blocked`)."""
        write_id = self.ids.take()
        lands_until = self.now + landed_seconds() if purpose.charges else 0.0
        self.inflight.begin(
            write_id,
            Outstanding(
                ref=decided.ref,
                purpose=purpose,
                decided_on=decided.version,
                uid=decided.uid,
                lands_until=lands_until,
                informs=informs,
                word_of=decided.word_of,
            ),
        )
        self.budget.began(informs=informs)
        self._commands.append(
            Patch(
                write_id=write_id,
                ref=decided.ref,
                body=step.body,
                kind=step.kind,
                subresource=step.subresource,
                informs=informs,
            )
        )

    def patch_workload(self, workload: Workload, body: bytes, purpose: Purpose, *, status: bool = True) -> None:
        """Ask for a write of a Workload that was decided on `workload`: of its whole status, or a merge patch."""
        step = PatchStep(body=body, kind=PatchKind.REPLACE, subresource="status") if status else PatchStep(body=body)
        meta, ref = workload.metadata, ref_of(workload)
        version = meta.resource_version
        if purpose.charges and meta.uid in self.attempts:
            self.attempts[meta.uid].asks(version)
        left_out = own_conditions.leaves_out(workload, body) if status else ""
        if left_out:
            self.event(ref, meta.uid, own_conditions.LEFT_OUT, left_out, warning=True)
        word_of = self.attempts[meta.uid].cluster if purpose is Purpose.RECLAIM else ""
        self.patch(Decided(ref, version, meta.uid, word_of), step, purpose)

    def create(self, ref: ObjectRef, body: bytes, purpose: Purpose, *, owner: ObjectRef) -> None:
        """Ask for the create of a Workload; `owner` is looked at again when the outcome is there."""
        write_id = self.ids.take()
        self.creations.begin(ref.key, owner)
        self.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose))
        self._commands.append(Create(write_id=write_id, ref=ref, body=body))

    def delete(self, ref: ObjectRef, uid: str, purpose: Purpose) -> None:
        """Ask for the deletion of this very object, its dependents in the background; the caller has looked."""
        write_id = self.ids.take()
        self.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose))
        self._commands.append(Delete(write_id=write_id, ref=ref, uid=uid))

    def delete_workload(self, workload: Workload, purpose: Purpose) -> None:
        """Ask for the deletion of a Workload as it was seen; what changed meanwhile is looked at first."""
        write_id = self.ids.take()
        meta, ref = workload.metadata, ref_of(workload)
        version = meta.resource_version
        self.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose, decided_on=version, uid=meta.uid))
        self._commands.append(Delete(write_id=write_id, ref=ref, uid=meta.uid, resource_version=version))

    def read(self, ref: ObjectRef, purpose: Purpose, uid: str = "") -> None:
        """Ask for a quorum read. `uid`: of the object that is looked for, where that is not the one known there."""
        read_id, known = self.ids.take(), self.known(ref)
        uid = uid or (known.metadata.uid if known is not None else "")
        self.inflight.begin(read_id, Outstanding(ref=ref, purpose=purpose, uid=uid))
        self._commands.append(Read(read_id=read_id, ref=ref))

    def blocked(self, ref: ObjectRef, key: Key, now: float, *, uid: str = "") -> bool:
        """Say whether nothing may be decided on the object now; sees to it that `key` is looked at again.

        A request that is out comes back as an event and marks the key; trouble has a time; doubt asks for a read.
        """
        if self.inflight.busy(ref):
            return True
        if ref not in self.inflight.trouble:
            return False
        wait, read, until = self.inflight.hindrance(ref, now)
        if not wait:
            return False
        if read:
            self.read(ref, Purpose.READ_AFTER_DOUBT, uid)
        else:
            self.agenda.wake(key, until)
        return True

    def stand_in_line(self, ref: ObjectRef, now: float) -> None:
        """Look at an object again when there is a turn for its write: no pause, since nothing is wrong with it.

        What is written then is what is due then. There is at most one entry for each object.
        """
        self.unsent.stand(ref)
        self.agenda.wake(UNSENT, now + UNSENT_SECONDS)

    # --- people -------------------------------------------------------------------------------------------------

    def event(self, ref: ObjectRef, uid: str, reason: str, message: str, *, warning: bool = False) -> None:
        """Tell people by a Kubernetes event."""
        text = message if len(message) <= EVENT_CHARS_MAX else message[: EVENT_CHARS_MAX - 4] + " ..."
        self._commands.append(EmitEvent(ref=ref, uid=uid, warning=warning, reason=reason, message=text))

    def note(
        self,
        text: str,
        attempt: Attempt | None = None,
        *,
        warning: bool = False,
        cluster: str = "",
        fields: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Leave a line for the log."""
        self._commands.append(
            Note(
                level="warning" if warning else "info",
                text=text,
                workload=str(attempt.workload) if attempt else "",
                epoch=attempt.epoch if attempt else 0,
                cluster=cluster or (attempt.cluster if attempt else ""),
                fields=fields,
            )
        )

    def step_down(self, reason: str) -> None:
        """Command and write nothing any more (R3)."""
        if not self.stepped_down:
            self.stepped_down = True
            self._commands.append(StepDown(reason=reason))

    # --- wire ---------------------------------------------------------------------------------------------------

    def send(self, cluster: str, messages: tuple[Message, ...], now: float) -> Sent:
        """Put messages into the cluster's session; the commands that frame them go out with this call."""
        sent = self.links.send(cluster, messages, now)
        self._commands.extend(sent.commands)
        return sent

    def view(self, cluster: str) -> ClusterView | None:
        """Return what is known of a cluster; closed to us until records and inventory have been compared."""
        view = self.links.state(cluster)
        if view is not None and self.caution.cordons(cluster):
            view = replace(view, cordoned=True)
        if view is None or (self.rebuilt and not self.sessions.compares(cluster) and not self.caution.terms.asking):
            return view
        return replace(view, open=False)

    # --- reading again -------------------------------------------------------------------------------------------

    def ask_all(self, cluster: str, key: PlacementKey, namespace: str, *, over: bool) -> None:
        """Read the Workloads of a namespace ("": all) before a placement that no cache knows is dropped (R3)."""
        self.doubts.doubt(cluster, key, namespace, over=over)
        self.agenda.mark(DOUBTS)

    def tidy(self, cluster: str) -> None:
        """Keep nothing of a cluster that has nothing of ours and that nobody expects any more.

        Who takes a cluster of that name in again starts with a resync, so nothing of this would be right then.
        """
        if self.placements.tidy(cluster) or self.links.state(cluster) is not None:
            return
        self.sessions.forget(cluster)
        self.doubts.forget(cluster)
        self.open_offers.session_ended(cluster)
        self.failures.forget_cluster(cluster)
        self.cluster_changes.forget(cluster)
        self.words.forget(cluster)

    def forget_trouble(self, ref: ObjectRef) -> None:
        """Forget trouble with an object that is not there and that nobody is about to make, or looks for."""
        if self.known(ref) is not None or self.inflight.busy(ref):
            return
        made, sought = self.creations.owner_of(ref.key) is not None, bool(self.sought.of(ref))
        if not made and not sought and ref not in self.out_of_sight.left:
            self.inflight.forget(ref)
            self.resting.forget(ref)

    def drop_attempt(self, uid: str) -> None:
        """Forget an attempt whose Workload is gone, and all that was kept about it."""
        attempt = self._attempts.pop(uid, None)
        if attempt is not None:
            self.agenda.forget(attempt.look)
            self.budget.leave(attempt.look)
            for cluster in {attempt.cluster, *(attempt.round.offered if attempt.round else ())}:
                self.placements.forget(cluster, uid)
        self.cluster_waiters.forget(uid)
        self.not_ready.forget(uid)
        self.waiting_reasons.forget(uid)
        self.failures.gone(uid)
        self.predecessors.wait_no_more(uid)
        self.caution.tampered.forget(uid)
        self.ledger.forget(uid)

    # --- marks --------------------------------------------------------------------------------------------------

    def mark_workload(self, key: ObjectKey) -> None:
        """Look at a Workload soon."""
        self.agenda.mark(Key(Look.WORKLOAD, key))

    def mark_owner(self, owner: Owner) -> None:
        """Look at a user's object soon."""
        self.agenda.mark(owner.look)

    def mark_work(self, work: Work) -> None:
        """Look soon at the object of a work."""
        owner = work.only_object
        if owner is not None:
            self.mark_owner(owner)

    def mark_owners_waiting_for(self, key: ObjectKey) -> None:
        """Look at the user's objects whose Workload is (or was to be) at `key`."""
        known = self.knowledge.workloads.get(key)
        if known is not None:
            self.mark_work(self.knowledge.work_of(known))
            self.creations.done(key)
            return
        ref = self.creations.owner_of(key)  # kept until the Workload is seen: a create of unknown outcome is read first
        waiting = self.knowledge.owners.get(ref) if ref is not None else None
        if waiting is not None and waiting.workload == key:
            self.mark_owner(waiting)
        elif not self.inflight.busy(ObjectRef(WORKLOAD, key)):
            self.creations.done(key)
            self.forget_trouble(ObjectRef(WORKLOAD, key))

    def known(self, ref: ObjectRef) -> KubeObject | None:
        """Return what is known of an object of a kind that the machine writes."""
        if ref.resource == WORKER_CLUSTER:
            return self.caution.recovery.clusters.get(ref.key.name)
        return self.knowledge.at(ref)

    @property
    def marks_later(self) -> bool:
        """Say whether attempts are yet to be marked."""
        return bool(self._later)

    def is_marked_later(self, uid: str) -> bool:
        """Say whether an attempt is yet to be marked."""
        return uid in self._later

    def mark_later(self, uids: Iterable[str]) -> None:
        """Look at many attempts, some in each call."""
        self._later.extend(uids)

    def next_later(self) -> Iterator[Attempt]:
        """Return the next ones of those that wait to be marked."""
        for _ in range(min(MARKS_PER_CALL, len(self._later))):
            attempt = self._attempts.get(self._later.popleft())
            if attempt is not None:
                yield attempt

    def mark_attempt(self, attempt: Attempt) -> None:
        """Look at an attempt's Workload soon."""
        self.agenda.mark(attempt.look)


def ref_of(workload: Workload) -> ObjectRef:
    """Return where a Workload lives."""
    return ObjectRef(WORKLOAD, key_of(workload.metadata))
