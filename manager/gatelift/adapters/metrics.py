"""Prometheus metrics of the manager, fed by what passes the loop: events, commands and notes. Decides nothing.

Names that Kueue has are Kueue's (`kueue_...`), ours begin with `gatelift_`. What `core.telling` says of a transition is
counted next door, in `transitions`; what is so now is in `gauges`.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gatelift.adapters.gauges import Gauges
from gatelift.adapters.pod_figures import PodFigures
from gatelift.adapters.slice_figures import SliceFigures
from gatelift.adapters.transitions import Transitions
from gatelift.core.api.commands import Command, IssueCertificate, Note, Read, SendToAgent, SliceMoment, Transition
from gatelift.core.api.events import Event
from gatelift.core.machine import Machine
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, Patch, WriteFailed
from gatelift_kube.values.resources import ObjectKey
from gatelift_kube.values.waits import Waits

HANDLE_BUCKETS = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
"""Seconds; 0.02 is what one `handle` may take at the most."""


class ManagerMetrics:
    """One registry per process, so that several processes of a test do not meet."""

    def __init__(self, *, local_queues: bool = True) -> None:
        """`local_queues`: per LocalQueue, too."""
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
        self._notes_of: dict[str, Counter] = {}
        self._writes_of: dict[tuple[type, str, str], Counter] = {}
        self._transitions = Transitions(self.registry, local_queues=local_queues)
        self._slices = SliceFigures(self.registry)
        self._gauges = Gauges(self.registry, local_queues=local_queues)
        self._pods = PodFigures()
        self.registry.register(self._pods)
        self.leader = Gauge(
            "gatelift_leader_term", "Term of this process as leader, 0 as standby", registry=self.registry
        )
        self.queue = Gauge("gatelift_event_queue", "Events that wait for the core", registry=self.registry)
        self.writes_held = Gauge("gatelift_writes_held", "Writes that wait or are under way", registry=self.registry)

    def refresh(
        self, machine: Machine, *, waiting: int, writes_held: int, at_home: Mapping[ObjectKey, Waits] | None = None
    ) -> None:
        """Set the gauges before a scrape. `at_home`: how long pods waited that the agent of this cluster let go."""
        self._gauges.set(machine)
        self._slices.set(machine.core)
        self._pods.counts = machine.core.pod_counts
        self._pods.take_home(machine.core, at_home or {})
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
            case SendToAgent():
                self._frames.inc()
            case IssueCertificate():
                self._certificates.inc()
            case Note():
                notes = self._notes_of.get(command.level)
                if notes is None:
                    notes = self._notes_of[command.level] = self._notes.labels(command.level)
                notes.inc()
                if isinstance(command, SliceMoment):
                    self._slices.count(command)
                if isinstance(command, Transition):
                    self._transitions.count(command)
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
