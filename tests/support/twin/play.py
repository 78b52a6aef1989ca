"""Plays one case on the fast engine and on the twin, with the same events and wake-ups, and names every difference.

The form of a case is that of `support.twin.admission_cases`, so that a shrunk difference can be kept as a table case.
How the two are made to run in step:

* The fast engine runs rounds over one tree at a time; the twin runs one cycle of that tree for each of them. Trees do
  not influence each other, so the order among trees says nothing.
* Batching of wake-ups: Kueue flushes everything that is inadmissible a second after any release; the fast engine
  wakes, by an index, what a release may help. The twin is therefore woken with exactly what the fast engine chooses
  to look at. That this is enough is checked at rest: flushing the whole twin must bring no further decision.
* Re-evaluation: Kueue evaluates the head of a StrictFIFO queue, or one that lost, in every cycle; the fast engine
  leaves it alone until something changes; so with one that waits for its victims. The twin evaluates it literally;
  that must not change anything. Under fair sharing such a head, though it fits nowhere, would represent its cohort
  in the tournament and hold others of the cohort back; the twin lets it go last, as if it had not been looked at.
* Flavor cursor: an entry that lost goes on behind the flavor it had. When nothing fits there, Kueue parks it until
  the next flush; the fast engine looks at all flavors again in the next round. The twin is woken then, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from gatelift_admission.entries.standings import AWAKE
from gatelift_admission.rounds.cycle import Cycle
from gatelift_admission.rounds.progress import AdmissionRound, Nominee
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Decision, Inadmissible, Preempt, Reserve
from support.twin.admission_cases import Case
from support.twin.engine import BYPASSED, Outcome, Twin
from support.twin.feed import Fed
from support.twin.invariants import above_limits, broken, overtaken, spared
from support.twin.queues import NO_CANDIDATES, NO_FIT, TwinQueue
from support.twin.records import Cursor, Work
from support.twin.slices import BEHIND, superseded

CALLS_MAX = 6
"""Calls of `cycle` in which an instance this small has to come to rest."""
BUDGET = 150
"""Steps of one call: more than an instance needs, so that rounds are not cut."""
EXTRA_CYCLES = 6
"""Cycles the twin is given at rest: more than the flavors of a group, so that every cursor comes round."""
FIGURES = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|[kMGTPE]i?)?")
LOST = ("WaitingForQuota", "Workload no longer fits after processing another workload")
WAITING = ("PendingEvaluation", "Workload is pending evaluation in the scheduling queue")


class Difference(AssertionError):  # noqa: N818 - it is what the test is about
    """The engines disagree."""


@dataclass(slots=True)
class Seen:
    """One round of the fast engine: the heads it took and what it decided."""

    heads: list[str]
    anew: set[str]
    """Heads that were looked at from their first flavor."""
    spares: dict[str, frozenset[str]]
    """Whom each of those who wait does not preempt."""
    spared: set[str]
    """Whom nobody preempts again."""
    decisions: list[Decision] = field(default_factory=list)


def spared_in(state: State) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Return whom each of those who wait does not preempt now, and whom nobody does (decision 14)."""
    spares, spared = {}, set()
    for uid, entry in state.entries.items():
        known = state.queues.get(entry.queue or entry.charged_queue)
        now = state.outside_of(known.root) if known is not None else None
        if entry.spares_of == now:
            spares[uid] = frozenset(one for who, number in entry.spares for one, place in who.items() if place < number)
        if entry.preempted_of == now and now is not None:
            spared.add(uid)
    return spares, spared


class WatchedCycle(Cycle):
    """The fast engine's cycle, whose rounds are written down, and whose invariants are watched."""

    __slots__ = ("seen",)

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.seen: list[Seen] = []

    def under_way(self) -> int:
        """Return 1 if the last round is not at its end."""
        return int(self._round is not None)

    def _open(self) -> AdmissionRound | None:
        opened = super()._open()
        if opened is None:
            return None
        heads = [entry for entry, _, _ in opened.heads]
        spares, spared = spared_in(self._state)
        self.seen.append(Seen([one.uid for one in heads], {one.uid for one in heads if not one.cursor}, spares, spared))
        return opened

    def _nominate(self, round_: AdmissionRound, budget: int) -> int:
        before = len(round_.nominees)
        done = super()._nominate(round_, budget)
        for one in round_.nominees[before:]:
            _hold(spared(self._state.ensure(), one))
        return done

    def _look_at(self, round_: AdmissionRound, nominee: Nominee, decisions: list[Decision]) -> None:
        passed = overtaken(nominee.queue.pending, nominee.entry)
        before = len(decisions)
        super()._look_at(round_, nominee, decisions)
        if any(isinstance(one, Reserve) for one in decisions[before:]):
            _hold(passed)
            if not round_.claims.victims:
                _hold(above_limits(self._state.node(nominee.queue.name), nominee.plan.assignment.usage))

    def _process(self, round_: AdmissionRound, decisions: list[Decision], limit: int) -> int:
        before = len(decisions)
        done = super()._process(round_, decisions, limit)
        self.seen[-1].decisions += decisions[before:]
        return done


@dataclass(slots=True)
class Both(Fed):
    """Both engines in step."""

    told: dict[str, tuple[str, str]] = field(default_factory=dict)
    common: dict[str, tuple[str, str]] = field(default_factory=dict)
    beside: set[str] = field(default_factory=set)
    """Workloads of several pod sets not evaluated since somebody was admitted."""
    history: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """All that the twin told since a workload was looked at after an event: who goes round its flavors in vain is told
    each in turn."""
    earlier: set[str] = field(default_factory=set)
    """Workloads whose history is from before the last event."""
    requeued: dict[str, str] = field(default_factory=dict)
    """With which reason the twin requeued a workload last."""
    before: set[str] = field(default_factory=set)
    """Workloads not evaluated since somebody was admitted, who may be one to preempt, or was preempted, who goes first
    among those to preempt from then on."""
    stood: dict[str, Cursor] = field(default_factory=dict)
    """Cursors of the twin that were settled, of workloads that nobody has looked at since."""
    cycles: int = 0
    preemptions: int = 0
    admissions: int = 0
    grown: int = 0
    """Slices that took the place of others of their chain."""

    def play(self) -> None:
        """Play all steps; raises Difference."""
        self.fast._cycle = WatchedCycle(self.fast.state)
        for decides in self.steps():
            if decides:
                self._cycle()

    # -- in step ---------------------------------------------------------------------------------------------------

    def _cycle(self) -> None:
        watched = self.fast._cycle
        assert isinstance(watched, WatchedCycle)
        for call in range(CALLS_MAX):
            result = self.fast.cycle(self.clock, BUDGET)
            for fault in result.faults:
                raise fault.error
            if call == 0 and watched.seen:
                self.earlier = set(self.history)
            for one in result.decisions:
                if isinstance(one, Reserve):
                    self.reserves[one.uid] = one
                    self.told.pop(one.uid, None)
                    self.common.pop(one.uid, None)
                elif isinstance(one, Inadmissible):
                    self.told[one.uid] = (one.reason, one.message)
            for seen in watched.seen[: len(watched.seen) - watched.under_way()]:
                self._same_round(seen)
            # A round that is still open (it was cut) is compared when it is closed.
            del watched.seen[: len(watched.seen) - watched.under_way()]
            if not watched.under_way():
                _hold(broken(self.fast.state))
            if not result.more:
                break
        else:
            raise Difference("the fast engine does not come to rest")
        self._same_texts()
        self._nobody_is_forgotten()
        self._settle_cursors()

    def _same_round(self, seen: Seen) -> None:
        """Let the twin run the cycle of one round, woken with the same heads; compare what was decided."""
        heads = [uid for uid in seen.heads if uid in self.twin.world.works]
        if not heads:
            return
        self.cycles += 1
        for uid in heads:
            self.twin.wake(uid)
            self.stood.pop(uid, None)
        root = self.twin.world.root_name(self.twin.queue_for(self.twin.world.works[heads[0]]))
        for uid in self.earlier.intersection(heads):
            self.earlier.discard(uid)
            del self.history[uid]
        for uid in seen.anew:
            # Kueue goes round the flavors of a StrictFIFO head for ever, the fast engine once for each state of the
            # tree; then it keeps the head's room by looking at it from the first flavor. One that found nothing
            # begins at the first flavor, too; only one that lost has to go on behind its flavor, unless the cursors of
            # its pod sets are out of step: then Kueue goes round for ever, too.
            work = self.twin.world.works.get(uid)
            if work is not None and (
                self._is_strict(work)
                or self.requeued.get(uid) in (NO_FIT, NO_CANDIDATES)
                or len(set(work.cursor.values())) > 1
            ):
                work.cursor = {}
        self._spare(seen.spares, seen.spared)
        self._set_aside(seen, root)
        works = self.twin.world.works
        cursors = {uid: (work.cursor, work.cursor_generation, work.cursor_cycle) for uid, work in works.items()}
        outcome = self.twin.cycle(self.clock, root, heads)
        self.requeued.update(outcome.requeued)
        for uid in set(outcome.heads) - set(heads):  # re-evaluations: both are at the same flavor when next compared
            works[uid].cursor, works[uid].cursor_generation, works[uid].cursor_cycle = cursors[uid]
        # A text is compared where both evaluated: re-evaluations of the twin may say it with another cursor.
        self.common = {uid: text for uid, text in self.common.items() if uid not in outcome.admitted}
        self.common.update(
            {uid: text for uid, text in outcome.told.items() if uid in heads or uid not in outcome.heads}
        )
        for uid, text in outcome.told.items():
            self.history.setdefault(uid, set()).add((text[0], FIGURES.sub("#", text[1])))
        missing = set(heads) - set(outcome.heads)
        if missing:
            raise Difference(f"round {self.cycles}: fast takes heads {sorted(heads)}, twin {outcome.heads}")
        self._same_decisions(seen, outcome)

    def _spare(self, spares: dict[str, frozenset[str]], spared: set[str]) -> None:
        """Let the twin spare whom the fast engine spares, so that nobody is preempted again and again (decision 14)."""
        for uid, work in self.twin.world.works.items():
            work.spares, work.spared = spares.get(uid, frozenset()), uid in spared

    def _set_aside(self, seen: Seen, root: str) -> None:
        """Set aside in the twin, under BestEffortFIFO, whom the fast engine left for its next workload unevaluated.

        Kueue takes what lost, or whose cursor has flavors left, at once again (the cursors of several pod sets can be
        out of step, so that this never ends), and evaluates it before those behind it. The fast engine knows from
        what it lacks, or from having gone round all flavors, that this is in vain. That it is, the twin has to agree.
        """
        for name, queue in self.twin.queues.items():
            known = name in self.twin.world.cluster_queues and self.twin.world.active(name)
            if not known or queue.strategy == "StrictFIFO" or self.twin.world.root_name(name) != root:
                continue
            order = [one.uid for one in queue.order()]
            taken = next((uid for uid in order if uid in seen.heads), "")
            for uid in order:
                if uid == taken or not self._is_parked(uid):
                    break
                if self._has_a_chance(uid, root):
                    if taken:
                        raise Difference(f"round {self.cycles}: fast takes {taken} before {uid}, which has a chance")
                    break
                self._aside(queue, self.twin.world.works[uid])

    def _is_strict(self, work: Work) -> bool:
        return self.twin.queues[self.twin.queue_for(work)].strategy == "StrictFIFO"

    def _has_a_chance(self, uid: str, root: str) -> bool:
        """Return whether a workload fits or finds somebody to preempt from its first flavor, or as the twin goes on."""
        if self.twin.in_vain(self.twin.world.works[uid], self.clock):
            return False
        copy = self.twin.copy()
        for _ in range(EXTRA_CYCLES):
            outcome = copy.cycle(self.clock, root)
            if uid in outcome.admitted or any(by == uid for _, by in outcome.preempted.values()):
                return True
            if uid not in outcome.heads:
                break
        return False

    def _is_parked(self, uid: str) -> bool:
        """Return whether the fast engine has put the class of a workload aside."""
        entry = self.fast.state.entries[uid]
        known = self.fast.state.queues[entry.queue].pending.classes.get(entry.shape) if entry.queue else None
        aside = bool(entry.queue) and uid in self.fast.state.queues[entry.queue].pending.aside
        return aside or (known is not None and known.standing not in AWAKE)

    @staticmethod
    def _aside(queue: TwinQueue, work: Work) -> None:
        queue.heap.pop(work.uid)
        queue.inadmissible[work.uid] = work
        work.cursor = {}

    def _waits_for_victims(self, uid: str) -> bool:
        """Return whether the fast engine lets a preemptor wait until something is released.

        Kueue evaluates it in every cycle; victims that are on their way out come first then, which can make another
        flavor look better and cost further victims before the first are gone. The fast engine does not look again.
        """
        return self.told.get(uid, ("",))[0] == "WaitingForPreemptedWorkloads"

    def _settle_cursors(self) -> None:
        """Forget at rest the cursors that the fast engine has forgotten.

        Where Kueue's cursor stands when the next event comes is chance: it goes on as long as a cycle runs.
        """
        for queue in self.twin.queues.values():
            for work in [*queue.heap.values(), *queue.inadmissible.values()]:
                if not self.fast.state.entries[work.uid].cursor:
                    if work.cursor:
                        self.stood[work.uid] = work.cursor
                    work.cursor = {}
            if queue.strategy != "StrictFIFO":
                for work in [one for one in queue.heap.values() if self._is_parked(one.uid)]:
                    self._aside(queue, work)

    def _same_decisions(self, seen: Seen, outcome: Outcome) -> None:
        gone = {one.uid: (one.reason, one.preemptor_uid) for one in seen.decisions if isinstance(one, Preempt)}
        if gone != outcome.preempted:
            raise Difference(
                f"round {self.cycles}, heads {seen.heads} / {outcome.heads}: fast preempts {gone}, twin "
                f"{outcome.preempted}, which says {outcome.told}"
            )
        self.preemptions += len(gone)
        self.admissions += len(outcome.admitted)
        self.grown += sum(isinstance(one, Reserve) and bool(one.replaces) for one in seen.decisions)
        works = self.twin.world.works.values()
        if outcome.admitted or gone:
            self.before |= {one.uid for one in works if not one.reserved}
        if outcome.admitted:
            self.beside |= {one.uid for one in works if not one.reserved and len(one.pod_sets) > 1}
        # Who went on behind a flavor was not looked at whole: what it was refused before, nobody has looked at since.
        self.beside -= set(outcome.admitted or seen.anew)
        self.before -= set(outcome.admitted if outcome.admitted or gone else seen.anew)
        fast = [self._plain(one) for one in seen.decisions if isinstance(one, Reserve)]
        twin = [self._granted(uid) for uid in outcome.admitted]
        if fast != twin:
            raise Difference(
                f"round {self.cycles}, heads {seen.heads} / {outcome.heads}: fast reserves {fast}, twin {twin}, "
                f"which says {outcome.told}"
            )

    def _plain(self, one: Reserve) -> Any:
        charged = {ps.name: (dict(ps.flavors), ps.count) for ps in one.admission.pod_set_assignments}
        return one.uid, one.admission.cluster_queue, charged, one.checks

    def _granted(self, uid: str) -> Any:
        work = self.twin.world.works[uid]
        granted = {one.name: (one.flavors, one.count) for one in work.granted}
        return uid, work.queue, granted, tuple(self.twin.required_checks(work))

    # -- at rest ---------------------------------------------------------------------------------------------------

    def _same_texts(self) -> None:
        """Compare what waiting workloads were told last."""
        for uid, work in self.twin.world.works.items():
            if work.reserved:
                due = {} if work.chain and superseded(self.twin.world, work) else work.charge()
                if _without_zeros(self.fast.charged(uid)) != _without_zeros(due):
                    raise Difference(f"{uid} is charged {self.fast.charged(uid)}, by the twin {due}")
                continue
            standing = self.twin.standing(work)
            if standing is not None:
                self.common[uid] = standing
            mine, theirs = self.fast.state.entries[uid].told, self.common.get(uid)
            if mine == WAITING and theirs is not None and (theirs[1].endswith("is inactive") or theirs == BEHIND):
                continue  # its queue is served again, and it was not its turn yet
            if mine is None or theirs is None:
                continue
            if mine != self.told.get(uid):
                raise Difference(f"text of {uid}: {mine} is what it keeps, {self.told.get(uid)} what it sent")
            # A class that fails again for the same reason: Kueue writes to its members that they were bypassed, the
            # fast engine leaves the more telling text of the last evaluation and saves the write.
            if theirs == (mine[0], BYPASSED):
                continue
            if mine == (self._bypass_reason(uid), BYPASSED):  # it came into a class that had failed
                self.common[uid] = mine
                continue
            plain = mine[0], FIGURES.sub("#", mine[1])
            chance = self._goes_round(uid) or self._is_parked(uid) or self._waits_for_victims(uid)
            if chance and plain in self.history.get(uid, ()):
                continue
            if plain != (theirs[0], FIGURES.sub("#", theirs[1])):
                raise Difference(f"{uid} is told {mine}, by the twin {theirs}")

    def _bypass_reason(self, uid: str) -> str:
        queue = self.twin.queues.get(self.fast.state.entries[uid].queue)
        return queue.bypassed.get(uid, "") if queue is not None and uid in queue.inadmissible else ""

    def _goes_round(self, uid: str) -> bool:
        """Return whether the fast engine has found that a workload comes round its flavors, losing, again and again."""
        name = self.fast.state.entries[uid].queue
        return any(name in stalled for stalled in self.fast.state.stalled.values())

    def _nobody_is_forgotten(self) -> None:
        """Flush a copy of the twin and run it on: nobody may be admitted whom the fast engine has not seen.

        Somebody is forgotten only if that is so however the cursors stand: Kueue goes round the flavors of the head of
        a StrictFIFO queue for ever; which room it keeps, and who slips past, is chance.

        Less room can help one with several pod sets: the first takes another flavor then and leaves its own to the
        second; and who was admitted last may be one to preempt, or use what makes another one exceed its quota. An
        admission flushes nothing, in Kueue neither, so nobody is to blame (`beside`, `before`). Nor does a preemption,
        which puts its victim first among those to preempt: fewer others may do then. Nor if one came into a
        class that had failed, and is old enough to preempt whom the others may not: classes know no timestamps. Nor if
        others, looked at again by a flush that no event calls for, keep room from one that waits for its victims, so
        that it is set aside and those behind it have their turn. Nor of one that lost to kept room and found nothing
        behind its flavor: Kueue, too, sets it aside until an event flushes, and who keeps room then is chance.
        """
        for flushed, when in ((False, "at rest"), (True, "at rest, after a flush,")):
            found = self._forgotten(flushed=flushed, first=True)
            if found and self._forgotten(flushed=flushed, first=False):
                raise Difference(f"forgotten: {when} {found}")

    def _forgotten(self, *, flushed: bool, first: bool) -> str:
        """Return what a copy of the twin decides at rest that the fast engine has to answer for; empty for nothing."""
        self._spare(*spared_in(self.fast.state))
        rest = self.twin.copy()
        for name in rest.world.cluster_queues if flushed else ():
            rest.flush(name, self.clock)
        for rounds in range(EXTRA_CYCLES + len(rest.world.works) * flushed):
            before = rest.standstill()
            if first:
                self._blocked_from_the_first(rest)
            elif not rounds:
                self._as_they_stood(rest)
            outcome = rest.cycle(self.clock)
            preemptors = {by for _, by in outcome.preempted.values()}
            moved = {*outcome.admitted, *preemptors}
            waiting = {uid for uid in moved if self._waits_for_victims(uid)}
            if moved and (moved if flushed else preemptors) <= waiting and (flushed or not outcome.admitted):
                return ""
            bypassed = {uid for uid in preemptors if self.told.get(uid, ("", ""))[1] == BYPASSED}
            behind = {uid for uid in moved if self._is_behind_a_preemptor(uid)}
            lost = {uid for uid in moved if LOST in self.history.get(uid, ())}
            if flushed and moved and moved <= self.beside | (preemptors & self.before) | bypassed | behind | lost:
                return ""
            if moved:
                return f"the twin admits {outcome.admitted}, preempts {outcome.preempted}"
            if rest.standstill() == before:
                break
        return ""

    def _is_behind_a_preemptor(self, uid: str) -> bool:
        """Return whether a workload waits in the queue of one that waits for its victims."""
        blocked = self.fast.state.queues[self.fast.state.entries[uid].queue].pending.blocked
        return blocked is not None and blocked.uid != uid and self._waits_for_victims(blocked.uid)

    def _as_they_stood(self, twin: Twin) -> None:
        """Let all whom nobody has looked at since go on where they stood: settled, they would meet in other ways."""
        for uid, cursor in self.stood.items():
            if uid in twin.world.works:
                twin.world.works[uid].cursor = cursor

    def _blocked_from_the_first(self, twin: Twin) -> None:
        """Let heads of StrictFIFO queues that the fast engine holds at rest begin at their first flavor."""
        for name, queue in twin.queues.items():
            known = self.fast.state.queues.get(name)
            blocked = known.pending.blocked if known is not None else None
            if queue.strategy == "StrictFIFO" and blocked is not None and blocked.uid in queue.heap:
                queue.heap[blocked.uid].cursor = {}


def difference(case: Case) -> str | None:
    """Return the first difference of a case, None if the engines agree."""
    try:
        Both(case).play()
    except Difference as found:
        return str(found)
    return None


def _hold(found: list[str]) -> None:
    """Raise what is broken of an invariant."""
    if found:
        raise Difference(f"invariant: {'; '.join(found)}")


def _without_zeros(usage: dict[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    return {cell: amount for cell, amount in usage.items() if amount}
