"""Counters and waits of workloads under Kueue's names: by the ClusterQueue charged, and by the LocalQueue asked for.

Fed by the notes that `core.telling` makes of each transition; only the leader makes them. Neighbour: `metrics`.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER

KUEUE_BUCKETS = (1.0, 2.5, 5.0, *(10.0 * 2.0**power for power in range(11)))
"""Seconds; Kueue's: 1, 2.5, 5, then doubling to 10240."""
LIFT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CLASS = "priority_class"
Of = tuple[str, str, str]
"""ClusterQueue, name and namespace of the LocalQueue."""


class _Total:
    """One counter per ClusterQueue, and one per LocalQueue where these are wanted."""

    def __init__(self, made: _Making, name: str, text: str, *labels: str) -> None:
        self._queue = Counter(f"kueue_{name}", text, ["cluster_queue", *labels, REPLICA_ROLE], registry=made.registry)
        self._local = (
            Counter(
                f"kueue_local_queue_{name}", text, ["name", "namespace", *labels, REPLICA_ROLE], registry=made.registry
            )
            if made.local_queues
            else None
        )

    def add(self, of: Of, *labels: str) -> None:
        self._queue.labels(of[0], *labels, LEADER).inc()
        if self._local is not None:
            self._local.labels(of[1], of[2], *labels, LEADER).inc()


class _Wait:
    """One histogram of seconds per ClusterQueue, and one per LocalQueue where these are wanted."""

    def __init__(self, made: _Making, name: str, text: str, *labels: str) -> None:
        def histogram(prefix: str, queue: tuple[str, ...]) -> Histogram:
            labelled = [*queue, *labels, REPLICA_ROLE]
            return Histogram(f"{prefix}_{name}", text, labelled, buckets=KUEUE_BUCKETS, registry=made.registry)

        self._queue = histogram("kueue", ("cluster_queue",))
        self._local = histogram("kueue_local_queue", ("name", "namespace")) if made.local_queues else None

    def add(self, of: Of, seconds: float, *labels: str) -> None:
        self._queue.labels(of[0], *labels, LEADER).observe(seconds)
        if self._local is not None:
            self._local.labels(of[1], of[2], *labels, LEADER).observe(seconds)


class _Making:
    """Where metrics are registered, and whether LocalQueues have them, too."""

    def __init__(self, registry: CollectorRegistry, *, local_queues: bool) -> None:
        self.registry = registry
        self.local_queues = local_queues


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
        self._finished = _Total(both, "finished_workloads_total", "Workloads finished", CLASS)
        self._ran = _Wait(queues, "execution_time_seconds", "From admitted to finished")
        self._lifted = Histogram(
            "gatelift_admitted_to_lifted_seconds",
            "From the winner written to its agent's word that the gates are off",
            ["cluster"],
            buckets=LIFT_BUCKETS,
            registry=registry,
        )

    def count(self, fields: dict[str, str], workload: str, cluster: str) -> None:
        """Count one transition of a workload, which is named as `namespace/name`."""
        of = (fields.get("cluster_queue", ""), fields.get("queue", ""), workload.partition("/")[0])
        reason, cause, rank = fields.get("reason", ""), fields.get("cause", ""), fields.get(CLASS, "")
        seconds = {name: float(text) for name, text in fields.items() if name.endswith("_seconds")}
        match fields["transition"]:
            case "reserved":
                self._reserved.add(of, rank)
                self._queued.add(of, seconds["queued_seconds"], rank)
            case "admitted":
                self._admitted.add(of, rank)
                self._checked.add(of, seconds["checks_seconds"], rank)
                self._waited.add(of, seconds["queued_seconds"] + seconds["checks_seconds"], rank)
                if cluster and cluster != LOCAL_CLUSTER:
                    self._sent.add(of, cluster)
                    self._placed.add(of, cluster)
            case "lifted" if "lift_seconds" in seconds:
                self._lifted.labels(cluster).observe(seconds["lift_seconds"])
            case "evicted":
                self._evicted.add(of, reason, cause, rank)
                if fields.get("first"):
                    self._evicted_once.add(of, reason, cause, rank)
                if "ready_seconds" in seconds:
                    self._ready_to_evicted.add(of, seconds["ready_seconds"], reason, cause)
            case "preempted":
                self._preempted.labels(fields.get("preempting_cluster_queue", ""), reason, LEADER).inc()
            case "ready":
                self._ready.add(of, seconds["queued_seconds"], rank)
                self._until_ready.add(of, seconds["admitted_seconds"], rank)
            case "released" if reason and "drained_seconds" in seconds:
                self._drained.add(of, seconds["drained_seconds"], reason)
            case "finished":
                self._finished.add(of, rank)
                self._ran.add(of, seconds["ran_seconds"])
            case _:
                pass
