"""The door of the admission engine: feed it objects, let it decide, tell it what became of its decisions.

Contract with the caller
------------------------
* Pure and single-threaded; `now` is monotonic seconds. `wall_clock` relates it to the timestamps of API objects.
* Feed all objects of all kinds first, then call `cycle`: a workload whose LocalQueue was not fed yet would be told
  that it does not exist. The order of feeding does not matter; feeding an unchanged object does nothing.
* `cycle` charges what it reserves at once. Write each `Reserve`; feed the written object by `workload_changed`, or
  call `forget` if the write failed for good. Objects older than the newest seen of a UID are ignored.
* What a workload is charged follows its object (granted less reclaimable pods, until QuotaReserved goes or Finished
  comes) unless the ledger speaks: `set_usage` and `release` hold until the next reservation of that workload. A
  restart that feeds the objects again rebuilds the same charges.
* `set_unreachable` says who cannot be stopped now: it is not preempted until it can.
* `block` keeps a workload out of the queues (say: its last placement is not fenced yet) until `unblock`.
* Call `cycle` again at once while its result says `more`, and whenever `next_deadline` has come: after a feed that
  gives it something to do that is at once. A call before that does nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from gatelift_admission.demand.grants import NOTHING
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.standings import FAULTY
from gatelift_admission.feed import faults, ghosts, intake, places, slices, structure
from gatelift_admission.rounds import postponing
from gatelift_admission.rounds.cycle import Cycle
from gatelift_admission.state import charging
from gatelift_admission.state.known import State
from gatelift_admission.told import explain, retelling
from gatelift_admission.told.answers import EngineAnswers
from gatelift_admission.told.explain import Position
from gatelift_admission.told.telling import bypass, overdue, stop_of, tell_all
from gatelift_admission.values.model import CycleResult, Decision, ElasticSlice, EngineSettings
from gatelift_kube.objects.core import LimitRange, RuntimeClass
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Workload,
)
from gatelift_kube.values.resources import ObjectKey

BUDGET_HEADS: Final = 200
"""Steps per call by default: nominations and decisions take about 40 us each, so a call stays below 20 ms."""
REVIEWS_PER_HEAD: Final = 2
"""Reviews of changed workloads per step; one takes about 25 us."""
POSITIONS_MAX: Final = 1000
"""Positions per answer by default: what a person can look at, a few milliseconds to gather."""


def is_compiled() -> bool:
    """Return whether the engine runs as native code (`scripts/compile_engine.py`), as it does in the image."""
    return not inspect.isfunction(Cycle.run)


class Engine(EngineAnswers):
    """The admission engine. What it is asked and answers without any change is its base."""

    __slots__ = ("_cycle", "_decisions")

    def __init__(self, settings: EngineSettings | None = None) -> None:
        """Start with nothing known."""
        super().__init__(State(settings=settings or EngineSettings()))
        self.state.holders.by_creation = self.state.settings.by_creation
        self.state.holders.priority_boost = self.state.settings.priority_boost
        self._cycle = Cycle(self.state)
        self._decisions: list[Decision] = []
        """What was decided and is not said yet."""

    def wall_clock(self, unix_seconds: float, now: float) -> None:
        """Relate `now` to Unix time, for backoff times and waits counted from API timestamps."""
        self.state.unix_offset = unix_seconds - now

    # -- structure -------------------------------------------------------------------------------------------------

    def cluster_queue_changed(self, queue: ClusterQueue) -> None:
        """Take note of a ClusterQueue; one with a quota that is no quantity is inactive and says so."""
        structure.cluster_queue_changed(self.state, queue)

    def cluster_queue_removed(self, name: str) -> None:
        """Forget a ClusterQueue; its workloads stay charged to its name."""
        structure.cluster_queue_removed(self.state, name)

    def local_queue_changed(self, queue: LocalQueue) -> None:
        """Take note of a LocalQueue."""
        structure.local_queue_changed(self.state, queue)

    def local_queue_removed(self, key: ObjectKey) -> None:
        """Forget a LocalQueue; its waiting workloads leave their ClusterQueue."""
        structure.local_queue_removed(self.state, key)

    def flavor_changed(self, flavor: ResourceFlavor) -> None:
        """Take note of a ResourceFlavor."""
        known = self.state.flavors.get(flavor.metadata.name)
        if known is None or known.spec != flavor.spec:
            self.state.restructure()
        self.state.flavors[flavor.metadata.name] = flavor

    def flavor_removed(self, name: str) -> None:
        """Forget a ResourceFlavor; queues that refer to it turn inactive."""
        if self.state.flavors.pop(name, None) is not None:
            self.state.restructure()

    def cohort_changed(self, cohort: Cohort) -> None:
        """Take note of a Cohort; one with a quota that is no quantity brings none."""
        structure.cohort_changed(self.state, cohort)

    def cohort_removed(self, name: str) -> None:
        """Forget a Cohort: it loses its quota and its parent, its members stay together."""
        if self.state.cohorts.pop(name, None) is not None:
            self.state.restructure()

    def admission_check_changed(self, check: AdmissionCheck) -> None:
        """Take note of an AdmissionCheck."""
        known = self.state.checks.get(check.metadata.name)
        if known is None or (known.spec, known.status) != (check.spec, check.status):
            self.state.restructure()
        self.state.checks[check.metadata.name] = check

    def admission_check_removed(self, name: str) -> None:
        """Forget an AdmissionCheck; queues that refer to it turn inactive."""
        if self.state.checks.pop(name, None) is not None:
            self.state.restructure()

    def namespace_changed(self, name: str, labels: Mapping[str, str]) -> None:
        """Take note of a namespace's labels."""
        if self.state.namespaces.get(name) != labels:
            structure.review_namespace(self.state, name)
            self.state.namespaces[name] = dict(labels)

    def namespace_removed(self, name: str) -> None:
        """Forget a namespace: no ClusterQueue selects it any more."""
        self.state.namespaces.pop(name, None)

    def limit_range_changed(self, limit_range: LimitRange) -> None:
        """Take note of a LimitRange, whose defaults count for pods that wait in its namespace."""
        key = ObjectKey(limit_range.metadata.namespace, limit_range.metadata.name)
        self.state.limit_ranges[key] = limit_range
        structure.defaults_changed(self.state, key.namespace)

    def limit_range_removed(self, key: ObjectKey) -> None:
        """Forget a LimitRange."""
        if self.state.limit_ranges.pop(key, None) is not None:
            structure.defaults_changed(self.state, key.namespace)

    def runtime_class_changed(self, runtime_class: RuntimeClass) -> None:
        """Take note of a RuntimeClass, whose overhead counts for pods that name it."""
        self.state.runtime_classes[runtime_class.metadata.name] = runtime_class
        structure.defaults_changed(self.state, None)

    def runtime_class_removed(self, name: str) -> None:
        """Forget a RuntimeClass."""
        if self.state.runtime_classes.pop(name, None) is not None:
            structure.defaults_changed(self.state, None)

    # -- workloads -------------------------------------------------------------------------------------------------

    def workload_changed(self, workload: Workload, now: float) -> None:
        """Take note of a Workload: pending, reserved, admitted or finished, as its object says.

        If that raises it is set aside, and charged what its object says to be reserved (`CycleResult.faults`); the same
        version fed again is taken in whole. What is raised all the same is of no use to anybody: nothing may be decided
        before a version has been taken.
        """
        state, before = self.state, None
        if workload.status.reclaimable_pods and not state.settings.reclaimable_pods:
            workload = structs.replace(workload, status=structs.replace(workload.status, reclaimable_pods=()))
        entry: Entry | None = state.entries.get(workload.metadata.uid)
        try:
            before = faults.ChargeBefore(entry) if entry is not None else None
            intake.workload_changed(state, workload, now)
        except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else's from being charged)
            faults.not_taken(state, workload, before, error)

    def workload_removed(self, uid: str) -> None:
        """Forget a Workload whose object is gone; whatever it was charged is released."""
        entry: Entry | None = self.state.entries.get(uid)
        try:
            intake.workload_removed(self.state, uid)
        except Exception as error:
            if entry is None:
                raise
            faults.not_removed(self.state, entry, error)

    def forget(self, uid: str) -> None:
        """Undo a reservation that could not be written: its charge goes, and it stands where it stood."""
        entry = self.state.entries.get(uid)
        if entry is not None and entry.phase is Phase.ASSUMED:
            with faults.EntryBoundary(self.state, entry):
                entry.phase = Phase.PENDING
                if not (entry.runs and ghosts.goes_on(self.state, entry)):
                    entry.grant = NOTHING
                charging.settle(self.state, entry)
                self.state.review[uid] = entry

    def set_usage(self, uid: str, counts: Mapping[str, int]) -> None:
        """Charge `counts` pods per granted pod set from now on, whatever the object says; others count zero.

        For reclaimed, drained and scaled pods. Counts above the granted are the granted; below zero are zero.
        """
        entry = self.state.entries.get(uid)
        if entry is not None and entry.grant.pod_sets:
            try:
                entry.held_counts = dict(counts)
                charging.settle(self.state, entry)
            except Exception as error:  # noqa: BLE001 (containment, as in `faults.EntryBoundary`, for each one that ends)
                faults.set_aside(self.state, entry, error)

    def release(self, uid: str, now: float = 0.0) -> None:
        """Charge nothing more for the present reservation, whatever the object says; twice is as good as once.

        What comes free is kept for a while from `now` on, at least from the latest time that the engine was told.
        What runs beside it stays charged (`set_ghost`): that is no charge of a reservation.
        """
        self.state.now = max(self.state.now, now)
        entry = self.state.entries.get(uid)
        if entry is not None and not entry.runs:
            self.set_usage(uid, {})

    def set_slice(self, uid: str, said: ElasticSlice | None) -> None:
        """Say which slice of an elastic workload this one is, before or after it is fed; None for none (any more).

        Of a chain one slice is charged (`charges.chains`); whoever takes its place takes the charge over in the same
        call, so that it is never double and never none. See `Reserve.replaces`.
        """
        slices.set_slice(self.state, uid, said)

    def set_ghost(self, uid: str, *, runs: bool, queue: str = "") -> None:
        """Say that a workload runs beside what its object shows, or that nothing of that does any more.

        Where the object shows no reservation, or no more, it is charged all that it asks for: where and in the flavors
        in which it was charged before, else in the first flavor of each resource of the ClusterQueue `queue`, if the
        caller remembers that, or of that of its LocalQueue now. Where that is not there, it is kept free everywhere
        (`is_adrift`). Nothing is granted to it until that is over (HD-251).
        """
        entry = self.state.entries.get(uid)
        if entry is None:
            return
        with faults.EntryBoundary(self.state, entry):
            if runs:
                ghosts.hold(self.state, entry, queue)
            else:
                ghosts.let_go(self.state, entry)

    def block(self, uid: str) -> None:
        """Keep a workload from being admitted until `unblock`: it counts as waiting, as one whose backoff is not over.

        Its charge is not touched.
        """
        self._set_blocked(uid, blocked=True)

    def unblock(self, uid: str) -> None:
        """Let a workload be admitted again."""
        self._set_blocked(uid, blocked=False)

    def set_unreachable(self, uid: str, *, unreachable: bool) -> None:
        """Say that a workload cannot be stopped now (its cluster is lost), or that it can again.

        It stays charged. Nobody asks it to leave, and who could only run in its place says so; all are looked at again
        when this changes.
        """
        known = self.state.unreachable
        if (uid in known) is unreachable:
            return
        if unreachable:
            known.add(uid)
        else:
            known.discard(uid)
        entry = self.state.entries.get(uid)
        if entry is not None and entry.charged_queue:
            self.state.restructure()

    def _set_blocked(self, uid: str, *, blocked: bool) -> None:
        entry = self.state.entries.get(uid)
        if entry is not None and entry.on_hold is not blocked:
            entry.on_hold = blocked
            if blocked:
                with faults.EntryBoundary(self.state, entry):
                    places.unqueue(self.state, entry)
            self.state.review[uid] = entry

    # -- decisions -------------------------------------------------------------------------------------------------

    def cycle(self, now: float, budget_heads: int = BUDGET_HEADS) -> CycleResult:
        """Decide what can be decided now, with at most `budget_heads` steps (nominations, decisions) and texts.

        What raises because of one workload sets that one aside. What raises otherwise is the caller's: nothing that was
        decided is lost by it, the next call that comes to its end says it.
        """
        state = self.state
        state.now = max(state.now, now)
        before = self._cycle.nominations
        try:
            self._decide(budget_heads)
        except Exception:
            state.distrust()
            raise
        more = bool(state.review or state.untold or state.bypassed) or self._cycle.busy()
        failed, state.faults = tuple(state.faults), []
        decided, self._decisions = tuple(self._decisions), []
        done = self._cycle.nominations - before
        return CycleResult(decisions=decided, faults=failed, more=more or bool(failed), nominations=done)

    def _decide(self, budget: int) -> None:
        state, decisions = self.state, self._decisions
        state.ensure()
        places.expire_backoffs(state)
        postponing.end(state)
        state.wakes.expire(state.now, state.settings)
        for _ in range(min(len(state.review), budget * REVIEWS_PER_HEAD)):
            _, entry = state.review.popitem(last=False)
            try:
                if entry.standing is not FAULTY:
                    places.place(state, entry)
                stop = stop_of(state, entry)
            except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from being decided on)
                faults.set_aside(state, entry, error)
                continue
            if stop is not None:
                decisions.append(stop)
        if not state.review:
            self._cycle.run(budget, decisions)
        if not state.review and not state.doubtful and not self._cycle.busy():
            retelling.retell(state)
        bypass(state, budget)
        overdue(state, budget)
        tell_all(state, budget, decisions)

    def set_aside(self, uid: str, error: Exception) -> None:
        """Keep a workload out whose decision could not be taken over, until `look_again` or until it changes."""
        entry = self.state.entries.get(uid)
        if entry is not None and entry.standing is not FAULTY:
            faults.keep_out(self.state, entry, error)

    def look_again(self, uid: str) -> None:
        """Take a workload in anew that was set aside (`CycleResult.faults`), and let it have its turn again."""
        entry = self.state.entries.get(uid)
        if entry is not None and entry.standing is FAULTY:
            self.workload_changed(entry.workload, self.state.now)
            known = self.state.entries.get(uid)
            if known is not None and known.runs and known.standing is not FAULTY:
                self.set_ghost(uid, runs=True)

    def next_deadline(self) -> float | None:
        """Return the time at which `cycle` has something to do without a further event, None for never."""
        state = self.state
        if state.outdated or state.review or state.untold or state.bypassed or self._cycle.busy():
            return state.now
        due: float | None = None
        for heap in (state.backoffs, state.unevaluated):
            if heap and (due is None or heap[0][0] < due):
                due = heap[0][0]
        texts = state.stale.next_time(state.settings.text_refresh)
        for other in (state.wakes.next_time(), state.postponed.next_time(), texts):
            if other is not None and (due is None or other < due):
                due = other
        return due

    def is_due(self, now: float) -> bool:
        """Say whether `cycle` has something to do now."""
        due = self.next_deadline()
        return due is not None and due <= now

    # -- what is known ---------------------------------------------------------------------------------------------

    def recall(self) -> list[str]:
        """Take from the ClusterQueues where else they were charged: once, when all objects were fed.

        Returns the names of those in which something is held and that are not there.
        """
        state = self.state
        state.debts.recall_begins()
        queues = {name: queue.object for name, queue in state.queues.items()}
        state.debts.recall(state.ensure(), queues, state.holders)
        state.restructure()
        return sorted(name for name, one in state.ledger.queues.items() if one.reserved_usage and name not in queues)

    def take_changed(self) -> tuple[list[str], list[ObjectKey]]:
        """Return the ClusterQueues and LocalQueues whose figures may have changed since this was asked last.

        By what happened to workloads, that is; who changes queues, flavors, checks or cohorts knows himself.
        """
        return self.state.ledger.take_changed()

    def pending_positions(self, cluster_queue: str, limit: int = POSITIONS_MAX) -> list[Position]:
        """Return the first `limit` waiting workloads of a ClusterQueue in the order in which they are served."""
        return explain.pending_positions(self.state, cluster_queue, limit)
