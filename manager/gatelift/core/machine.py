"""The door: all that happens to the manager comes in here as an event, all that it wants goes out as commands.

The way of a pod, to be read in this order: `intake` (the pod and its Workload come in), `owners` (the Workload is
made), the admission engine's cycle below (`_decide`), `reconcile` and `dispatch` (a cluster is found and written),
`placing` (it is told), `reports` and `mirror` (what comes back), `endings` (the record, the quota, the clean-up).

An event changes what the core knows and names keys to look at again; keys are then reconciled from state alone. One
call looks at a bounded number of keys, so that none takes longer than 20 ms; if some are left, `next_deadline` asks
for a `Ticked` at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import Command, ListAnew, Note
from gatelift.core.api.events import (
    BreakOff,
    ClockRead,
    Event,
    LeadershipExtended,
    LeadershipGained,
    LeadershipLost,
    OutOfSightListed,
    ReadAllDone,
    ReadDone,
    ReadFailed,
    Ticked,
    WentBack,
)
from gatelift.core.clusters.link_values import LinksPort, PlaceCounts, WriteIds
from gatelift.core.conclusions import held, higher_terms, recovery, strays
from gatelift.core.conclusions.catching_up import CatchingUp
from gatelift.core.dispatching import obeying, placing, unexplained, waking
from gatelift.core.records.ledger import AttemptLedger
from gatelift.core.rules import checks, containment, in_use, invariants, kept_record, readiness, unrecorded
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import predecessors, showing, word_writes
from gatelift.core.state.core import DOUBTS, UNSENT, UNSENT_AT_ONCE, UNSENT_SECONDS, Core
from gatelift.core.state.settings import CoreSettings
from gatelift.core.works import answers, deciding, owners, reconcile, taking
from gatelift.core.works.beginning import LIST_SECONDS_MAX, Beginning, watched
from gatelift_admission.engine import Engine
from gatelift_kube.deciding.writes import (
    Create,
    Delete,
    EmitEvent,
    ObjectGone,
    ObjectSeen,
    Patch,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values.moments import soonest

_SAY_THEMSELVES = frozenset({Look.UNDECIDED, Look.UNTAKEN, Look.UNCOMPARED})
"""Looks that come to their end though it did not go well: that is seen as it is decided on, or taken."""
HELD_SECONDS = 60.0
"""After so long it is looked whether what nobody looks at is to be stopped: it is the time that runs out of some."""
READ_AT_LAST = "a record could be read at last: what was said of its placement until then is to be said again"
COMPARED_ANEW = "not all that is here could be compared with the record: greet anew"
NOT_ENDED = "the look that asked for it came to no end"
KEYS_PER_CALL = 50
"""Keys looked at in one call: a pass costs 0.1 to 0.3 ms, so a call stays below 20 ms."""
REBUILDS_PER_CALL = 300
"""Attempts made from records in one call after a start, at about 40 us each."""
EVENTS_BETWEEN_DECISIONS = 50
"""Events that are taken before an engine that did not come to its end decides on: they may say that there is room, for
which it would only search. With none waiting the loop comes with `Ticked` at once."""
DECIDED_AHEAD = 256
"""Writes that wait or are under way at which no more is decided: about a second's, on an API server with two cores.
What is decided and not written holds quota that nobody uses, and is in the way of what is worth more and comes next."""


class Machine:
    """The manager's machine. Deterministic: the same events at the same times give the same commands."""

    __slots__ = ("_beginning", "_taken", "_to_rebuild", "_words", "core")

    def __init__(self, settings: CoreSettings, links: LinksPort, ids: WriteIds) -> None:
        engine = Engine(replace(settings.admission, kept_out=texts.KEPT_OUT))
        self.core = Core(settings=settings, links=links, ids=ids, ledger=AttemptLedger(engine=engine))
        self._beginning = Beginning(watched(self.core.kinds))
        self._to_rebuild: deque[ObjectKey] | None = None
        self._words = CatchingUp(self._pass_on)
        self._taken: int | None = None
        """Events since the engine was cut short; None: it came to its end."""

    # --- the door -------------------------------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> list[Command]:
        """Take an event; return what is wanted, in order. Never longer than 20 ms."""
        core = self.core
        if core.stepped_down:
            return []
        core.begin_call(now)
        self._take(event, now)
        missing = self._beginning.overdue(now)
        if missing:
            core.step_down(f"not listed within {LIST_SECONDS_MAX:g} s after the Lease was taken: {missing}")
        if self._taken is not None:
            self._taken = EVENTS_BETWEEN_DECISIONS if isinstance(event, Ticked) else self._taken + 1
        core.agenda.ring(now)
        higher_terms.look(core, now)
        if self._acts and self._rebuilt(now):
            self._words.go_on(core, now)
            self._work(now)
            recovery.tell_lease(core)
        showing.changed(core)
        predecessors.show_changed(core)
        self._count_placements()
        if core.settings.debug_invariants:
            invariants.check(core, now)
        return core.commands

    def next_deadline(self) -> float | None:
        """Return when `handle(Ticked())` has something to do; a time in the past means at once."""
        core = self.core
        if core.stepped_down:
            return None
        if not self._acts:
            asked = core.caution.terms.next_deadline()
            return soonest(core.links.next_deadline(), self._beginning.deadline, asked)
        if not core.rebuilt or self._words or core.marks_later or core.agenda.dirty:
            return core.now
        decision = None if self._holds_back else core.ledger.engine.next_deadline()
        return soonest(core.links.next_deadline(), core.agenda.next_time(), decision)

    @property
    def ready(self) -> bool:
        """Say whether all complete lists have been seen; of who took the Lease, those begun since."""
        return self._beginning.complete

    @property
    def _acts(self) -> bool:
        """Say whether it leads, as far as anybody knows, and all is there to decide on."""
        core = self.core
        return self.ready and core.leads(core.now) and not core.stands_still

    @property
    def _holds_back(self) -> bool:
        """Say whether nothing is decided now: not before something is done by hand, or some writes had their turn."""
        core = self.core
        if core.contained.rests_until(containment.DECIDING, core.now):
            return True
        if core.caution.halted or core.untaken.in_doubt:
            return True
        return len(core.inflight.by_id) + len(core.unsent) >= DECIDED_AHEAD

    # --- events ---------------------------------------------------------------------------------------------------

    def _take(self, event: Event, now: float) -> None:
        core = self.core
        match event:
            case ClockRead():
                core.wall.read(event.unix_seconds, now)
                core.ledger.engine.wall_clock(event.unix_seconds, now)
            case LeadershipGained():
                self._beginning.gained(event, now)
                kept_record.gained(core, now)
                core.command(ListAnew())
            case LeadershipExtended():
                core.leads_as_long_as(event.valid_until)
                core.caution.recovery.counted(event.counter)
                self._pass_on(event, now)
            case LeadershipLost():
                self._pass_on(event, now)
                core.stand_still()
            case WentBack():
                core.step_down(event.text)
            case ObjectSeen() | ObjectGone():
                self._object(event, now)
            case Synced():
                self._pass_on(event, now)
                self._lead(self._beginning.listed(event.resource), now)
            case WriteDone() | WriteFailed():
                self._written(event, now)
            case OutOfSightListed():
                answers.out_of_sight_listed(core, event, now)
            case ReadDone() | ReadAllDone() | ReadFailed():
                self._read(event, now)
            case _:
                self._pass_on(event, now)

    def _object(self, event: ObjectSeen | ObjectGone, now: float) -> None:
        """Take an object that came in; should that raise, it is kept."""
        self._take_in(event, now)
        taking.tried(self.core, event, now)

    def _take_in(self, version: ObjectSeen | ObjectGone, now: float) -> bool:
        core = self.core
        with Boundary(containment.object_failed, core, version, now=now):
            if version.resource == WORKER_CLUSTER:
                self._pass_on(version, now)
                recovery.take(core, version)
                core.untaken.taken(version)
            else:
                taking.take(core, version, now)
            return True
        return False

    def _take_again(self, ref: ObjectRef, now: float) -> None:
        """Take what could not be taken of an object, oldest first, up to what raises again."""
        if all(self._take_in(version, now) for version in self.core.untaken.of(ref)):
            taking.taken_again(self.core, ref)

    def _lead(self, gained: LeadershipGained | None, now: float) -> None:
        """Begin to lead, from the state as of when the Lease was taken, or later."""
        if gained is not None:
            self.core.lead(gained.term)
            recovery.leads(self.core, warm=gained.warm, counter=gained.counter)
            higher_terms.leads(self.core, gained)
            self._pass_on(gained, now)

    def _pass_on(self, event: Event, now: float) -> None:
        """Hand an event to the links and take what they have to say."""
        outcome = self.core.links.handle(event, now, record_revision=self.core.record_revision)
        self.core.command(*outcome.commands)
        self._words.add(outcome.upcalls)

    def _count_placements(self) -> None:
        """Tell the links how much is where, for the status of the clusters."""
        core = self.core
        if core.placements.changed or core.caution.to_tell:  # rarely, at one event of many
            self._count(core.placements.take_changed() | core.caution.take_to_tell())
        for cluster, namespaces in core.placements.namespaces_told():
            core.links.placed_in(cluster, namespaces)

    def _count(self, clusters: set[str]) -> None:
        core = self.core
        for cluster in sorted(clusters):
            with Boundary(containment.not_counted, core, cluster, now=core.now):
                self._count_one(cluster)

    def _count_one(self, cluster: str) -> None:
        core = self.core
        placed, offered = core.placements.at(cluster), core.placements.unapplied(cluster)
        placements = len(placed) + core.predecessors.count(cluster)
        counts = PlaceCounts(
            placements=placements,
            offers=len(offered - placed),
            unexplained=unexplained.count(core, cluster),
            undecided=unexplained.undecided(core, cluster),
            no_new_work=held.of_cluster(core, cluster),
        )
        core.links.place_counts(cluster, counts)
        core.tidy(cluster)
        if core.contained.resting:
            core.contained.well(containment.counts_of(cluster))

    def _rebuilt(self, now: float) -> bool:
        """Make the attempts that the records tell of, before anything is answered or decided; bounded per call.

        What the links said until then waits (its amount is bounded by the agents' outboxes): an inventory that is
        compared with half of the records would kill live work.
        """
        core = self.core
        if core.rebuilt:
            return True
        if self._to_rebuild is None:
            self._to_rebuild = deque(core.knowledge.workloads)
        for _ in range(min(REBUILDS_PER_CALL, len(self._to_rebuild))):
            key = self._to_rebuild.popleft()
            if containment.is_held(core, Key(Look.WORKLOAD, key)):
                continue  # no attempt is made from half of it
            with Boundary(containment.rebuild_failed, core, key, now=now):
                reconcile.rebuild(core, key, now)
        if self._to_rebuild or core.stepped_down:
            return False
        for cluster in core.links.clusters():
            predecessors.adopt(core, cluster)
        for known in unrecorded.remembered(core):  # before the queues are asked what they owe: for these as well
            with Boundary(containment.remembered_failed, core, known, now=now):
                unrecorded.charge(core, known)
        in_use.recall(core)
        core.has_rebuilt()
        core.agenda.mark(DOUBTS)
        return True

    def _written(self, event: WriteDone | WriteFailed, now: float) -> None:
        if self.core.links.owns_write(event.write_id):
            self._pass_on(event, now)
        else:
            answers.written(self.core, event, now)

    def _read(self, event: ReadDone | ReadAllDone | ReadFailed, now: float) -> None:
        core = self.core
        if isinstance(event, ReadAllDone):
            answers.listed(core, event, now)
        elif higher_terms.answered(core, event, now):
            for unconfirmed in higher_terms.take_unconfirmed(core):
                self._pass_on(unconfirmed, now)
        elif not (isinstance(event, ReadFailed) and strays.not_listed(core, event, now)):
            answers.read(core, event, now)

    # --- work -----------------------------------------------------------------------------------------------------

    def _work(self, now: float) -> None:
        """Look at dirty keys, decide on quota, and look at what that made dirty, within the budget of one call."""
        core = self.core
        for attempt in core.next_later():
            with Boundary(containment.pass_failed, core, attempt.look, now=now):
                core.mark_attempt(attempt)
                core.mark_owners_waiting_for(attempt.workload)
        readiness.let_go(core)
        left = self._drain(KEYS_PER_CALL, now)
        waits = self._taken is not None and self._taken < EVENTS_BETWEEN_DECISIONS
        if left and not core.stands_still and not waits and not self._holds_back and core.ledger.engine.is_due(now):
            self._decide(now)
            self._drain(left, now)

    def _decide(self, now: float) -> None:
        """Let the engine decide; should it fail, nothing is decided for a while, and all else goes on."""
        core = self.core
        with Boundary(containment.pass_failed, core, containment.DECIDING, now=now):
            self._taken = 0 if deciding.decide(core, now) else None
            containment.pass_done(core, containment.DECIDING)

    def _drain(self, budget: int, now: float) -> int:
        core = self.core
        while budget and not core.stands_still:
            key = core.agenda.take()
            if key is None:
                break
            budget -= 1
            self._look(key, now)
        return budget

    def _look(self, key: Key, now: float) -> None:
        """Look at a key; an exception belongs to what it names."""
        core = self.core
        if key.look is Look.DECIDING:
            containment.tell_doubts(core, now)
            return  # it rang: what is due is decided behind this
        if (core.untaken or core.caution.uncompared) and containment.is_held(core, key):
            self._hold(key, now)
            return
        rests = core.contained.rests_until(key, now)
        if rests:
            core.agenda.wake(key, rests)
            return
        begun = len(core.commands)
        with Boundary(self._look_failed, key, begun, now=now):
            self._pass(key, now)
            aside = containment.is_set_aside(core, key)
            if key.look not in _SAY_THEMSELVES:
                containment.pass_done(core, key)
            if aside is not None and aside.live:
                self._pass_on(BreakOff(cluster=aside.cluster, text=READ_AT_LAST), now)

    def _look_failed(self, key: Key, begun: int, error: Exception, now: float) -> None:
        """Drop what a look that came to no end has asked for, set its key aside, and stop what is to be stopped."""
        core = self.core
        for command in core.take_commands(begun):
            if isinstance(command, Create | Patch | Delete) and not core.links.owns_write(command.write_id):
                self._written(WriteFailed(write_id=command.write_id, error=WriteError.NOT_SENT, message=NOT_ENDED), now)
            elif not isinstance(command, EmitEvent | Note):
                core.command(command)  # frames have their number in a session, and reads change nothing
        containment.pass_failed(core, key, error, now)
        self._obey(key, now)

    def _hold(self, key: Key, now: float) -> None:
        """Do nothing for what is known by half but to stop it; it is looked at as soon as it could be taken."""
        self.core.agenda.wake(key, now + HELD_SECONDS)
        self._obey(key, now)

    def _obey(self, key: Key, now: float) -> None:
        """Stop what is to be stopped of what is set aside."""
        if key.look is Look.WORKLOAD:
            with Boundary(containment.stop_failed, self.core, key, now=now):
                obeying.stop_if_asked(self.core, key.object, now)

    def _pass(self, key: Key, now: float) -> None:
        if key.look is Look.UNTAKEN and key.resource is not None:
            self._take_again(ObjectRef(key.resource, key.object), now)
        elif key.resource is not None:
            owners.reconcile(self.core, ObjectRef(key.resource, key.object), now)
        elif key.look is Look.UNCOMPARED:
            for cluster in containment.compare_again(self.core, key.object, now):
                self._pass_on(BreakOff(cluster=cluster, text=COMPARED_ANEW), now)
        elif key.look is Look.INFORM:
            self.core.call_to_inform(now)
        elif key.look is Look.UNSENT:
            self._look_at_unsent(now)
        else:
            _PASSES[key.look](self.core, key.object, now)

    def _look_at_unsent(self, now: float) -> None:
        """Decide anew on the objects whose turn it is, of those whose write found none."""
        core = self.core
        for ref in core.unsent.next(UNSENT_AT_ONCE):
            taking.look_at(core, ref, now)
        if core.unsent:
            core.agenda.wake(UNSENT, now + UNSENT_SECONDS)


def _cluster_changed(core: Core, key: ObjectKey, now: float) -> None:
    placing.pay(core, key.name, now)
    recovery.look(core, key.name, now)
    if core.contained.resting:
        core.placements.note(key.name)  # it is counted again, should that have failed
    checks.mark_checks(core)


_PASSES: dict[Look, Callable[[Core, ObjectKey, float], None]] = {
    Look.WORKLOAD: reconcile.workload,
    Look.CHECK: checks.check,
    Look.CLUSTER_QUEUE: checks.cluster_queue,
    Look.LOCAL_QUEUE: checks.local_queue,
    Look.COHORT: checks.cohort,
    Look.FLAVOR: in_use.flavor,
    Look.CLUSTER: _cluster_changed,
    Look.WAKING: waking.go_on,
    Look.WORDS: word_writes.call,
    Look.DOUBTS: strays.look,
    Look.UNDECIDED: containment.decide_again,
}
