"""The twin's door: feed it the same objects as the fast engine, wake what should be looked at again, run cycles.

One call of `cycle` is one scheduling cycle (2.4): one head of every active queue, nothing else. What Kueue's
controllers do between cycles (flush, eviction's end) is up to the caller, who calls `flush`, `wake` and `feed`.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field, replace

from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from support.twin import queues
from support.twin.entries import Entry, Round
from support.twin.flavors import PodSetResult
from support.twin.partial import assignment_and_targets
from support.twin.queues import TwinQueue
from support.twin.records import Granted, Snapshot, Work
from support.twin.slices import BEHIND, behind, family, merged, superseded
from support.twin.world import World, read_work

BYPASSED = "Bypassed scheduling evaluation because an equivalent workload recently failed"


@dataclass(slots=True)
class Outcome:
    """What one cycle did: heads evaluated, reservations in order, preemptions (victim -> reason, preemptor), texts."""

    heads: list[str] = field(default_factory=list)
    admitted: list[str] = field(default_factory=list)
    preempted: dict[str, tuple[str, str]] = field(default_factory=dict)
    told: dict[str, tuple[str, str]] = field(default_factory=dict)
    requeued: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Twin:
    """The reference engine."""

    world: World = field(default_factory=World)
    queues: dict[str, TwinQueue] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    """Cycles so far, by the name of the tree."""

    def copy(self) -> Twin:
        """Return a twin that goes its own way from here; the objects it was fed are shared."""
        works = {uid: replace(work, granted=list(work.granted)) for uid, work in self.world.works.items()}
        other = Twin(replace(self.world, works=works), {}, dict(self.generations), dict(self.cycles))
        for name, queue in self.queues.items():
            heap = {uid: works[uid] for uid in queue.heap}
            inadmissible = {uid: works[uid] for uid in queue.inadmissible}
            failed, bypassed = dict(queue.failed), dict(queue.bypassed)
            other.queues[name] = replace(queue, heap=heap, inadmissible=inadmissible, failed=failed, bypassed=bypassed)
        return other

    def standstill(self) -> object:
        """Return all that makes one cycle differ from the next as long as nothing happens."""
        return [
            (name, sorted((uid, sorted(work.cursor.items())) for uid, work in queue.heap.items()))
            for name, queue in sorted(self.queues.items())
        ]

    # -- structure -----------------------------------------------------------------------------------------------

    def feed(self, one: object, now: float) -> None:
        """Take note of an object of any kind; structure that changed flushes what it concerns (2.3, Triggers)."""
        world = self.world
        if isinstance(one, Workload):
            self._workload(one, now)
            return
        if isinstance(one, ClusterQueue):
            self._cluster_queue(one, now)
            return
        if isinstance(one, LocalQueue):  # not among the triggers: only its own workloads come or go
            world.local_queues[one.metadata.namespace, one.metadata.name] = one
            for work in world.works.values():
                self._place(work, now)
            return
        if isinstance(one, Cohort):
            world.cohorts[one.metadata.name] = one
        elif isinstance(one, ResourceFlavor):
            world.flavors[one.metadata.name] = one
        elif isinstance(one, AdmissionCheck):
            world.checks[one.metadata.name] = one
        else:
            raise TypeError(f"nothing feeds a {type(one).__name__}")
        self.restructured(set(world.cluster_queues), now)

    def _cluster_queue(self, one: ClusterQueue, now: float) -> None:
        """Take note of a ClusterQueue; a changed spec concerns the trees it was in and is in (2.3, Triggers)."""
        world, name = self.world, one.metadata.name
        known = world.cluster_queues.get(name)
        if known is not None and known.spec == one.spec:
            return
        before = {other for other in world.cluster_queues if known and world.root_name(other) == world.root_name(name)}
        world.cluster_queues[name] = one
        self.queues.setdefault(name, TwinQueue(name, "")).strategy = one.spec.queueing_strategy
        after = {other for other in world.cluster_queues if world.root_name(other) == world.root_name(name)}
        self.restructured(before | after, now)

    def restructured(self, concerned: set[str], now: float) -> None:
        """Settle after a change of structure: every workload to its queue; generations up and all flushed there."""
        for name in concerned:
            self.generations[name] = self.generations.get(name, 0) + 1
        for work in self.world.works.values():
            self._place(work, now)
        for name in concerned:
            self.flush(name, now)

    def queue_for(self, work: Work) -> str:
        """Return the ClusterQueue a waiting workload belongs in; empty if its LocalQueue is missing or stopped."""
        local = self.world.local_queues.get((work.namespace, work.local_queue))
        if local is None or local.spec.stop_policy in ("Hold", "HoldAndDrain"):
            return ""
        return local.spec.cluster_queue if local.spec.cluster_queue in self.world.cluster_queues else ""

    def _place(self, work: Work, now: float) -> None:
        """Put a workload where it belongs: admissible ones (1.4, IsAdmissible) in the queue of their LocalQueue."""
        admissible = work.active and not work.reserved and not work.finished
        target = self.queue_for(work) if admissible else ""
        if work.chain and behind(self.world, work, target):
            target = ""
        for queue in self.queues.values():
            if queue.name != target:
                queue.remove(work.uid)
        if target and work.uid not in {**self.queues[target].heap, **self.queues[target].inadmissible}:
            self.queues[target].push(work, now)

    def standing(self, work: Work) -> tuple[str, str] | None:
        """Return what the workload controller says of one that cannot be served (3.2), None if it can."""
        if not work.active:
            return "Deactivated", "The workload is deactivated"
        local = self.world.local_queues.get((work.namespace, work.local_queue))
        if local is None:
            return "Misconfigured", f"LocalQueue {work.local_queue} doesn't exist"
        if local.spec.stop_policy in ("Hold", "HoldAndDrain"):
            return "Suspended", f"LocalQueue {work.local_queue} is inactive"
        name = local.spec.cluster_queue
        if name not in self.world.cluster_queues:
            return "Misconfigured", f"ClusterQueue {name} doesn't exist"
        if not self.world.active(name):
            return "Suspended", f"ClusterQueue {name} is inactive"
        return BEHIND if work.chain and behind(self.world, work, name) else None

    # -- workloads -----------------------------------------------------------------------------------------------

    def _workload(self, workload: Workload, now: float) -> None:
        """Take note of a workload; one that frees quota raises the generation of its queue (2.2)."""
        work = read_work(workload, as_kueue=self.world.as_kueue)
        old = self.world.works.get(work.uid)
        if old is not None and old.reserved and not superseded(self.world, old):
            self.generations[old.queue] = self.generations.get(old.queue, 0) + 1
        if work.uid in self.world.slices:
            work.chain, work.number, work.by_parts = self.world.slices[work.uid]
            work.shape = f"{work.shape} {work.chain} {work.number}"
        if old is not None and not old.reserved and not work.reserved:
            # The cursor is carried over with the queue's record of the workload (2.5; 5.1, "cursor carry-over").
            work.cursor, work.cursor_generation = old.cursor, old.cursor_generation
            work.cursor_cycle, work.cursor_shape = old.cursor_cycle, old.cursor_shape
        if old is not None:
            work.unreachable = old.unreachable
        self.world.works[work.uid] = work
        for queue in self.queues.values():
            queue.heap.pop(work.uid, None)
            queue.inadmissible.pop(work.uid, None)
        self._place(work, now)
        self._place_chain(work, now)

    def _place_chain(self, work: Work, now: float) -> None:
        """Look again at what waits in a chain of which something has changed."""
        for one in family(self.world, work) if work.chain else ():
            if one is not work and not one.reserved:
                for queue in self.queues.values():
                    queue.heap.pop(one.uid, None)
                    queue.inadmissible.pop(one.uid, None)
                one.cursor = {}
                self._place(one, now)

    def remove(self, uid: str, now: float) -> None:
        """Forget a workload that is finished or deleted."""
        old = self.world.works.pop(uid, None)
        for queue in self.queues.values():
            queue.remove(uid)
        if old is not None and old.reserved:
            self.generations[old.queue] = self.generations.get(old.queue, 0) + 1
        if old is not None:
            self._place_chain(old, now)

    def reach(self, uid: str, now: float, *, unreachable: bool) -> None:
        """Take note that a workload cannot be stopped now, or can again; all that wait are looked at again."""
        work = self.world.works.get(uid)
        if work is None or work.unreachable is unreachable:
            return
        work.unreachable = unreachable
        if work.reserved and not superseded(self.world, work):
            self.restructured(set(self.world.cluster_queues), now)

    # -- waking --------------------------------------------------------------------------------------------------

    def flush(self, queue: str, now: float) -> None:
        """Flush the inadmissible workloads of all queues of the tree of `queue` (2.3)."""
        root = self.world.root_name(queue)
        for name, one in self.queues.items():
            if name in self.world.cluster_queues and self.world.root_name(name) == root:
                one.flush(lambda work, name=name: self.world.selects(name, work), now)  # type: ignore[misc]  # bound default

    def wake(self, uid: str) -> None:
        """Flush the class of one workload only."""
        work = self.world.works[uid]
        queue = self.queue_for(work)
        if queue:
            self.queues[queue].wake(work)

    # -- cycle ---------------------------------------------------------------------------------------------------

    def cycle(self, now: float, root: str | None = None, first: Container[str] | None = None) -> Outcome:
        """Run one scheduling cycle (2.4), of one tree only if `root` names it: trees do not touch each other.

        If `first` is given, heads that are not in it and cannot fit take no part in the order of entries.
        """
        for name in {self.world.root_name(queue) for queue in self.world.cluster_queues}:
            self.cycles[name] = self.cycles.get(name, 0) + (root in (None, name))
        outcome = Outcome()
        heads = self._heads(root)
        snapshot = self.world.snapshot(now)
        entries = [one for one in (self._nominate(work, queue, snapshot, outcome, now) for queue, work in heads) if one]
        outcome.heads = [work.uid for _, work in heads]
        last = [uid for uid in outcome.heads if first is not None and uid not in first]
        for entry in Round(snapshot).process_all(entries, last):
            self._conclude(entry, outcome, now)
        for uid in [*outcome.preempted, *outcome.admitted]:
            self._place_chain(self.world.works[uid], now)
        for uid, said in outcome.told.items():
            if said == BEHIND:
                self._place(self.world.works[uid], now)
        return outcome

    def _heads(self, root: str | None) -> list[tuple[TwinQueue, Work]]:
        """Pop one workload from every active queue (2.3, Heads), in name order (7)."""
        found = []
        for name in sorted(self.queues):
            if name not in self.world.cluster_queues or not self.world.active(name):
                continue
            if root in (None, self.world.root_name(name)):
                work = self.queues[name].pop()
                if work is not None:
                    found.append((self.queues[name], work))
        return found

    def _nominate(self, work: Work, queue: TwinQueue, snapshot: Snapshot, outcome: Outcome, now: float) -> Entry | None:
        """Nominate one head (2.4): obstacles first, first match wins, then assignment and targets."""
        if work.failed_checks:
            outcome.told[work.uid] = ("PendingEvaluation", "The workload has failed admission checks")
            self._requeue(queue, work, queues.GENERIC, outcome, now)
            return None
        if not self.world.selects(queue.name, work):
            text = "workload namespace doesn't match ClusterQueue selector"
            outcome.told[work.uid] = ("Misconfigured", text)
            self._requeue(queue, work, queues.NAMESPACE_MISMATCH, outcome, now)
            return None
        self._expire_cursor(work, queue.name)
        view = snapshot.queues[queue.name]
        assignment, targets = assignment_and_targets(snapshot, view, work, work.cursor)
        work.cursor, work.cursor_cycle = assignment.cursor, self.cycles[self.world.root_name(queue.name)]
        work.cursor_generation, work.cursor_shape = self.generations.get(queue.name, 0), work.shape
        return Entry(work, view, assignment, targets)

    def in_vain(self, work: Work, now: float) -> bool:
        """Return whether evaluating a workload now, from the first flavor, brings neither a fit nor targets."""
        if work.failed_checks or not self.world.selects(self.queue_for(work), work):
            return True
        snapshot = self.world.snapshot(now)
        assignment, targets = assignment_and_targets(snapshot, snapshot.queues[self.queue_for(work)], work, {})
        return assignment.mode() == "NoFit" or (assignment.mode() == "Preempt" and not targets)

    def _expire_cursor(self, work: Work, queue: str) -> None:
        """Throw the cursor away if the generation rose, but not a fresh one of the same class (2.5)."""
        fresh = self.cycles[self.world.root_name(queue)] - work.cursor_cycle <= 1 and work.cursor_shape == work.shape
        if self.generations.get(queue, 0) > work.cursor_generation and not fresh:
            work.cursor = {}

    def _requeue(self, queue: TwinQueue, work: Work, reason: str, outcome: Outcome, now: float) -> None:
        queue.requeue(work, reason, now)
        outcome.requeued[work.uid] = reason

    def _conclude(self, entry: Entry, outcome: Outcome, now: float) -> None:
        """Admit, or requeue with its text (2.4 step 6, 2.7 steps 10 and 11)."""
        work, queue = entry.work, self.queues[entry.view.name]
        if entry.admitted:
            self._admit(entry, now)
            outcome.admitted.append(work.uid)
            return
        if entry.preempting:
            for target in entry.targets:
                if not target.work.evicted:
                    target.work.evicted = True
                    outcome.preempted[target.work.uid] = (target.reason, work.uid)
        if not entry.keep_cursor:
            work.cursor = {}
        outcome.told[work.uid] = (entry.reason, entry.message)
        self._requeue(queue, work, entry.requeue, outcome, now)
        if entry.requeue in (queues.NO_FIT, queues.NO_CANDIDATES):
            for member in queue.condemn(work, entry.reason):
                outcome.told[member.uid] = (entry.reason, BYPASSED)

    def _admit(self, entry: Entry, now: float) -> None:
        """Assume the reservation at once (2.7 step 11); Admitted too if the flavors require no check (2.10)."""
        work, queue = entry.work, self.queues[entry.view.name]
        queue.inflight = None
        if queue.preemptor == work.uid:
            queue.preemptor = ""
        work.granted = [
            Granted(ps.name, {name: one.flavor for name, one in ps.choices.items()}, _used(ps), ps.count, ps.count)
            for ps in entry.assignment.pod_sets
        ]
        record, work.unwritten = work.record, bool(work.chain)
        if record is not None:
            work.granted = [merged((work.held or {}).get(one.name), one) for one in work.granted]
            self.generations[queue.name] = self.generations.get(queue.name, 0) + 1
            now = record.reserved_at
            work.unreachable = work.unreachable or record.unreachable
        work.queue, work.reserved, work.evicted, work.reserved_at = queue.name, True, False, now
        work.admitted = not self.required_checks(work)
        work.cursor = {}

    def required_checks(self, work: Work) -> list[str]:
        """Return the checks whose flavors intersect the assigned ones (2.10); a rule without flavors always counts."""
        strategy = self.world.cluster_queues[work.queue].spec.admission_checks_strategy
        assigned = {flavor for one in work.granted for flavor in one.flavors.values()}
        rules = strategy.admission_checks if strategy is not None else ()
        return sorted({rule.name for rule in rules if not rule.on_flavors or assigned & set(rule.on_flavors)})


def _used(ps: PodSetResult) -> dict[str, int]:
    return {name: ps.requests[name] for name in ps.choices}
