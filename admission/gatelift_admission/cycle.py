"""One scheduling cycle, and with it the way to read this package: start here.

How the parts fit
-----------------
`engine.Engine` is the door: `*_changed` / `*_removed` feed objects, `cycle(now, budget)` decides, and `forget`,
`release`, `set_usage`, `block`, `unblock` let the caller's ledger speak. Behind it:

    amounts    quantities <-> integers            requests   pod template -> what a pod requests
    model      values and decisions               entry      one Workload as kept here
    tree       quota of cohorts and queues        ledger     what each workload is charged
    flavors    which flavor, how well it fits     matching   taints, affinity, selectors
    ordering   who goes first                     pending    one queue: classes, head, wake-up index
    queues     ClusterQueue and LocalQueue        checks     required AdmissionChecks
    state      all that is known                  statuses, explain, texts, validation   what people see

A cycle, as Kueue's, for one cohort tree at a time (trees do not influence each other):

1. take the head of every ready ClusterQueue of the tree;
2. nominate each: hard obstacles first (failed checks, namespace, limits), then flavor assignment against the tree;
3. order: less borrowing, higher priority, earlier, UID;
4. process one by one: what still fits is charged at once (*assumed*) and becomes a `Reserve`; what lost to an
   earlier entry stays in its queue; what cannot fit is parked under what it lacks, and keeps room for itself in the
   cohort until the end of the round if its own quota is held by others (Kueue's reserve rule);
5. repeat until no queue of the tree has a head worth evaluating.

Nothing waits for I/O and nothing polls: the next cycle of a parked head comes when `state.released` finds what it
lacked, or when the structure changes. `budget` bounds the work of one call; a round that is cut goes on in the next
call, and an entry that changed in between is left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from gatelift_admission import amounts, checks, texts
from gatelift_admission.entry import Entry, Phase, has_failed_checks
from gatelift_admission.flavors import AssignedPodSet, Assignment, Mode, assign
from gatelift_admission.model import Decision, GrantedPodSet, Reserve, Usage
from gatelift_admission.ordering import entry_key, waiting_since
from gatelift_admission.queues import QueueModel
from gatelift_admission.state import State
from gatelift_kube.objects.kueue import Admission, PodSetAssignment


@dataclass(slots=True)
class Nominee:
    """A head and what was found for it; `ticket` tells whether it still stands where it stood."""

    entry: Entry
    ticket: int
    queue: QueueModel
    assignment: Assignment


@dataclass(slots=True)
class Round:
    """One pass over the heads of one tree, possibly spread over several calls."""

    root: str
    built: int
    version: int
    heads: list[tuple[Entry, int, QueueModel]]
    nominees: list[Nominee] = field(default_factory=list)
    ordered: bool = False
    reserved: list[tuple[str, Usage]] = field(default_factory=list)
    lost: list[QueueModel] = field(default_factory=list)
    progress: bool = False


class Cycle:
    """Runs rounds over `State`; keeps only the round that is under way."""

    __slots__ = ("_round", "_state", "nominations")

    def __init__(self, state: State) -> None:
        """Work on `state`, which the engine shares."""
        self._state = state
        self._round: Round | None = None
        self.nominations = 0

    def busy(self) -> bool:
        """Return whether there is work that needs no further event."""
        return self._round is not None or bool(self._state.ready)

    def run(self, budget: int) -> list[Decision]:
        """Decide until nothing is ready or `budget` steps (nominations and decisions) were made."""
        decisions: list[Decision] = []
        left = budget
        if self._round is not None and self._round.built != self._state.built:
            self._round = None  # the tree was rebuilt: kept room is gone, and all queues were offered anew
        while left > 0 and self.busy():
            if self._round is None:
                self._round = self._open()
            left -= self._nominate(self._round, left)
            if not self._round.heads:
                left -= self._process(self._round, decisions, left)
            if not self._round.heads and not self._round.nominees:
                self._close(self._round)
                self._round = None
        return decisions

    # -- a round ---------------------------------------------------------------------------------------------------

    def _open(self) -> Round:
        """Take the heads of the next tree, and the blocked heads in it that keep room for themselves."""
        state = self._state
        root, names = state.ready.popitem(last=False)
        tree = state.ensure()
        heads = []
        for node in tree.members.get(root, ()):
            queue = state.queues[node.name]
            pending = queue.pending
            entry = pending.next_head(partial(tree.free, node)) if node.name in names else None
            if entry is None and pending.blocked_reserves:
                entry = pending.blocked
            if entry is not None and queue.admits:
                heads.append((entry, entry.ticket, queue))
        return Round(root, state.built, state.versions.get(root, 0), heads)

    def _nominate(self, round_: Round, budget: int) -> int:
        done = 0
        while round_.heads and done < budget:
            entry, ticket, queue = round_.heads.pop()
            done += 1
            if entry.ticket != ticket or entry.queue != queue.name:
                continue
            self.nominations += 1
            if self._obstacle(entry, queue):
                round_.progress = True
                continue
            assignment = assign(self._state.market(queue), entry.pod_sets, entry.cursor)
            round_.nominees.append(Nominee(entry, ticket, queue, assignment))
        return done

    def _obstacle(self, entry: Entry, queue: QueueModel) -> bool:
        """Set an entry aside that no quota can help, and say why."""
        state = self._state
        if has_failed_checks(entry.workload):
            said = (texts.PENDING_EVALUATION, texts.CHECKS_FAILED)
        elif not state.selects(queue, entry.key.namespace):
            said = (texts.MISCONFIGURED, texts.NAMESPACE_MISMATCH)
        elif entry.obstacle:
            said = (texts.MISCONFIGURED, entry.obstacle)
        else:
            return False
        state.aside(entry, queue)
        state.tell(entry, said)
        state.offer(queue)
        return True

    def _process(self, round_: Round, decisions: list[Decision], limit: int) -> int:
        """Process at most `limit` nominees and return how many; the list is reversed, the next one is its last."""
        if not round_.ordered:
            round_.nominees.sort(
                key=lambda one: entry_key(
                    one.assignment.borrowing, one.entry.priority, one.entry.timestamp, one.entry.uid
                ),
                reverse=True,
            )
            round_.ordered = True
        done = 0
        while round_.nominees and done < limit:
            nominee = round_.nominees.pop()
            if nominee.entry.ticket == nominee.ticket and nominee.entry.queue == nominee.queue.name:
                self._decide(round_, nominee, decisions)
            done += 1
        return done

    def _decide(self, round_: Round, nominee: Nominee, decisions: list[Decision]) -> None:
        state = self._state
        entry, queue, assignment = nominee.entry, nominee.queue, nominee.assignment
        tree = state.ensure()
        node = tree.queues[queue.name]
        if assignment.mode is Mode.FIT:
            if tree.fits(node, assignment.usage):
                decisions.append(self._reserve(entry, queue, assignment))
                round_.progress = True
            else:
                self._lose(round_, entry, queue, assignment)
            return
        if entry.cursor:  # only the flavors behind the cursor were tried: once more, from the first
            entry.cursor = ()
            round_.lost.append(queue)
            round_.progress = True
            return
        round_.progress |= queue.pending.blocked is not entry
        self._park(round_, entry, queue, assignment)
        if assignment.mode is not Mode.NO_FIT and queue.spec.preemption.reclaim_within_cohort != "Any":
            self._keep_room(round_, queue, assignment)

    def _lose(self, round_: Round, entry: Entry, queue: QueueModel, assignment: Assignment) -> None:
        """Leave an entry in its queue that an earlier entry of this round took the room from."""
        entry.cursor = assignment.cursor if assignment.has_more_flavors else ()
        round_.progress |= assignment.has_more_flavors
        round_.lost.append(queue)
        self._state.tell(entry, (texts.WAITING_FOR_QUOTA, texts.LOST_TO_ANOTHER))

    def _park(self, round_: Round, entry: Entry, queue: QueueModel, assignment: Assignment) -> None:
        """Leave an entry (and its equals) until what it lacks is there."""
        state = self._state
        one = queue.pending.fail(entry, assignment, lambda cell: state.free(queue.name, cell))
        if one is None:  # room came free while the round was cut
            round_.lost.append(queue)
            round_.progress = True
            return
        queue.pending.blocked_reserves = queue.pending.strict and assignment.mode is not Mode.NO_FIT
        if one.fresh:
            state.bypassed[id(one)] = one
        state.tell(entry, (assignment.reason, assignment.message))
        state.offer(queue)

    def _keep_room(self, round_: Round, queue: QueueModel, assignment: Assignment) -> None:
        """Charge, until the round ends, what a head may claim of its own quota that others hold (reserve rule)."""
        tree = self._state.ensure()
        node = tree.queues[queue.name]
        if node.parent is None:
            return
        room: Usage = {}
        for cell, amount in assignment.usage.items():
            used, nominal, limit = node.usage.get(cell, 0), node.nominal(cell), node.borrowing_limit(cell)
            if assignment.borrowing == 0:
                room[cell] = max(0, min(amount, amounts.sub(nominal, used)))
            elif limit is None:
                room[cell] = amount
            else:
                room[cell] = max(0, min(amount, amounts.sub(amounts.add(nominal, limit), used)))
        tree.add_usage(node, room)
        round_.reserved.append((queue.name, room))

    def _reserve(self, entry: Entry, queue: QueueModel, assignment: Assignment) -> Reserve:
        """Charge the assignment and describe the reservation that has to be written."""
        state = self._state
        state.unqueue(entry)
        entry.granted = tuple(
            GrantedPodSet(
                name=one.name,
                flavors=one.flavors,
                usage={name: one.requests[name] for name in one.flavors},
                count=one.count,
            )
            for one in assignment.pod_sets
        )
        entry.granted_queue, entry.phase, entry.held_counts = queue.name, Phase.ASSUMED, None
        entry.cursor = ()
        state.tell(entry, None)
        entry.told = None
        state.settle(entry)
        state.offer(queue)
        wait = max(0.0, state.now + state.unix_offset - waiting_since(entry.workload))
        considered = assignment.considered
        return Reserve(
            uid=entry.uid,
            key=entry.key,
            admission=Admission(queue.name, tuple(_written(one) for one in assignment.pod_sets)),
            checks=checks.required(
                queue.spec, (flavor for one in assignment.pod_sets for flavor in one.flavors.values())
            ),
            wait_seconds=wait,
            flavors_considered=considered,
            message=texts.quota_reserved(queue.name),
            event=texts.quota_reserved_event(queue.name, wait, considered),
        )

    def _close(self, round_: Round) -> None:
        """Give back the room that was only kept, and offer the queues again that may have a head."""
        state = self._state
        tree = state.ensure()
        for name, room in round_.reserved:
            tree.remove_usage(tree.queues[name], room)
        state.resettle(round_.root, {cell for _, room in round_.reserved for cell in room})
        round_.progress |= state.versions.get(round_.root, 0) != round_.version
        for queue in round_.lost:
            if round_.progress:
                state.offer(queue)
            else:
                state.ready.get(round_.root, {}).pop(queue.name, None)
                state.stalled.setdefault(round_.root, {})[queue.name] = None
        if not state.ready.get(round_.root, True):
            del state.ready[round_.root]


def _written(one: AssignedPodSet) -> PodSetAssignment:
    return PodSetAssignment(
        name=one.name,
        flavors=one.flavors,
        resource_usage={name: amounts.to_text(one.requests[name], name) for name in one.flavors},
        count=one.count,
    )
