"""Counters and waits of workloads under Kueue's names: by the ClusterQueue charged, and by the LocalQueue asked for.

Fed by the notes that `core.telling` makes of each transition; only the leader makes them. Neighbour: `metrics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE
from gatelift.core.api.commands import Happened, Span, Transition
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.values.waits import BOUNDS

LIFT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CLASS = "priority_class"
Of = tuple[str, str, str]
"""ClusterQueue, name and namespace of the LocalQueue."""


class _Making:
    """Where metrics are registered, and whether LocalQueues have them, too."""

    def __init__(self, registry: CollectorRegistry, *, local_queues: bool) -> None:
        self.registry = registry
        self.local_queues = local_queues


Metric = TypeVar("Metric", Counter, Histogram)


class _Series(Generic[Metric]):
    """The series of one metric per ClusterQueue, and of one per LocalQueue where there is one, by their labels.

    They are remembered: to look a series up by its labels takes longer than to count in it.
    """

    def __init__(self, queue: Metric, local: Metric | None) -> None:
        self._queue: Metric = queue
        self._local: Metric | None = local
        self._known: dict[tuple[str, ...], tuple[Metric, ...]] = {}

    def at(self, of: Of, labels: tuple[str, ...]) -> tuple[Metric, ...]:
        """Return one series or two."""
        key = of + labels
        known = self._known.get(key)
        if known is not None:
            return known
        found = [self._queue.labels(of[0], *labels, LEADER)]
        if self._local is not None:
            found.append(self._local.labels(of[1], of[2], *labels, LEADER))
        self._known[key] = tuple(found)
        return tuple(found)


class _Total:
    """One counter per ClusterQueue, and one per LocalQueue where these are wanted."""

    def __init__(self, made: _Making, name: str, text: str, *labels: str) -> None:
        def counter(prefix: str, queue: tuple[str, ...]) -> Counter:
            return Counter(f"{prefix}_{name}", text, [*queue, *labels, REPLICA_ROLE], registry=made.registry)

        self._series = _Series(*_both(made, counter))

    def add(self, of: Of, *labels: str) -> None:
        for each in self._series.at(of, labels):
            each.inc()


class _Wait:
    """One histogram of seconds per ClusterQueue, and one per LocalQueue where these are wanted."""

    def __init__(self, made: _Making, name: str, text: str, *labels: str) -> None:
        def histogram(prefix: str, queue: tuple[str, ...]) -> Histogram:
            labelled = [*queue, *labels, REPLICA_ROLE]
            return Histogram(f"{prefix}_{name}", text, labelled, buckets=BOUNDS, registry=made.registry)

        self._series = _Series(*_both(made, histogram))

    def add(self, of: Of, seconds: float, *labels: str) -> None:
        for each in self._series.at(of, labels):
            each.observe(seconds)


def _both(made: _Making, metric: Callable[[str, tuple[str, ...]], Metric]) -> tuple[Metric, Metric | None]:
    """Return a metric per ClusterQueue, and the same per LocalQueue where these are wanted."""
    queue = metric("kueue", ("cluster_queue",))
    return queue, metric("kueue_local_queue", ("name", "namespace")) if made.local_queues else None


class Transitions:
    """All that is counted of workloads."""

    def __init__(self, registry: CollectorRegistry, *, local_queues: bool) -> None:
        both = _Making(registry, local_queues=local_queues)
        queues = _Making(registry, local_queues=False)
        self._reserved = _Total(both, "quota_reserved_workloads_total", "Workloads that got quota", CLASS)
        self._queued = _Wait(both, "quota_reserved_wait_time_seconds", "From queued to quota reserved", CLASS)
        self._admitted = _Total(both, "admitted_workloads_total", "Workloads admitted", CLASS)
        self._waited = _Wait(both, "admission_wait_time_seconds", "From queued to admitted", CLASS)
        self._checked = _Wait(both, "admission_checks_wait_time_seconds", "From quota reserved to admitted", CLASS)
        self._sent = _Total(queues, "multikueue_workloads_dispatched_total", "Sent to a worker cluster", "cluster")
        self._placed = _Total(queues, "multikueue_workloads_admitted_total", "Admitted on a worker cluster", "cluster")
        why = ("reason", "underlying_cause")
        self._evicted = _Total(both, "evicted_workloads_total", "Evictions", *why, CLASS)
        self._evicted_once = _Total(queues, "evicted_workloads_once_total", "First evictions for a reason", *why, CLASS)
        self._preempted = Counter(
            "kueue_preempted_workloads_total",
            "Workloads preempted, by the queue that preempts",
            ["preempting_cluster_queue", "reason", REPLICA_ROLE],
            registry=registry,
        )
        self._ready = _Wait(both, "ready_wait_time_seconds", "From queued to all pods ready", CLASS)
        self._until_ready = _Wait(
            both, "admitted_until_ready_wait_time_seconds", "From admitted to all pods ready", CLASS
        )
        self._ready_to_evicted = _Wait(
            queues, "pods_ready_to_evicted_time_seconds", "From all pods ready to evicted", *why
        )
        self._drained = _Wait(queues, "workload_eviction_latency_seconds", "From told to stop to released", "reason")
        self._freed = Counter(
            "gatelift_quota_releases_total",
            "Quota freed while pods were being stopped (KEP-6143), by the rule or by its deadline",
            ["cluster_queue", "reason"],
            registry=registry,
        )
        self._finished = _Total(both, "finished_workloads_total", "Workloads finished", CLASS)
        self._ran = _Wait(queues, "execution_time_seconds", "From admitted to finished")
        self._lifted = Histogram(
            "gatelift_admitted_to_lifted_seconds",
            "From the winner written to its agent's word that the gates are off",
            ["cluster"],
            buckets=LIFT_BUCKETS,
            registry=registry,
        )

    def count(self, note: Transition) -> None:
        """Count one transition of a workload, which is named as `namespace/name`."""
        of = (note.cluster_queue, note.local_queue, note.workload.partition("/")[0])
        rank, seconds = note.priority_class, note.seconds
        match note.happened:
            case Happened.RESERVED:
                self._reserved.add(of, rank)
                self._queued.add(of, seconds[Span.QUEUED], rank)
            case Happened.ADMITTED:
                self._admitted.add(of, rank)
                self._checked.add(of, seconds[Span.CHECKS], rank)
                self._waited.add(of, seconds[Span.QUEUED] + seconds[Span.CHECKS], rank)
                if note.cluster and note.cluster != LOCAL_CLUSTER:
                    self._sent.add(of, note.cluster)
                    self._placed.add(of, note.cluster)
            case Happened.LIFTED:
                if Span.LIFT in seconds:
                    self._lifted.labels(note.cluster).observe(seconds[Span.LIFT])
            case Happened.EVICTED:
                self._count_eviction(of, note)
            case Happened.PREEMPTED:
                self._preempted.labels(note.cluster_queue, note.reason, LEADER).inc()
            case Happened.READY:
                self._ready.add(of, seconds[Span.QUEUED], rank)
                self._until_ready.add(of, seconds[Span.ADMITTED], rank)
            case Happened.FREED | Happened.RELEASED | Happened.FINISHED:
                self._count_end(of, note)

    def _count_end(self, of: Of, note: Transition) -> None:
        if note.happened is Happened.FREED:
            self._freed.labels(note.cluster_queue, note.reason).inc()
        elif note.happened is Happened.FINISHED:
            self._finished.add(of, note.priority_class)
            self._ran.add(of, note.seconds[Span.RAN])
        elif note.reason and Span.DRAINED in note.seconds:
            self._drained.add(of, note.seconds[Span.DRAINED], note.reason)

    def _count_eviction(self, of: Of, note: Transition) -> None:
        why = note.reason, note.cause
        self._evicted.add(of, *why, note.priority_class)
        if note.is_first:
            self._evicted_once.add(of, *why, note.priority_class)
        if Span.READY in note.seconds:
            self._ready_to_evicted.add(of, note.seconds[Span.READY], *why)
