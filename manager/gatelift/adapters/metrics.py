"""Prometheus metrics of the manager, fed by what passes the loop: events, commands and notes. Decides nothing.

Names that Kueue has are Kueue's (`kueue_...`), ours begin with `gatelift_`.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gatelift.core.commands import Command, IssueCertificate, Note, Read, SendFrame
from gatelift.core.events import Event
from gatelift_kube.writes import Create, Delete, EmitEvent, Patch, WriteFailed

HANDLE_BUCKETS = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
"""Seconds; 0.02 is what one `handle` may take at the most."""


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
        self._admitted = Counter(
            "kueue_admitted_workloads_total", "Workloads admitted", ["cluster_queue"], registry=self.registry
        )
        self._evicted = Counter(
            "kueue_evicted_workloads_total", "Workloads evicted", ["cluster_queue", "reason"], registry=self.registry
        )
        self._dispatched = Counter(
            "kueue_multikueue_workloads_dispatched_total", "Commits sent", ["cluster"], registry=self.registry
        )
        self._finished = Counter(
            "kueue_finished_workloads_total", "Workloads finished", ["cluster_queue"], registry=self.registry
        )
        self.leader = Gauge(
            "gatelift_leader_term", "Term of this process as leader, 0 as standby", registry=self.registry
        )
        self.queue = Gauge("gatelift_event_queue", "Events that wait for the core", registry=self.registry)
        self.writes_held = Gauge("gatelift_writes_held", "Writes that wait or are under way", registry=self.registry)

    def handled(self, event: Event, seconds: float) -> None:
        """Count one event."""
        self._handle.labels(type(event).__name__).observe(seconds)
        if isinstance(event, WriteFailed):
            self._write_failures.labels(event.error.value).inc()

    def performed(self, command: Command) -> None:
        """Count one command."""
        match command:
            case Create() | Patch() | Delete():
                resource = command.ref.resource.plural
                if isinstance(command, Patch) and command.subresource:
                    resource += "/" + command.subresource
                self._writes.labels(type(command).__name__.lower(), resource).inc()
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

    def _note(self, note: Note) -> None:
        self._notes.labels(note.level).inc()
        fields = dict(note.fields)
        queue = fields.get("cluster_queue", "")
        match fields.get("transition"):
            case "admitted":
                self._admitted.labels(queue).inc()
            case "evicted":
                self._evicted.labels(queue, fields.get("reason", "")).inc()
            case "dispatched":
                self._dispatched.labels(note.cluster).inc()
            case "finished":
                self._finished.labels(queue).inc()
            case _:
                pass
