"""An agent's process in a simulation: the real machine, its port to its cluster, its lead, its streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gatelift_agent.adapters.kubernetes import at_home, namespaced
from gatelift_agent.adapters.leadership import settle_seconds
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.memory.keeper import LABEL as STATE_LABEL
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.settings import AgentMode, AgentSettings, KeepFinished, Policy
from gatelift_agent.core.watched import ownership
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, ObjectGone, ObjectSeen, Patch, Synced
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.values.resources import CONFIG_MAP, JOB, NAMESPACE, NODE, POD, RESOURCE_FLAVOR, ObjectKey, ObjectRef
from gatelift_sandbox.embedded.selection import ListSelection, parse_labels
from gatelift_wire.values.keys import LABEL_MADE_HERE, LABEL_ORIGIN
from support.sim.clock import ProcessClock
from support.sim.cluster import SimCluster
from support.sim.election import TIMES, SimElector, SimLease
from support.sim.port import ApiPort, SimReflector, die_after
from support.sim.process import SimProcess

Dial = Callable[["SimAgent", int], None]


class SimAgent:
    """One replica. `dial`, `send` and `hang_up` are the network's side of its streams."""

    registry: Registry = SERVED
    """What agents serve; see `SimManager.kinds`."""

    def __init__(
        self,
        cluster: SimCluster,
        name: str,
        network: Any,
        *,
        beside: ProcessClock | None = None,
        lease: str = SimLease.name,
        keep: KeepFinished | None = None,
        told: Mapping[str, Any] | None = None,
        registry: Registry | None = None,
    ) -> None:
        """`beside`: for the agent of `local`, the clock of the manager whose process it shares. `lease`: its Lease.

        `keep`: what it keeps of what has ended. `told`: of its settings what else is not the default.
        """
        local = beside is not None
        self.registry = registry or self.registry
        self.cluster = cluster
        self.name = name
        self.local = local
        self._network = network
        timeline = cluster.timeline
        mode = AgentMode.LOCAL if local else AgentMode.REMOTE
        self._system = lease.partition("/")[0]
        settings = AgentSettings(
            mode=mode,
            instance=name,
            own_namespace=self._system,
            lease="" if local else lease,
            policy=Policy(any_namespace=local),
            keep=keep or KeepFinished(),
            registry=self.registry,
            kinds=tuple(each.name for each in self.registry if each.travels),
            **(told or {}),
        )
        self.machine = AgentMachine(settings, jitter=timeline.rng.random())
        clock = beside or timeline.clock(cluster.faults.clock_drift)
        self.process = SimProcess(timeline, name, self.machine, self._perform, events.AgentTicked(), clock)
        self.port = ApiPort(cluster, self.process.post, name, clock)
        self.elector: SimElector | None = None
        self._lease = SimLease()
        self._cluster_watches: list[SimReflector] = []
        self._namespace_watches: dict[str, list[SimReflector]] = {}

    # --- life ---------------------------------------------------------------------------------------------------

    def stand(self, lease: SimLease) -> None:
        """Become a candidate for the agent's lead (R8). Its Lease counts with each write."""
        self._lease = lease
        self.elector = SimElector(
            self.cluster.timeline,
            self.process.clock,
            lease,
            self.name,
            stands=lambda: not (self.process.dead or self.process.paused),
            reaches=lambda: not self.port.down,
            gained=self._gained,
            extended=self.extend,
            lost=lambda: self.process.post(events.AgentLeadershipLost()),
        )

    def _gained(self, term: int, until: float, vacant: bool) -> None:
        self.process.post(
            events.AgentLeadershipGained(
                term=term,
                settle_seconds=0.0 if vacant and term == 1 else settle_seconds(TIMES),
                mark=self._lease.counter - 1,
                unix=self.cluster.timeline.wall,
            )
        )
        self.extend(until)

    def extend(self, until: float) -> None:
        """Hear that the Lease was renewed."""
        self.process.post(events.AgentLeadershipExtended(valid_until=until, mark=self._lease.counter))

    def serve(self, term: int, until: float) -> None:
        """Act for `local` under the manager's lead."""
        self.process.post(events.AgentLeadershipGained(term=term, settle_seconds=settle_seconds(TIMES)))
        self.process.post(events.AgentLeadershipExtended(valid_until=until))

    def kill(self) -> None:
        """End without a word."""
        if self.elector is not None:
            self.elector.over = True
        self.process.kill()
        self.port.end()
        self._network.died(self)
        self._stop_watching()

    @property
    def ports(self) -> tuple[ApiPort, ...]:
        """Return its ways to API servers."""
        return (self.port,)

    def dies_after_write(self, number: int = 1) -> None:
        """Let the process die when so many of its writes have landed."""
        die_after(self.ports, self.kill, number)

    def pause(self) -> None:
        self.process.pause()

    def wake(self) -> None:
        if self.elector is not None:
            self.elector.look_now()
        self.process.wake()

    def reach(self, *, reachable: bool) -> None:
        """Lose or find the API server."""
        self.port.down = not reachable
        self.process.post(events.ApiHealthChanged(reachable=reachable, latency_seconds=0.01))

    # --- commands -----------------------------------------------------------------------------------------------

    def _perform(self, command: commands.Command) -> None:
        match command:
            case Create() | Patch() | Delete():
                self.port.write(command)
            case commands.SendToManager(stream_id=stream_id, frame=frame):
                self._network.from_agent(self, stream_id, frame)
            case commands.OpenManagerStream(stream_id=stream_id):
                self._network.dial(self, stream_id)
            case commands.CloseManagerStream(stream_id=stream_id, text=text):
                self.cluster.timeline.say(self.name, f"closes stream {stream_id}: {text}")
                self._network.agent_hangs_up(self, stream_id)
            case commands.WatchCluster():
                self._watch_cluster()
            case commands.WatchNamespaces(namespaces=namespaces):
                self._watch_namespaces(namespaces)
            case commands.ReadPods():
                self.port.later(
                    lambda: self._pods(command),
                    lambda: events.PodsNotRead(read_id=command.read_id, message="not reachable"),
                )
            case commands.ReadNamespace():
                self.port.later(
                    lambda: self._namespace(command),
                    lambda: events.NamespaceNotRead(read_id=command.read_id, message="not reachable"),
                )
            case commands.StopWatching():
                self._stop_watching()
            case commands.AgentNote():
                self.cluster.timeline.say(self.name, f"{command.workload}@{command.epoch} {command.text}")
            case EmitEvent() | commands.InstallCertificate() | commands.IdentityRefused():
                pass
            case _:
                raise AssertionError(f"nobody carries out {command}")

    def _pods(self, command: commands.ReadPods) -> events.PodsRead:
        wanted = dict(command.labels).items()
        cluster = self.cluster
        there = [each for each in cluster.store.all(("", "pods")) if each.namespace == command.namespace]
        stored = [each for each in there if wanted <= each.labels.items()]
        found = tuple(each for each in (cluster.typed(POD, one) for one in stored) if isinstance(each, Pod))
        return events.PodsRead(read_id=command.read_id, pods=found, raws=tuple(each.raw for each in stored))

    def _namespace(self, command: commands.ReadNamespace) -> events.NamespaceRead:
        stored = self.cluster.find(ObjectRef(NAMESPACE, ObjectKey("", command.name)))
        found = self.cluster.typed(NAMESPACE, stored) if stored is not None else None
        return events.NamespaceRead(read_id=command.read_id, namespace=found if isinstance(found, Namespace) else None)

    def _watch_cluster(self) -> None:
        self._stop_watching()
        post = self.process.post
        self._cluster_watches.append(SimReflector(self.port, NAMESPACE, emit=post))
        self._cluster_watches.append(SimReflector(self.port, NODE, emit=post))
        if self.local:
            self._cluster_watches.append(SimReflector(self.port, RESOURCE_FLAVOR, emit=post))
            return
        own = ListSelection(namespace=self._system, labels=parse_labels(STATE_LABEL))
        self._cluster_watches.append(SimReflector(self.port, CONFIG_MAP, own, emit=post))
        self.cluster.timeline.after(0.01, lambda: post(Synced(RESOURCE_FLAVOR)))  # a kind that is not served

    def _watch_namespaces(self, namespaces: tuple[str, ...]) -> None:
        for left in sorted(self._namespace_watches.keys() - set(namespaces)):
            for watch in self._namespace_watches.pop(left):
                watch.end()
        watched = at_home(self.registry) if self.local else namespaced(self.registry)
        for namespace in sorted(set(namespaces) - self._namespace_watches.keys()):
            waiting = set(range(len(watched) + 1))
            self._namespace_watches[namespace] = [
                SimReflector(
                    self.port,
                    resource,
                    ListSelection(namespace=namespace, labels=parse_labels(labels)),
                    emit=self._namespace_emit(namespace, number, waiting),
                )
                for number, (resource, labels) in enumerate(watched)
            ]
            if self.machine.world.settings.adopts:
                made_here = ListSelection(namespace=namespace, labels=parse_labels(LABEL_MADE_HERE))
                watch = SimReflector(self.port, POD, made_here, emit=self._show_newcomer)
                self._namespace_watches[namespace].append(watch)
            self._find_hidden(namespace, self._namespace_emit(namespace, len(watched), waiting), waiting)

    def _show_newcomer(self, event: Any) -> None:
        """Show what waits to be taken in, as the adapter does."""
        if isinstance(event, ObjectSeen | ObjectGone) and LABEL_ORIGIN not in event.object.metadata.labels:
            self.process.post(event)

    def _find_hidden(self, namespace: str, emit: Callable[[Any], None], waiting: set[int]) -> None:
        """List once what is ours and no watch shows, after the watches, as the adapter does."""
        cluster, time = self.cluster, self.cluster.timeline

        def look() -> None:
            if self.port.over or namespace not in self._namespace_watches:
                return
            if self.port.down:
                time.after(1.0, look)
                return
            if len(waiting) > 1:
                time.after(0.02, look)
                return
            for resource in (POD,) if self.local else (POD, JOB):
                for stored in cluster.store.all((resource.group, resource.plural)):
                    found = cluster.typed(resource, stored)
                    if namespace in {"", stored.namespace} and self._hides(found):
                        emit(ObjectSeen(resource, found, stored.raw))
            emit(Synced(POD))

        time.after(0.02, look)  # drawn by no chance: a seed's history is told by what happens

    def _hides(self, found: Any) -> bool:
        """Say whether the adapter's list of what no watch shows would tell of it."""
        ended = isinstance(found, Pod) and found.status.phase in {"Succeeded", "Failed"}
        queued = found.metadata.labels.get("kueue.x-k8s.io/managed") == "true"
        if self.local:
            return not (ended or queued) and (
                ownership.may_hide(self.registry, found) or ownership.hides_at_home(found)
            )
        return ownership.may_hide(self.registry, found)

    def _namespace_emit(self, namespace: str, number: int, waiting: set[int]) -> Callable[[Any], None]:
        def emit(event: Any) -> None:
            if not isinstance(event, Synced):
                self.process.post(event)
                return
            waiting.discard(number)
            if not waiting:
                self.process.post(events.NamespaceSynced(namespace=namespace))

        return emit

    def _stop_watching(self) -> None:
        for watch in self._cluster_watches:
            watch.end()
        self._cluster_watches = []
        self._watch_namespaces(())
