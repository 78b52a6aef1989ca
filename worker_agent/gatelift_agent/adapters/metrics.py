"""Prometheus metrics of the agent, fed by what passes the loop: events, commands. Decides nothing."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gatelift_agent.adapters.gate_figures import GateFigures
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.placement.placements import PlacementState
from gatelift_agent.core.values.commands import AgentNote, Command, SendToManager
from gatelift_agent.core.values.events import Event
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteFailed
from gatelift_wire.values.messages import GatesLifted

HANDLE_BUCKETS = (0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
"""Seconds; 0.02 is what one `handle` may take at the most."""

LIFT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class AgentMetrics:
    """One registry per process, so that several processes of a test do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._handle = Histogram(
            "gatelift_agent_handle_seconds",
            "Time that the deciding core took for one event",
            ["event"],
            buckets=HANDLE_BUCKETS,
            registry=self.registry,
        )
        self._lift = Histogram(
            "gatelift_agent_lift_seconds",
            "Time from a placement's commit to its gates lifted",
            buckets=LIFT_BUCKETS,
            registry=self.registry,
        )
        self._placements = Gauge("gatelift_agent_placements", "Placements by state", ["state"], registry=self.registry)
        self._writes = Counter(
            "gatelift_agent_writes_total", "Writes asked for", ["verb", "resource"], registry=self.registry
        )
        self._failures = Counter(
            "gatelift_agent_write_failures_total", "Writes that did not happen", ["error"], registry=self.registry
        )
        self._frames = Counter("gatelift_agent_frames_sent_total", "Frames sent", registry=self.registry)
        self._notes = Counter("gatelift_agent_notes_total", "Facts worth a log line", ["level"], registry=self.registry)
        self._connected = Gauge(
            "gatelift_agent_connected", "1 while a session with the manager is open", registry=self.registry
        )
        self._leader = Gauge("gatelift_agent_leader", "1 while this replica acts", registry=self.registry)
        self._latency = Gauge(
            "gatelift_agent_api_latency_seconds", "Smoothed latency of the cluster's API", registry=self.registry
        )
        self._reachable = Gauge(
            "gatelift_agent_api_reachable", "1 while the cluster's API answers", registry=self.registry
        )
        aside = "What raised an exception as it was handled, and rests; its log lines have the traceback"
        self._aside = Gauge("gatelift_agent_set_aside", aside, registry=self.registry)
        self._held = Gauge("gatelift_agent_writes_held", "Writes that wait or are under way", registry=self.registry)
        self._queue = Gauge("gatelift_agent_events_waiting", "Events not handled yet", registry=self.registry)
        self._gates = GateFigures()
        self.registry.register(self._gates)
        self._handle_of: dict[type, Histogram] = {}
        self._writes_of: dict[tuple[type, str], Counter] = {}

    def handled(self, event: Event, seconds: float) -> None:
        """Count one event."""
        kind = type(event)
        handle = self._handle_of.get(kind)
        if handle is None:  # to look a series up by its labels takes longer than to count in it
            handle = self._handle_of[kind] = self._handle.labels(kind.__name__)
        handle.observe(seconds)
        if isinstance(event, WriteFailed):
            self._failures.labels(event.error.value).inc()

    def performed(self, command: Command, machine: AgentMachine, now: float) -> None:
        """Count one command."""
        match command:
            case Create() | Patch() | Delete():
                series = (type(command), command.ref.resource.plural)
                writes = self._writes_of.get(series)
                if writes is None:
                    writes = self._writes_of[series] = self._writes.labels(series[0].__name__.lower(), series[1])
                writes.inc()
            case SendToManager(frame=frame):
                self._frames.inc()
                for message in frame.messages:
                    if isinstance(message, GatesLifted):
                        placement = machine.world.placements.get(message.key)
                        if placement is not None and placement.committed_at:
                            self._lift.observe(max(0.0, now - placement.committed_at))
            case AgentNote(level=level):
                self._notes.labels(level).inc()
            case _:
                pass

    def refresh(
        self, machine: AgentMachine, *, latency_seconds: float, reachable: bool, writes_held: int, waiting: int
    ) -> None:
        """Set the gauges before a scrape."""
        counts = dict.fromkeys(PlacementState, 0)
        for placement in machine.world.placements.values():
            counts[placement.state] += 1
        for state, count in counts.items():
            self._placements.labels(state.value).set(count)
        self._gates.read(machine.world)
        self._connected.set(machine.connected)
        self._leader.set(machine.world.leadership.held)
        self._latency.set(latency_seconds)
        self._reachable.set(reachable)
        self._held.set(writes_held)
        self._aside.set(len(machine.world.contained.resting))
        self._queue.set(waiting)
