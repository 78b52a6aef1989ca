"""What becomes of a head that a round has looked at: reserved, waiting for others to leave, overtaken, or parked.

Each is charged, kept room for, moved in its queue and told of here, and nowhere else in a round. Neighbours: `cycle`
decides which it is; `reservation` is what is written of one.
"""

from __future__ import annotations

from gatelift_admission import texts
from gatelift_admission.entries.entry import ALL, Entry, Phase
from gatelift_admission.feed import places, slices
from gatelift_admission.flavors.assignment import Assignment, Cursor, Mode
from gatelift_admission.preemption.issue import decision
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.rounds import reservation
from gatelift_admission.rounds.progress import AdmissionRound
from gatelift_admission.state import charging, wakeups
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Decision, Reserve


class RoundOutcomes:
    """Carries out over `State` what a round has decided on."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        """Work on `state`, which the engine shares."""
        self._state = state

    def cannot(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, assignment: Assignment) -> None:
        """Set aside what fits neither now nor by preemption, or go on to its next flavors."""
        tree = self._state.ensure()
        now = self._now(round_)
        entry.reserves |= assignment.mode is not Mode.NO_FIT
        again = queue.pending.strict or not round_.repeated  # else all was seen, and those behind it have their turn
        if again and assignment.has_more_flavors and entry.searched != now and entry.goes_on(assignment.cursor, now):
            self._go_on(round_, entry, queue, assignment.cursor)
            self._retry(round_, queue, entry)
            self._state.tell(entry, (assignment.reason, assignment.message))
        elif again and (entry.overtaken or (entry.cursor and queue.pending.strict)) and entry.restarted != now:
            # An earlier flavor may have room, or leave some to a later pod set, by now: from the first.
            round_.anew |= not entry.overtaken
            entry.restarted = now
            entry.search_anew()
            queue.pending.evaluate(entry)
            self._retry(round_, queue, entry)
            self._state.tell(entry, (assignment.reason, assignment.message))
        elif entry.overtaken and queue.pending.strict:  # it fits but for what others keep: ready when they do not
            entry.search_anew()
            round_.progress = True  # as they may by now: this is not said of one beginning twice
            round_.lost.append(queue)
            queue.pending.lost(entry)
            self._state.tell(entry, (assignment.reason, assignment.message))
        else:
            entry.searched = now
            assignment.lacks_anything |= bool(entry.cursor)
            round_.progress |= queue.pending.blocked is not entry
            self._park(round_, entry, queue, assignment)
        if assignment.mode is not Mode.NO_FIT and queue.spec.preemption.reclaim_within_cohort != "Any":
            round_.claims.keep_room(tree, tree.queues[queue.name], assignment)

    def _now(self, round_: AdmissionRound) -> tuple[int, int]:
        """Return the state of the tree as far as it may help a loser."""
        return round_.built, self._state.versions.get(round_.root, 0)

    def _go_on(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, cursor: Cursor) -> None:
        """Note where the next search begins, and what the queue's holders were like then."""
        entry.cursor = cursor
        entry.cursor_of = (round_.built, self._state.generations.get(queue.name, 0), round_.number)

    def expire_cursor(self, round_: AdmissionRound, entry: Entry, queue: QueueModel) -> None:
        """Begin at the first flavor if a holder of the queue left or changed since, unless it was in the last round."""
        built, generation, number = entry.cursor_of
        changed = (built, generation) != (round_.built, self._state.generations.get(queue.name, 0))
        if changed and round_.number - number > 1:
            entry.search_anew()

    def _retry(self, round_: AdmissionRound, queue: QueueModel, entry: Entry) -> None:
        """Evaluate an entry again in the next round."""
        if self._state.room(queue).preempts:
            entry.spare(round_.admitted, ALL, self._state.outside_of(round_.root))
        if queue.pending.blocked is entry:
            queue.pending.unblock()
        round_.lost.append(queue)
        round_.progress = True

    def preempt(
        self, round_: AdmissionRound, entry: Entry, queue: QueueModel, plan: Plan, decisions: list[Decision]
    ) -> None:
        """Ask all targets to leave that were not asked before, and let the entry wait at the head of its queue."""
        state = self._state
        node = state.node(queue.name)
        for target in plan.targets:
            victim = target.entry
            round_.claims.victims[victim.uid] = target
            if state.holders.holds[victim.uid].evicted:
                continue
            asked = decision(entry, node, target)
            victim.evicted = victim.preempted = True
            victim.preempted_of = state.outside_of(round_.root)
            decisions.append(asked)
            round_.progress = True
            state.holders.note(victim)
            slices.look_again(state, victim)
            wakeups.preempted(state, round_.root, victim)
        text = texts.pending_preemption(plan.assignment.message, len(plan.targets))
        self.wait(round_, entry, queue, plan.assignment, text)

    def claim(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, plan: Plan) -> None:
        """Let an entry wait for its victims to end by themselves; no other counts on them in this round."""
        round_.claims.victims.update((one.entry.uid, one) for one in plan.targets)
        self.wait(round_, entry, queue, plan.assignment, None)

    def wait(
        self, round_: AdmissionRound, entry: Entry, queue: QueueModel, assignment: Assignment, text: str | None
    ) -> None:
        """Keep an entry at the head of its queue, and its room until the round ends, while others leave for it.

        Without a text nothing is said: nobody was asked to leave yet, and it is over in a moment.
        """
        state = self._state
        tree = state.ensure()
        round_.claims.keep(tree, tree.queues[queue.name], assignment.usage)
        round_.progress |= queue.pending.blocked is not entry
        continued = bool(entry.cursor)
        entry.search_anew()
        queue.pending.waits(entry)
        if continued and not round_.repeated and entry.restarted != self._now(round_):
            # Flavors before those may have room by now.
            entry.restarted = self._now(round_)
            self._retry(round_, queue, entry)
        if text is not None:
            state.tell(entry, (texts.WAITING_FOR_PREEMPTED, text))

    def lose(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, assignment: Assignment, text: str) -> None:
        """Leave an entry in its queue that an earlier entry of this round took the room or the victims from."""
        now = self._now(round_)
        if self._state.room(queue).preempts:
            entry.spare(round_.admitted, len(round_.admitted), self._state.outside_of(round_.root))
        if assignment.has_more_flavors and entry.goes_on(assignment.cursor, now):
            self._go_on(round_, entry, queue, assignment.cursor)
            entry.overtaken = round_.progress = True
        else:
            if entry.cursor and entry.restarted != now:  # fewer pods than then may do with an earlier flavor by now
                entry.restarted = now
                round_.progress = True
            entry.search_anew()
        round_.lost.append(queue)
        queue.pending.lost(entry)
        self._state.tell(entry, (texts.WAITING_FOR_QUOTA, text))

    def _park(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, assignment: Assignment) -> None:
        """Leave an entry (and its equals) until what it lacks is there."""
        state = self._state
        changed = state.releases.get(round_.root, 0) != round_.releases
        pending = queue.pending
        kept_room = pending.blocked is not entry and pending.keeps_room()
        one = pending.fail(entry, assignment, state.room(queue), changed=changed)
        if one is None:  # room came free while the round was cut
            entry.search_anew()
            self._retry(round_, queue, entry)
            return
        entry.search_anew()
        round_.parked = True
        round_.thinned |= not pending.strict
        if kept_room:  # another one heads the queue now, and the room of the one before it is free
            wakeups.wake_for_anything(state, round_.root)
        if one.fresh:
            state.bypassed[id(one)] = one
        state.tell(entry, (assignment.reason, assignment.message))
        state.offer(queue)

    def reserve(self, entry: Entry, queue: QueueModel, plan: Plan) -> Reserve:
        """Charge what is granted and describe the reservation that has to be written."""
        state = self._state
        if queue.pending.blocked is entry:
            queue.pending.unblock()  # the room that it kept is used now, not given back
        places.unqueue(state, entry)
        record = state.chains.record(entry.of_chain.chain) if entry.of_chain is not None else None
        found = reservation.outcome(plan, queue)
        entry.grant, entry.phase, entry.held_counts = found.grant, Phase.ASSUMED, None
        entry.search_anew()
        entry.evicted = entry.preempted = False
        entry.reserved_at = state.now + state.unix_offset
        if record is not None:
            slices.takes_place(state, entry, record)
        state.tell(entry, None)
        entry.told = None
        charging.settle(state, entry)
        replaces = record.uid if record is not None else ""
        return reservation.decision(entry, queue, found, state.now + state.unix_offset, replaces)
