"""Prometheus metrics of the manager, fed by what passes the loop: events, commands and notes. Decides nothing.

Names that Kueue has are Kueue's (`kueue_...`), ours begin with `gatelift_`. What `core.telling` says of a transition is
counted here; gauges are next door, in `gauges`.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE, Gauges
from gatelift.core.commands import Command, IssueCertificate, Note, Read, SendFrame
from gatelift.core.events import Event
from gatelift.core.link_values import LOCAL_CLUSTER
from gatelift.core.machine import Machine
from gatelift_kube.writes import Create, Delete, EmitEvent, Patch, WriteFailed

HANDLE_BUCKETS = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
"""Seconds; 0.02 is what one `handle` may take at the most."""

KUEUE_BUCKETS = (1.0, 2.5, 5.0, *(10.0 * 2.0**power for power in range(11)))
"""Seconds; Kueue's: 1, 2.5, 5, then doubling to 10240."""

LIFT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """One registry per process, so that several processes of a test do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._handle = Histogram(
            "gatelift_handle_seconds",
            "Time that the deciding core took for one event",
            ["event"],
            buckets=HANDLE_BUCKETS,
            registry=self.registry,
        )
        self._writes = Counter(
            "gatelift_writes_total",
            "Writes asked for, by verb and resource",
            ["verb", "resource"],
            registry=self.registry,
        )
        self._write_failures = Counter(
            "gatelift_write_failures_total", "Writes that did not happen", ["error"], registry=self.registry
        )
        self._frames = Counter("gatelift_frames_sent_total", "Frames sent to agents", registry=self.registry)
        self._notes = Counter(
            "gatelift_notes_total", "Facts worth a log line, by level", ["level"], registry=self.registry
        )
        self._certificates = Counter(
            "gatelift_certificates_issued_total", "Certificates asked of the authority", registry=self.registry
        )
        self._handle_of: dict[type, Histogram] = {}
        self._writes_of: dict[tuple[type, str, str], Counter] = {}
        self._transitions = _Transitions(self.registry)
        self._gauges = Gauges(self.registry)
        self.leader = Gauge(
            "gatelift_leader_term", "Term of this process as leader, 0 as standby", registry=self.registry
        )
        self.queue = Gauge("gatelift_event_queue", "Events that wait for the core", registry=self.registry)
        self.writes_held = Gauge("gatelift_writes_held", "Writes that wait or are under way", registry=self.registry)

    def refresh(self, machine: Machine, *, waiting: int, writes_held: int) -> None:
        """Set the gauges before a scrape."""
        self._gauges.set(machine)
        self.queue.set(waiting)
        self.writes_held.set(writes_held)

    def handled(self, event: Event, seconds: float) -> None:
        """Count one event."""
        kind = type(event)
        handle = self._handle_of.get(kind)
        if handle is None:  # to look a series up by its labels takes longer than to count in it
            handle = self._handle_of[kind] = self._handle.labels(kind.__name__)
        handle.observe(seconds)
        if isinstance(event, WriteFailed):
            self._write_failures.labels(event.error.value).inc()

    def performed(self, command: Command) -> None:
        """Count one command."""
        match command:
            case Create() | Patch() | Delete():
                self._write(command)
            case SendFrame():
                self._frames.inc()
            case IssueCertificate():
                self._certificates.inc()
            case Note():
                self._note(command)
            case Read() | EmitEvent():
                pass
            case _:
                pass

    def _write(self, command: Create | Patch | Delete) -> None:
        part = command.subresource if isinstance(command, Patch) else ""
        series = (type(command), command.ref.resource.plural, part)
        writes = self._writes_of.get(series)
        if writes is None:
            resource = f"{series[1]}/{part}" if part else series[1]
            writes = self._writes_of[series] = self._writes.labels(series[0].__name__.lower(), resource)
        writes.inc()

    def _note(self, note: Note) -> None:
        self._notes.labels(note.level).inc()
        fields = dict(note.fields)
        if "transition" in fields:
            self._transitions.count(fields, note.cluster)


class _Transitions:
    """Counters and waits of workloads, by the ClusterQueue that they are charged to; only the leader counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ["cluster_queue", *labels, REPLICA_ROLE], registry=registry)

        def waits(name: str, text: str, *labels: str) -> Histogram:
            labelled = ["cluster_queue", *labels, REPLICA_ROLE]
            return Histogram(name, text, labelled, buckets=KUEUE_BUCKETS, registry=registry)

        self._reserved = counter("kueue_quota_reserved_workloads_total", "Workloads that got quota")
        self._queued = waits("kueue_quota_reserved_wait_time_seconds", "From queued to quota reserved")
        self._admitted = counter("kueue_admitted_workloads_total", "Workloads admitted")
        self._waited = waits("kueue_admission_wait_time_seconds", "From queued to admitted")
        self._checked = waits("kueue_admission_checks_wait_time_seconds", "From quota reserved to admitted")
        self._placed = counter("kueue_multikueue_workloads_admitted_total", "Admitted on a worker cluster", "cluster")
        evicted = ("reason", "underlying_cause", "priority_class")
        self._evicted = counter("kueue_evicted_workloads_total", "Evictions", *evicted)
        self._evicted_once = counter("kueue_evicted_workloads_once_total", "First evictions for a reason", *evicted)
        self._preempted = Counter(
            "kueue_preempted_workloads_total",
            "Workloads preempted, by the queue that preempts",
            ["preempting_cluster_queue", "reason", REPLICA_ROLE],
            registry=registry,
        )
        self._ready = waits("kueue_ready_wait_time_seconds", "From created to all pods ready")
        self._until_ready = waits("kueue_admitted_until_ready_wait_time_seconds", "From admitted to all pods ready")
        self._ready_to_evicted = waits("kueue_pods_ready_to_evicted_time_seconds", "From all pods ready to evicted")
        self._drained = waits("kueue_workload_eviction_latency_seconds", "From told to stop to released", "reason")
        self._finished = counter("kueue_finished_workloads_total", "Workloads finished")
        self._ran = waits("kueue_execution_time_seconds", "From admitted to finished")
        self._lifted = Histogram(
            "gatelift_admitted_to_lifted_seconds",
            "From the winner written to its agent's word that the gates are off",
            ["cluster"],
            buckets=LIFT_BUCKETS,
            registry=registry,
        )

    def count(self, fields: dict[str, str], cluster: str) -> None:
        """Count one transition."""
        queue, reason = fields.get("cluster_queue", ""), fields.get("reason", "")
        seconds = {name: float(text) for name, text in fields.items() if name.endswith("_seconds")}
        match fields["transition"]:
            case "reserved":
                self._reserved.labels(queue, LEADER).inc()
                self._queued.labels(queue, LEADER).observe(seconds["queued_seconds"])
            case "admitted":
                self._admitted.labels(queue, LEADER).inc()
                self._checked.labels(queue, LEADER).observe(seconds["checks_seconds"])
                self._waited.labels(queue, LEADER).observe(seconds["queued_seconds"] + seconds["checks_seconds"])
                if cluster and cluster != LOCAL_CLUSTER:
                    self._placed.labels(queue, cluster, LEADER).inc()
            case "lifted" if "lift_seconds" in seconds:
                self._lifted.labels(cluster).observe(seconds["lift_seconds"])
            case "evicted":
                labels = (queue, reason, fields.get("cause", ""), fields.get("priority_class", ""))
                self._evicted.labels(*labels, LEADER).inc()
                if fields.get("first"):
                    self._evicted_once.labels(*labels, LEADER).inc()
                if "ready_seconds" in seconds:
                    self._ready_to_evicted.labels(queue, LEADER).observe(seconds["ready_seconds"])
            case "preempted":
                self._preempted.labels(fields.get("preempting_cluster_queue", ""), reason, LEADER).inc()
            case "ready":
                self._ready.labels(queue, LEADER).observe(seconds["created_seconds"])
                self._until_ready.labels(queue, LEADER).observe(seconds["admitted_seconds"])
            case "released" if reason and "drained_seconds" in seconds:
                self._drained.labels(queue, reason, LEADER).observe(seconds["drained_seconds"])
            case "finished":
                self._finished.labels(queue, LEADER).inc()
                self._ran.labels(queue, LEADER).observe(seconds["ran_seconds"])
            case _:
                pass
