"""One scheduling cycle, and with it the way to read this package: start here.

How the parts fit
-----------------
`engine.Engine` is the door: `*_changed` / `*_removed` feed objects, `cycle(now, budget)` decides, and `forget`,
`release`, `set_usage`, `block`, `unblock` let the caller's ledger speak. Behind it:

    amounts    quantities <-> integers            requests   pod template -> what a pod requests
    model      values and decisions               entry      one Workload as kept here
    tree       quota of cohorts and queues        ledger     what each workload is charged
    flavors    which flavor, how well it fits     matching   taints, affinity, selectors
    ordering   order in a queue and in a round    pending    one queue: its head, what sleeps
    standings  where a waiting workload stands    waking     when it is evaluated again
    equals     equivalent workloads of a queue    rounds     one pass, as far as it has come
    watches    what each parked class lacks       postponed  postponed preemptions (`postponing` decides)
    kept_quota released, kept for a successor     checks     required AdmissionChecks
    queues     ClusterQueue and LocalQueue        preemption search for victims
    holders    index of what holds quota          faults     what raised, and is set aside
    nomination what is possible for a head (plan) claims     what a round has promised to others
    plain      demand without a choice of flavors reservation what is written of a reservation
    fairness   shares of queues and cohorts       tournament fair sharing's order among heads
    heads      heads that a round looks at        places     the queue that a workload belongs into
    stale      texts that may have grown old      retelling  brings them up to date
    outcomes   what becomes of a head             progress   a round, as far as it has come
    classes    order of what waits in a queue     charging   charges, and what they release
    chains     slices of elastic workloads       growth     what a slice asks for beside its chain's charge
    slices     they come, go and replace others
    known      all that is known                  statuses, explain, texts, validation   what people see

A cycle, as Kueue's, for one cohort tree at a time (trees do not influence each other):

1. take the head of every ready ClusterQueue of the tree;
2. nominate each: hard obstacles first (failed checks, namespace, limits), then flavor assignment against the tree,
   and if it does not fit as it is, who would have to leave;
3. order: less borrowing, higher priority, earlier, UID;
4. process one by one: what still fits is charged at once (*assumed*) and becomes a `Reserve`; what fits once others
   have left becomes a `Preempt` for each of them (where others end all the time: a moment later), waits at the head of
   its queue, and is charged until the end of the round; what lost to an earlier entry stays in its queue; what cannot
   fit is parked under what it lacks, and keeps room for itself in the cohort until the end of the round if its own
   quota is held by others (the reserve rule);
5. repeat until no queue of the tree has a head worth evaluating.

Nothing waits for I/O and nothing polls: the next cycle of a parked head comes when `charging` releases what it
lacked, or when the structure changes. `budget` bounds the work of one call; a round that is cut goes on in the next
call, and an entry that changed in between is left out of it.
"""

from __future__ import annotations

from typing import Final

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry, has_failed_checks
from gatelift_admission.entries.ordering import entry_key
from gatelift_admission.feed import faults, places, slices
from gatelift_admission.flavors.assignment import Assignment, Mode
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.rounds import postponing
from gatelift_admission.rounds.heads import heads_of
from gatelift_admission.rounds.nomination import Given, fitting, nominate
from gatelift_admission.rounds.outcomes import RoundOutcomes
from gatelift_admission.rounds.progress import AdmissionRound, Nominee, RoundsBegun, take_next
from gatelift_admission.state import wakeups
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Decision

SIMULATED_PER_STEP: Final = 20
"""Changes of usage in searches for victims that count as one more step of the budget: as long as a nomination without
a search takes. A search may make thousands, and whoever asked for decisions has events waiting behind them."""


class Cycle:
    """Runs rounds over `State`; keeps only the round that is under way."""

    __slots__ = ("_built", "_outcomes", "_round", "_rounds", "_seen", "_state", "nominations")

    def __init__(self, state: State) -> None:
        """Work on `state`, which the engine shares."""
        self._state = state
        self._outcomes = RoundOutcomes(state)
        self._round: AdmissionRound | None = None
        self._rounds: dict[str, int] = {}
        """Rounds so far by root; roots that are gone are forgotten when the tree is rebuilt."""
        self._seen: dict[str, RoundsBegun] = {}
        self._built = 0
        self.nominations = 0

    def busy(self) -> bool:
        """Return whether there is work that needs no further event."""
        return self._round is not None or bool(self._state.ready) or bool(self._state.wakes.turns)

    def run(self, budget: int, decisions: list[Decision]) -> None:
        """Decide until nothing is ready or `budget` steps (nominations, decisions, parts of searches) were made.

        What is decided is added to `decisions` at once.
        """
        left = budget
        if self._round is not None and self._round.built != self._state.built:
            self._round = None  # the tree was rebuilt: kept room is gone, and all queues were offered anew
        while left > 0 and self.busy():
            if self._round is None:
                if not self._state.ready and not wakeups.next_turn(self._state):
                    break
                self._round = self._open()
                if self._round is None:
                    continue
            left -= self._nominate(self._round, left)
            if not self._round.heads and not self._state.doubtful:
                left -= self._process(self._round, decisions, left)
            if self._state.doubtful:  # the tree is made anew, and all queues are offered anew
                self._round = None
                break
            if not self._round.heads and not self._round.nominees:
                self._close(self._round)
                self._round = None

    # -- a round ---------------------------------------------------------------------------------------------------

    def _open(self) -> AdmissionRound | None:
        """Take the heads of the next tree, and the blocked heads in it that keep room for themselves.

        None where there are none by now.
        """
        state = self._state
        root, names = state.ready.popitem(last=False)
        tree = state.ensure()
        if self._built != state.built:
            self._built = state.built
            self._rounds = {name: number for name, number in self._rounds.items() if name in tree.members}
            self._seen = {}
        self._rounds[root] = self._rounds.get(root, 0) + 1
        heads = heads_of(state, root, names)
        if state.doubtful:
            return None  # somebody was set aside: the tree is made anew first
        if not heads:
            self._tidy(root)
            return None
        version = state.versions.get(root, 0)
        opened = AdmissionRound(root, state.built, version, state.releases.get(root, 0), heads)
        opened.number = self._rounds[root]
        if root not in self._seen:
            self._seen[root] = RoundsBegun()
        opened.repeated = self._seen[root].again(version, heads)
        return opened

    def _nominate(self, round_: AdmissionRound, budget: int) -> int:
        done, tree = 0, self._state.ensure()
        begun = tree.simulated // SIMULATED_PER_STEP  # steps that searches for victims took so far
        while round_.heads and done + tree.simulated // SIMULATED_PER_STEP - begun < budget:
            entry, ticket, queue = round_.heads.pop()
            done += 1
            if entry.ticket != ticket or entry.queue != queue.name:
                continue
            self.nominations += 1
            try:
                self._find(round_, entry, ticket, queue)
            except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from his turn)
                faults.set_aside(self._state, entry, error)
                break
        return done + tree.simulated // SIMULATED_PER_STEP - begun

    def _find(self, round_: AdmissionRound, entry: Entry, ticket: int, queue: QueueModel) -> None:
        """Find what could be done for a head."""
        if self._obstacle(entry, queue):
            round_.progress = True
            return
        if entry.cursor:
            self._outcomes.expire_cursor(round_, entry, queue)
        plan = fitting(self._state, entry, queue)
        known = postponing.plan_of(self._state, entry, queue) if plan is None else None
        plan = plan or known or nominate(self._state, entry, queue, cursor=entry.cursor)
        round_.nominees.append(Nominee(entry, ticket, queue, plan, postponed=known is not None))

    def _obstacle(self, entry: Entry, queue: QueueModel) -> bool:
        """Set an entry aside that no quota can help, and say why; a StrictFIFO queue waits behind it.

        As in Kueue only who is in no namespace that the queue selects lets others pass there.
        """
        state = self._state
        passed = not queue.pending.strict
        if has_failed_checks(entry.workload):
            said = (texts.PENDING_EVALUATION, texts.CHECKS_FAILED)
        elif not state.selects(queue, entry.key.namespace):
            said, passed = (texts.MISCONFIGURED, texts.NAMESPACE_MISMATCH), True
        elif entry.obstacle:
            said = (texts.MISCONFIGURED, entry.obstacle)
        else:
            return False
        if passed:
            places.set_aside(state, entry, queue)
        else:
            queue.pending.bar(entry)
        state.tell(entry, said)
        state.offer(queue)
        return True

    def _process(self, round_: AdmissionRound, decisions: list[Decision], limit: int) -> int:
        """Process at most `limit` nominees and return how many; the list is reversed, the next one is its last."""
        if not round_.ordered and len(round_.nominees) > 1:
            round_.nominees.sort(
                key=lambda one: entry_key(
                    one.plan.assignment.borrowing, one.entry.priority, one.entry.timestamp, one.entry.uid
                ),
                reverse=True,
            )
        round_.ordered = True
        done, tree = 0, self._state.ensure()
        begun = tree.simulated // SIMULATED_PER_STEP
        while round_.nominees and done + tree.simulated // SIMULATED_PER_STEP - begun < limit:
            nominee = take_next(self._state, round_)
            if nominee.entry.ticket == nominee.ticket and nominee.entry.queue == nominee.queue.name:
                try:
                    self._look_at(round_, nominee, decisions)
                except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from his turn)
                    faults.take_back(nominee.entry)
                    faults.set_aside(self._state, nominee.entry, error)
                    break
            done += 1
        return done + tree.simulated // SIMULATED_PER_STEP - begun

    def _look_at(self, round_: AdmissionRound, nominee: Nominee, decisions: list[Decision]) -> None:
        """Keep the room of one that waits for others to end; decide on the others, also on one that has waited.

        The moment of one may have ended while the round was cut: then it has to be looked at anew, nothing wakes it.
        """
        entry, queue, plan = nominee.entry, nominee.queue, nominee.plan
        if entry.of_chain is not None and slices.is_late(self._state, entry, round_.claims.victims):
            self._state.review[entry.uid] = entry
            return
        if not plan.targets and plan.assignment.mode is Mode.FIT:
            self._let_in(round_, nominee, plan, decisions)  # nearly all: nothing else can be said of it
        elif not nominee.postponed:
            self._decide(round_, nominee, decisions)
        elif self._state.postponed.of(entry, self._state.now) is not None:
            self._outcomes.claim(round_, entry, queue, plan)
        else:
            self.nominations += 1
            self._decide(round_, Nominee(entry, nominee.ticket, queue, nominate(self._state, entry, queue)), decisions)

    def _decide(self, round_: AdmissionRound, nominee: Nominee, decisions: list[Decision]) -> None:
        state, entry, queue, plan = self._state, nominee.entry, nominee.queue, nominee.plan
        claims, tree = round_.claims, state.ensure()
        if self._somebody_left(plan):
            self._outcomes.lose(round_, entry, queue, plan.assignment, texts.LOST_TO_ANOTHER)
            round_.progress = True
            return
        deferred = again = claims.overlap(plan.targets)
        came_free = bool(plan.targets) and self._came_free(round_, queue, plan.assignment)
        if came_free and not again:
            self.nominations += 1
            plan = nominate(state, entry, queue)
        if plan.targets and not (came_free and again) and postponing.may_wait(state, entry, queue, plan):
            self._outcomes.claim(round_, entry, queue, plan)
            return
        if again:
            plan, deferred = self._again(round_, entry, queue, plan.assignment)
        assignment = plan.assignment
        if again:
            assignment.forget_cursor()
            assignment.lacks_anything = True  # the flavors that it was not pinned to may do as well
        if assignment.mode is Mode.NO_FIT or (assignment.mode is not Mode.FIT and not plan.targets):
            self._outcomes.cannot(round_, entry, queue, assignment)
        elif deferred:
            self._outcomes.wait(round_, entry, queue, assignment, texts.DEFERRED)
        elif claims.overlap(plan.targets):
            self._outcomes.lose(round_, entry, queue, assignment, texts.OVERLAPPING)
        elif assignment.mode is Mode.FIT:
            self._let_in(round_, nominee, plan, decisions)
        elif not claims.fits(tree, tree.queues[queue.name], assignment.usage, plan.targets):
            self._outcomes.lose(round_, entry, queue, assignment, texts.LOST_TO_ANOTHER)
        else:
            self._outcomes.preempt(round_, entry, queue, plan, decisions)

    def _let_in(self, round_: AdmissionRound, nominee: Nominee, plan: Plan, decisions: list[Decision]) -> None:
        """Reserve what fits, unless others of the round have taken it."""
        entry, queue, tree = nominee.entry, nominee.queue, self._state.ensure()
        if round_.claims.fits(tree, tree.queues[queue.name], plan.assignment.usage, plan.targets):
            decisions.append(self._outcomes.reserve(entry, queue, plan))
            round_.progress = True
            round_.admitted[entry.uid] = len(round_.admitted)
        else:
            self._outcomes.lose(round_, entry, queue, plan.assignment, texts.LOST_TO_ANOTHER)

    def _somebody_left(self, plan: Plan) -> bool:
        """Return whether one of the victims has left while the round was cut."""
        return any(one.entry.uid not in self._state.holders.holds for one in plan.targets)

    def _came_free(self, round_: AdmissionRound, queue: QueueModel, assignment: Assignment) -> bool:
        """Return whether no victim is needed any more, because room came free while the round was cut."""
        tree = self._state.ensure()
        released = self._state.releases.get(round_.root, 0) != round_.releases
        return released and tree.fits(tree.queues[queue.name], assignment.usage)

    def _again(self, round_: AdmissionRound, entry: Entry, queue: QueueModel, before: Assignment) -> tuple[Plan, bool]:
        """Nominate with the same flavors as if all claimed victims were gone; True: then it fits, later."""
        claims, tree = round_.claims, self._state.ensure()
        entry.cursor = ()
        self.nominations += 1
        mark = claims.without_victims(tree)
        claimed = frozenset((*round_.admitted, *claims.victims))
        plan = nominate(self._state, entry, queue, given=Given(claimed, before.pins))
        tree.undo(mark)
        return plan, plan.assignment.mode is Mode.FIT

    def _close(self, round_: AdmissionRound) -> None:
        """Give back the room that was only kept, and offer the queues again that may have a head."""
        state = self._state
        tree = state.ensure()
        kept = round_.claims.give_back(tree)
        released = state.releases.get(round_.root, 0) != round_.releases
        if kept and (round_.parked or released):  # who was parked in it was evaluated without: not looked at again
            wakeups.resettle(state, round_.root, kept, wake=state.versions.get(round_.root, 0) != round_.version)
        if round_.admitted:
            self._look_at_waiting(round_.root)
        round_.progress |= state.versions.get(round_.root, 0) != round_.version
        in_vain = (
            round_.repeated
            and not (round_.thinned or round_.anew)
            and state.versions.get(round_.root, 0) == round_.version
        )
        for queue in round_.lost:
            if round_.progress and not in_vain:
                state.offer(queue)
            else:
                state.ready.get(round_.root, {}).pop(queue.name, None)
                state.stalled.setdefault(round_.root, {})[queue.name] = None
        self._tidy(round_.root)

    def _tidy(self, root: str) -> None:
        """Forget a tree of which no queue is ready."""
        ready = self._state.ready
        if not ready.get(root, True):
            del ready[root]

    def _look_at_waiting(self, root: str) -> None:
        """Offer heads again that wait for victims to leave: one admitted in this round may be one more to choose."""
        state = self._state
        for queue, _, room in state.members.get(root, ()):
            blocked = queue.pending.blocked
            if blocked is None or state.postponed.of(blocked, state.now) is not None:
                continue  # nobody chooses, or not yet
            if room.preempts and queue.pending.may_choose_anew():
                queue.pending.unblock()
                state.offer(queue)
