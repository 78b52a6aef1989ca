"""The door: all that happens to the manager comes in here as an event, all that it wants goes out as commands.

The way of a pod, to be read in this order: `intake` (the pod and its Workload come in), `owners` (the Workload is
made), the admission engine's cycle below (`_decide`), `reconcile` and `dispatch` (a cluster is found and written),
`placing` (it is told), `reports` and `mirror` (what comes back), `endings` (the record, the quota, the clean-up).

An event changes what the core knows and names keys to look at again; keys are then reconciled from state alone. One
call looks at a bounded number of keys, so that none takes longer than 20 ms; if some are left, `next_deadline` asks
for a `Ticked` at once.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core import texts
from gatelift.core.api.commands import Command, ListAnew
from gatelift.core.api.events import (
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
from gatelift.core.clusters.link_values import LinksPort, WriteIds
from gatelift.core.conclusions import higher_terms, placed_counts, recovery, recovery_settling, strays
from gatelift.core.conclusions.catching_up import CatchingUp
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.records.ledger import AttemptLedger
from gatelift.core.records.work import Works
from gatelift.core.rules import containment, invariants, kept_record, readiness
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import predecessors, showing
from gatelift.core.state.core import Core
from gatelift.core.state.settings import CoreSettings
from gatelift.core.works import answers, deciding, taking
from gatelift.core.works.beginning import LIST_SECONDS_MAX, Beginning, watched
from gatelift.core.works.passes import Passes
from gatelift.core.works.rebuilding import Rebuilding
from gatelift_admission.engine import Engine
from gatelift_kube.deciding.writes import (
    ObjectGone,
    ObjectSeen,
    Synced,
    WriteDone,
    WriteFailed,
)
from gatelift_wire.values.moments import soonest

KEYS_PER_CALL = 50
"""Keys looked at in one call: a pass costs 0.1 to 0.3 ms, so a call stays below 20 ms."""
EVENTS_BETWEEN_DECISIONS = 50
"""Events that are taken before an engine that did not come to its end decides on: they may say that there is room, for
which it would only search. With none waiting the loop comes with `Ticked` at once."""
DECIDED_AHEAD = 256
"""Writes that wait or are under way at which no more is decided: about a second's, on an API server with two cores.
What is decided and not written holds quota that nobody uses, and is in the way of what is worth more and comes next."""
OTHERS_COUNTED = 128
"""So many of those at most are of what no quota is kept for: who makes and deletes objects without end, in a namespace
of his own, keeps nobody from being decided on."""


class Machine:
    """The manager's machine. Deterministic: the same events at the same times give the same commands."""

    __slots__ = ("_beginning", "_passes", "_rebuilding", "_taken", "_words", "core")

    def __init__(self, settings: CoreSettings, links: LinksPort, ids: WriteIds) -> None:
        engine = Engine(replace(settings.admission, kept_out=texts.KEPT_OUT))
        knowledge = Knowledge(settings.kinds, works=Works(settings.copied_labels))
        self.core = Core(settings, links, ids, AttemptLedger(engine=engine), knowledge)
        self._beginning = Beginning(watched(self.core.kinds))
        self._rebuilding = Rebuilding()
        self._words = CatchingUp(self.core)
        self._passes = Passes(self.core, self._words.pass_on)
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
        if self._acts and self._rebuilding.is_done(core, now):
            self._words.go_on(now)
            self._work(now)
            recovery_settling.tell_lease(core)
        showing.changed(core)
        predecessors.show_changed(core)
        placed_counts.tell(core)
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
        decision = core.ledger.engine.next_deadline()
        decision = None if decision is None or self._holds_back else decision
        return soonest(core.links.next_deadline(), core.agenda.next_time(), decision)

    @property
    def ready(self) -> bool:
        """Say whether all complete lists have been seen; of who took the Lease, those begun since."""
        return self._beginning.complete

    @property
    def _acts(self) -> bool:
        """Say whether it leads, as far as anybody knows, and all is there to decide on."""
        core = self.core
        return self._beginning.complete and core.leads(core.now) and not core.stands_still

    @property
    def _holds_back(self) -> bool:
        """Say whether nothing is decided now: not before something is done by hand, or some writes had their turn."""
        core = self.core
        if core.contained.resting and core.contained.rests_until(containment.DECIDING, core.now):
            return True
        if core.caution.halted or core.untaken.in_doubt:
            return True
        decided = core.inflight.charging + core.unsent.charging
        others = len(core.inflight.by_id) + len(core.unsent) - decided
        return decided + min(others, OTHERS_COUNTED) >= DECIDED_AHEAD

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
                self._words.pass_on(event, now)
            case LeadershipLost():
                self._words.pass_on(event, now)
                core.stand_still()
            case WentBack():
                core.step_down(event.text)
            case ObjectSeen() | ObjectGone():
                taking.take(core, event, now, self._words.pass_on)
            case Synced():
                self._words.pass_on(event, now)
                self._lead(self._beginning.listed(event.resource), now)
            case WriteDone() | WriteFailed():
                self._written(event, now)
            case OutOfSightListed():
                answers.out_of_sight_listed(core, event, now)
            case ReadDone() | ReadAllDone() | ReadFailed():
                self._read(event, now)
            case _:
                self._words.pass_on(event, now)

    def _lead(self, gained: LeadershipGained | None, now: float) -> None:
        """Begin to lead, from the state as of when the Lease was taken, or later."""
        if gained is not None:
            self.core.lead(gained.term)
            recovery.leads(self.core, warm=gained.warm, counter=gained.counter)
            higher_terms.leads(self.core, gained)
            self._words.pass_on(gained, now)

    def _written(self, event: WriteDone | WriteFailed, now: float) -> None:
        if self.core.links.owns_write(event.write_id):
            self._words.pass_on(event, now)
        else:
            answers.written(self.core, event, now)

    def _read(self, event: ReadDone | ReadAllDone | ReadFailed, now: float) -> None:
        core = self.core
        if isinstance(event, ReadAllDone):
            answers.listed(core, event, now)
        elif higher_terms.answered(core, event, now):
            for unconfirmed in higher_terms.take_unconfirmed(core):
                self._words.pass_on(unconfirmed, now)
        elif not (isinstance(event, ReadFailed) and strays.not_listed(core, event, now)):
            answers.read(core, event, now)

    # --- work -----------------------------------------------------------------------------------------------------

    def _work(self, now: float) -> None:
        """Look at dirty keys, decide on quota, and look at what that made dirty, within the budget of one call."""
        core = self.core
        for attempt in core.next_later() if core.marks_later else ():
            with Boundary(containment.pass_failed, core, attempt.look, now=now):
                core.mark_attempt(attempt)
                core.mark_owners_waiting_for(attempt.workload)
        readiness.let_go(core)
        left = self._passes.drain(KEYS_PER_CALL, now)
        waits = self._taken is not None and self._taken < EVENTS_BETWEEN_DECISIONS
        if left and not core.stands_still and not waits and core.ledger.engine.is_due(now) and not self._holds_back:
            self._decide(now)
            self._passes.drain(left, now)

    def _decide(self, now: float) -> None:
        """Let the engine decide; should it fail, nothing is decided for a while, and all else goes on."""
        core = self.core
        with Boundary(containment.pass_failed, core, containment.DECIDING, now=now):
            self._rebuilding.recall(core)
            self._taken = 0 if deciding.decide(core, now) else None
            containment.pass_done(core, containment.DECIDING)
