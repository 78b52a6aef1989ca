"""All that the machine holds, and the few ways in which every part of it sends, notes and marks.

`Core` has no decisions: `machine` feeds it, `owners`, `reconcile`, `dispatch`, `mirror`, `checks` decide on it. What is
asked of the API server goes by `api_requests`; what goes from many places at once, by `forgetting`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gatelift.core.api.agenda import Agenda, Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.commands import Command, Note, StepDown
from gatelift.core.api.inflight import InFlight
from gatelift.core.api.pacing import Pacing
from gatelift.core.api.resting import Resting
from gatelift.core.api.status_budget import StatusBudget
from gatelift.core.api.unsent import Unsent
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.link_values import ClusterView, LinksPort, Sent, WriteIds
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.records.ledger import AttemptLedger
from gatelift.core.records.work import NOBODYS, Owner, Work
from gatelift.core.state import forgetting
from gatelift.core.state.asked_owners import AskedOwners
from gatelift.core.state.caution import Caution
from gatelift.core.state.cluster_changes import ClusterChanges
from gatelift.core.state.cluster_waiters import ClusterWaiters
from gatelift.core.state.creations import Creations
from gatelift.core.state.dispatch_values import DispatchFailures
from gatelift.core.state.doubts import Doubts
from gatelift.core.state.fenced import FencedPlacements
from gatelift.core.state.haunted import Haunted
from gatelift.core.state.not_ready import NotReady
from gatelift.core.state.open_offers import OpenOffers
from gatelift.core.state.out_of_sight import OutOfSight
from gatelift.core.state.placements import Placements
from gatelift.core.state.pod_counts import PodCounts
from gatelift.core.state.predecessors import Predecessors
from gatelift.core.state.sessions import Sessions
from gatelift.core.state.settings import CoreSettings
from gatelift.core.state.shown_queues import ShownQueues
from gatelift.core.state.surplus import SettledSurplus
from gatelift.core.state.untaken import Untaken
from gatelift.core.state.waiters import Waiters
from gatelift.core.state.waiting_reasons import WaitingReasons
from gatelift.core.state.word_writes import WordWrites
from gatelift_admission.values.model import Reserve
from gatelift_kinds.registry import Registry
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import EmitEvent, KubeObject
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef
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


@dataclass(slots=True)
class Core:
    """The machine's state. `out` collects the commands of the present call of `handle`."""

    settings: CoreSettings
    links: LinksPort
    ids: WriteIds
    ledger: AttemptLedger
    knowledge: Knowledge
    agenda: Agenda = field(default_factory=Agenda)
    pacing: Pacing = field(default_factory=Pacing)
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
    pod_counts: PodCounts = field(default_factory=PodCounts)
    term: int = 0
    leads_until: float = 0.0
    record_revision: int = 0
    fenced: FencedPlacements = field(default_factory=FencedPlacements)
    haunted: Haunted = field(default_factory=Haunted)
    surplus: SettledSurplus = field(default_factory=SettledSurplus)
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
        return self.stepped_down or bool(self.caution.terms.why)

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

    def may_inform(self, asks: WriteAsk, now: float) -> bool:
        """Say whether a write that only informs may go out now; if not, its key is looked at when its turn comes."""
        may = self.budget.ask(asks, now)
        if not may:
            self.agenda.wake(INFORM, now + self.budget.wait)
        return may

    def inform_later(self, asks: WriteAsk, now: float) -> None:
        """Look at a key again when its turn comes, after all others that wait in its share."""
        self.budget.leave(asks)
        self.budget.stand(asks)
        self.agenda.wake(INFORM, now + self.budget.wait)

    def call_to_inform(self, now: float) -> None:
        """Look at those whose turn it is to inform."""
        for asks in self.budget.call(now):
            self.agenda.mark(asks.key)
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
        """Ask for something; writes and reads are noted as under way, see `api_requests`."""
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
        self.end_attempt(attempt.uid)
        self._attempts[attempt.uid] = attempt

    def placed(self, key: PlacementKey) -> Attempt | None:
        """Return the attempt of what is called so on the wire: of a chain, on whichever slice it stands now."""
        return self._attempts.get(self.knowledge.slices.holder(key.uid))

    def move_attempt(self, attempt: Attempt, uid: str, workload: ObjectKey, reserve: Reserve | None) -> None:
        """Take that another slice of its chain is the record of an attempt, whose own one, if any, is over."""
        self.end_attempt(uid)
        del self._attempts[attempt.uid]
        attempt.moves_to(uid, workload, reserve)
        self._attempts[uid] = attempt

    def end_attempt(self, uid: str) -> None:
        """Take that an attempt is over; what is kept about its Workload stays, see `forgetting`."""
        attempt = self._attempts.pop(uid, None)
        if attempt is not None:
            self.words.ended(attempt, self.kinds.travelling)

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
            why = "" if view.cordoned else "no new work for what it has said (condition NoNewWork)"
            view = replace(view, cordoned=True, why_cordoned=view.why_cordoned or why)
        if view is None or (self.rebuilt and not self.sessions.compares(cluster) and not self.caution.terms.asking):
            return view
        return replace(view, open=False)

    # --- reading again -------------------------------------------------------------------------------------------

    def ask_all(self, cluster: str, key: PlacementKey, namespace: str, *, over: bool) -> None:
        """Read the Workloads of a namespace ("": all) before a placement that no cache knows is dropped (R3)."""
        self.doubts.doubt(cluster, key, namespace, over=over)
        self.agenda.mark(DOUBTS)

    # --- marks --------------------------------------------------------------------------------------------------

    def mark_workload(self, key: ObjectKey) -> None:
        """Look at a Workload soon."""
        self.agenda.mark(Key(Look.WORKLOAD, key))

    def mark_owner(self, owner: Owner) -> None:
        """Look at a user's object soon, and at what it is a part of."""
        self.mark_owner_alone(owner)
        if owner.work is not owner.name:
            work = self.knowledge.works.of_object(owner.name)
            if work is not None and work.gathered is not None:
                self.mark_for_one(work.look)

    def mark_owner_alone(self, owner: Owner) -> None:
        """Look at a user's object soon, at it alone."""
        self.agenda.mark(owner.look)

    def mark_for_one(self, key: Key, *, late: bool = False) -> None:
        """Look at what concerns several objects, once for what happens to many of them; `late`: behind others."""
        due = self.pacing.due(key, self.now)
        if due > self.now:
            self.agenda.wake(key, due, late=late)
        else:
            (self.agenda.mark_late if late else self.agenda.mark)(key)

    def mark_work(self, work: Work) -> None:
        """Look soon at the object of a work, or once at all of them."""
        if work.gathered is not None:
            self.agenda.mark(work.look)
            return
        owner = work.only_object
        if owner is not None:
            self.mark_owner(owner)

    def mark_said_of(self, attempt: Attempt) -> None:
        """Look at the users' objects of which a cluster has said something."""
        known = self.knowledge.workloads.get(attempt.workload)
        if known is not None:
            self.mark_work(self.knowledge.work_of(known))

    def mark_said_of_one(self, attempt: Attempt, *, again: bool) -> None:
        """Look at the user's object, or at all of several, since a cluster has said how one is.

        `again`: not for the first time. That is late: everybody's next pod would wait for it.
        """
        known = self.knowledge.workloads.get(attempt.workload)
        work = self.knowledge.work_of(known) if known is not None else NOBODYS
        if work.gathered is not None:
            self.mark_for_one(work.look, late=again)
            return
        owner = work.only_object
        if owner is not None and again and owner.work is owner.name:
            self.agenda.mark_late(owner.look)
        elif owner is not None:
            self.mark_owner(owner)

    def mark_gathered_at(self, key: ObjectKey) -> None:
        """Look at the objects of a work of several whose Workload belongs at `key`, also when another one is there."""
        work = self.knowledge.works.gathered_at(key)
        if work is not None:
            self.agenda.mark(work.look)

    def mark_owners_waiting_for(self, key: ObjectKey) -> None:
        """Look at the user's objects whose Workload is (or was to be) at `key`."""
        known = self.knowledge.workloads.get(key)
        self.mark_gathered_at(key)
        if known is not None:
            self.mark_work(self.knowledge.work_of(known))
            self.creations.done(key)
            return
        ref = self.creations.owner_of(key)  # kept until the Workload is seen: a create of unknown outcome is read first
        waiting = self.knowledge.owners.get(ref) if ref is not None else None
        if waiting is not None and (waiting.workload == key or waiting.kind.sliced):
            self.mark_owner(waiting)
        elif not self.inflight.busy(ObjectRef(WORKLOAD, key)):
            self.creations.done(key)
            forgetting.forget_trouble(self, ObjectRef(WORKLOAD, key))

    def mark_who_waited(self, key: ObjectKey) -> None:
        """Look at who waits for `key`, and at a Workload of nobody's there, which may have waited for what is gone."""
        self.mark_owners_waiting_for(key)
        known = self.knowledge.workloads.get(key)
        if known is not None and not self.knowledge.names.get(known.metadata.uid):
            self.mark_workload(key)

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
