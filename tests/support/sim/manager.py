"""A manager's process in a simulation: the real machine from its real assembly, and the agent of `local` beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatelift.adapters.kubernetes import is_told_of_unmarked, lost, out_of_sight, unmarked, watches
from gatelift.assembly import new_machine
from gatelift.config import Configuration, read_text
from gatelift.core.api import commands, events
from gatelift.core.rules.invariants import check
from gatelift.core.state.recovery_values import floors
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, Patch
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import LEASE, WORKER_CLUSTER, ObjectKey, ObjectRef, Resource
from gatelift_sandbox.embedded.selection import ListSelection, parse_labels
from support.sim.agent import SimAgent
from support.sim.cluster import SimCluster
from support.sim.election import SimElector, SimLease
from support.sim.objects import milli
from support.sim.port import ApiPort, SimReflector, die_after
from support.sim.process import SimProcess

STORED = (WORKER_CLUSTER.group, WORKER_CLUSTER.plural)
REQUEUE_BASE_SECONDS, REQUEUE_MAX_SECONDS = 1.0, 20.0
"""Shorter than a deployment's, so that a simulation's end comes in minutes."""


class SimManager:
    """One manager process; it dies when it loses the lead, as the real one does, and the world starts another."""

    kinds: Registry = SERVED
    """What it serves, of the resources that are watched anyway; a test may have it serve more."""

    def __init__(
        self,
        cluster: SimCluster,
        name: str,
        network: Any,
        lease: SimLease,
        origin: str,
        *,
        kinds: Registry | None = None,
    ) -> None:
        timeline = cluster.timeline
        self.kinds = kinds or self.kinds
        self.cluster = cluster
        self.name = name
        self.told: Counter[str] = Counter()
        """How many events of each reason people were told by it."""
        self._network = network
        self.machine = new_machine(_configuration(cluster.manager_file), origin, name)
        core = self.machine.core
        core.settings = replace(_hurried(core.settings), kinds=self.kinds)
        core.knowledge.kinds = self.kinds
        clock = timeline.clock(cluster.faults.clock_drift)
        self.process = SimProcess(timeline, name, self.machine, self._perform, events.Ticked(), clock)
        self.port = ApiPort(cluster, self.process.post, name, clock)
        self.local = SimAgent(cluster, f"{name}-local", network, beside=clock, registry=kinds)
        self.process.post(events.ClockRead(unix_seconds=timeline.wall))
        self._unsynced = {resource for resource, _ in watches(self.kinds)}
        self._watches = [
            SimReflector(
                self.port,
                resource,
                ListSelection(labels=parse_labels(selection.labels or "")),
                emit=self._from_watch,
                went_back=lambda text: self.process.post(events.WentBack(text=text)),
            )
            for resource, selection in watches(self.kinds)
        ]
        self._watches += [
            SimReflector(
                self.port,
                resource,
                ListSelection(labels=parse_labels(selection.labels or "")),
                emit=self._from_unmarked,
            )
            for resource, selection in unmarked(self.kinds)
        ]
        self.elector = SimElector(
            timeline,
            clock,
            lease,
            name,
            stands=lambda: not (self.process.dead or self.process.paused or self._unsynced),
            reaches=lambda: not self.port.down,
            gained=self._gained,
            extended=self._extended,
            lost=self._lost,
            outlives_no_restore=True,
        )
        self.elector.floors = self._floors
        self.port.leads = self.elector.leads
        self._restores = cluster.restores

    @property
    def outlives_a_restore(self) -> bool:
        """Say whether its cluster was put back under its feet: what it remembers is of a history that is no more."""
        return self.cluster.restores != self._restores

    def _floors(self) -> tuple[int, int]:
        found = (self.cluster.typed(WORKER_CLUSTER, one) for one in self.cluster.store.all(STORED))
        return floors(each for each in found if isinstance(each, WorkerCluster))

    def check(self) -> None:
        """Check what the manager's core promises of itself."""
        check(self.machine.core, self.process.now)

    def charges(self, queue: str) -> int:
        """Return the milli-CPU that the manager's engine charges in a ClusterQueue."""
        figures = self.machine.core.ledger.engine.cluster_queue_status(queue)
        if figures is None:
            return 0
        cells = [one for flavor in figures.flavors_reservation for one in flavor.resources if one.name == "cpu"]
        return sum(milli(str(one.total)) for one in cells)

    # --- life ---------------------------------------------------------------------------------------------------

    def _from_unmarked(self, event: Any) -> None:
        if is_told_of_unmarked(self.kinds, event):
            self.process.post(event)

    def _from_watch(self, event: Any) -> None:
        if type(event).__name__ == "Synced":
            self._unsynced.discard(event.resource)
        self.process.post(event)

    def _gained(self, term: int, until: float, _vacant: bool) -> None:
        elector = self.elector
        self.process.post(events.LeadershipExtended(valid_until=until, counter=elector.counter))
        self.process.post(
            events.LeadershipGained(
                term=term,
                warm=elector.warm,
                lease=ObjectKey("gatelift-system", "gatelift-manager"),
                holder=self.name,
                counter=elector.counter,
                tenures=elector.tenures,
                seal_key=b"the key of the seals, of 32 byte",
            )
        )
        self.local.serve(term, until)

    def _extended(self, until: float) -> None:
        self.process.post(events.LeadershipExtended(valid_until=until, counter=self.elector.counter))
        self.local.extend(until)

    def _lost(self) -> None:
        self.cluster.timeline.say(self.name, "no longer leads")
        self.process.post(events.LeadershipLost())
        self.kill()

    def kill(self) -> None:
        """End without a word."""
        if self.process.dead:
            return
        self.elector.over = True
        self.process.kill()
        self.port.end()
        self.local.kill()
        self._network.died(self)
        for watch in self._watches:
            watch.end()

    @property
    def ports(self) -> tuple[ApiPort, ...]:
        """Return its ways to API servers."""
        return (self.port, self.local.port)

    def dies_after_write(self, number: int = 1, kind: Resource | None = None) -> None:
        """Let the process die when so many of its writes, its local agent's too, have landed."""
        die_after(self.ports, self.kill, number, kind)

    def stall(self, seconds: float, kinds: Sequence[Resource] = ()) -> None:
        """Let its watches of some kinds (of all, where none is named) stand still."""
        for watch in self._watches:
            if not kinds or watch.resource in kinds:
                watch.stall(seconds)

    @property
    def is_stalled(self) -> bool:
        """Say whether a watch of its stands still: it cannot see what was done."""
        return any(watch.is_stalled for watch in self._watches)

    def pause(self) -> None:
        self.process.pause()
        self.local.pause()

    def wake(self) -> None:
        """Go on: by chance what waited comes first, or the elector notices first."""
        if self.cluster.timeline.chance(0.5):
            self.elector.look_now()
        self.process.wake()
        self.local.wake()

    # --- commands -----------------------------------------------------------------------------------------------

    def _perform(self, command: commands.Command) -> None:
        time = self.cluster.timeline
        match command:
            case Create() | Patch() | Delete():
                self.port.write(command)
            case commands.SendToAgent():
                self._network.from_manager(self, command.stream_id, command.frame)
            case commands.CloseAgentStream():
                time.say(
                    self.name, f"closes stream {command.stream_id}: {command.close.reason.value} {command.close.text}"
                )
                self._network.manager_hangs_up(self, command.stream_id, command.close)
            case commands.Read() | commands.ReadAll() | commands.ListOutOfSight():
                self._ask(command)
            case commands.ListAnew():
                for watch in self._watches:
                    watch.list_anew()
            case commands.StepDown():
                time.say(self.name, f"steps down: {command.reason}")
                time.after(0.0, self.kill)
            case commands.SettleLease():
                self.elector.settle(command.term, settled=command.settled)
            case commands.Note():
                time.say(self.name, f"{command.workload}@{command.epoch} {command.cluster} {command.text}")
            case EmitEvent():
                self.told[command.reason] += 1
            case _:
                raise AssertionError(f"nobody carries out {command}")

    def _ask(self, command: commands.Read | commands.ReadAll | commands.ListOutOfSight) -> None:
        match command:
            case commands.Read():
                self.port.later(
                    lambda: self._read(command),
                    lambda: events.ReadFailed(read_id=command.read_id, ref=command.ref, message="not reachable"),
                )
            case commands.ReadAll():
                self.port.later(
                    lambda: self._read_all(command),
                    lambda: events.ReadFailed(read_id=command.read_id, message="not reachable"),
                )
            case commands.ListOutOfSight():  # drawn by no chance: a seed's history is told by what happens
                time = self.cluster.timeline
                time.after(0.02, lambda: self.process.post(self._list_out_of_sight(command)))

    def _read(self, command: commands.Read) -> events.ReadDone:
        if command.ref.resource == LEASE:
            return events.ReadDone(read_id=command.read_id, ref=command.ref, object=self.elector.read())
        stored = self.cluster.find(command.ref)
        if stored is None:
            return events.ReadDone(read_id=command.read_id, ref=command.ref, object=None)
        found = self.cluster.typed(command.ref.resource, stored)
        return events.ReadDone(read_id=command.read_id, ref=command.ref, object=found, raw=stored.raw)

    def _list_out_of_sight(self, command: commands.ListOutOfSight) -> events.OutOfSightListed | events.ReadFailed:
        if self.port.down:
            return events.ReadFailed(read_id=command.read_id, message="not reachable")
        found = []
        for resource, _ in lost(self.kinds):
            stored = self.cluster.store.all((resource.group, resource.plural))
            told = (out_of_sight(self.kinds, resource, self.cluster.typed(resource, each)) for each in stored)
            found += sorted(one for one in told if one is not None)
        return events.OutOfSightListed(read_id=command.read_id, objects=tuple(found))

    def _read_all(self, command: commands.ReadAll) -> events.ReadAllDone:
        kind = self.cluster.store.kinds.of(command.resource)
        page = self.cluster.store.list(kind, ListSelection(namespace=command.namespace))
        found = tuple((self.cluster.typed(command.resource, stored), stored.raw) for stored in page.items)
        return events.ReadAllDone(read_id=command.read_id, objects=found)


def _configuration(file: str) -> Configuration:
    return read_text(file) if file else Configuration()


def _hurried(settings: Any) -> Any:
    return replace(settings, requeue_base=REQUEUE_BASE_SECONDS, requeue_max=REQUEUE_MAX_SECONDS, debug_invariants=True)


__all__ = ["ObjectRef", "SimManager"]
