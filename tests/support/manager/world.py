"""A world around the manager's machine, without I/O: a management API in memory, links that are lists, scripted agents.

`World.settle()` carries out commands and delivers their outcome until nothing is left to do at the present time;
`advance` moves the time through every deadline. Invariants are checked after each step, and the world keeps the one
book that counts: which (workload, epoch, cluster) had lifted objects, from when to when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gatelift.adapters.kubernetes import lost, out_of_sight
from gatelift.core.api import events
from gatelift.core.api.commands import Command, ListAnew, ListOutOfSight, Note, Read, ReadAll, StepDown
from gatelift.core.clusters.link_values import (
    ClusterView,
    FencedByPerson,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkState,
    PlacementsInventoried,
    Reported,
    Upcall,
    WriteIds,
)
from gatelift.core.machine import Machine
from gatelift.core.rules import invariants
from gatelift.core.state.dispatch_values import DispatchSettings
from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift.core.state.settings import CoreSettings
from gatelift.core.works.beginning import watched
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.deciding.writes import (
    Create,
    Delete,
    EmitEvent,
    ObjectGone,
    Patch,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.objects.core import Lease, LeaseSpec
from gatelift_kube.values import resources
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Message, Report
from support.manager.agents import Held, ScriptedAgent, ScriptedLinks
from support.manager.api import Api, ApiError, Doc, seen
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.shown import moves, queue_is_wrong

ME, ANOTHER = "me", "another"
"""Who leads here, and who else may."""
LEASE_KEY = ObjectKey("gatelift-system", "gatelift-manager")
STEPS_MAX = 20_000
"""A machine that is not quiet after so many steps is in a loop."""


GREETED = ("version", "adopts")
"""What of a view an agent says in each session."""


@dataclass
class World:
    """Management API, machine, links and agents, and the time."""

    api: Api = field(default_factory=Api)
    agents: dict[str, ScriptedAgent] = field(default_factory=dict)
    now: float = 1000.0
    term: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
    greetings: dict[str, dict[str, Any]] = field(default_factory=dict)  # what an agent says of itself each time
    emitted: list[EmitEvent] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    stepped_down: list[str] = field(default_factory=list)
    history: list[Command] = field(default_factory=list)
    running: dict[tuple[str, int, str], float] = field(default_factory=dict)
    runs: list[tuple[str, int, str]] = field(default_factory=list)
    queue: deque[events.Event] = field(default_factory=deque)
    wire: deque[tuple[str, int, Report]] = field(default_factory=deque)
    reports: int = 0
    fail: Callable[[Create | Patch | Delete], WriteError | None] | None = None
    read_fails: Callable[[Read], events.ReadFailed | None] | None = None
    lease: Lease | None = None
    """The Lease as a read finds it; a manager that boots holds it."""
    watch_late: bool = False
    unlisted: set[resources.Resource] = field(default_factory=set)
    """Kinds of which no list comes when they are to be listed anew."""
    hidden: set[ObjectRef] = field(default_factory=set)
    """Objects that no list and no watch shows; a read of one finds it."""
    stop_after: int | None = None
    tell: Callable[[Any, Any], None] = lambda _who, _what: None
    """Told of each write, message, report and event as it happens, for transcripts."""
    steps: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    links: ScriptedLinks = field(default_factory=ScriptedLinks)
    machine: Machine = field(init=False)

    def __post_init__(self) -> None:
        self.boot()

    # --- the manager's life ---------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Start a new manager: new memory, higher term, complete lists first."""
        self.term += 1
        self.links = ScriptedLinks(tell=self._tell)
        self.queue.clear()
        self.wire.clear()
        self.api.changes.clear()
        ids = WriteIds(first=self.term * 1_000_000)
        settings = CoreSettings(**{"origin": "origin", "kinds": SERVED, **self.settings})
        self.machine = Machine(settings, self.links, ids)
        self.put(events.ClockRead(unix_seconds=1_795_000_000.0 + self.now))
        self.lease = Lease(spec=LeaseSpec(holder_identity=ME, lease_transitions=self.term))
        self.put(events.LeadershipGained(term=self.term, lease=LEASE_KEY, holder=ME))
        self.put(events.LeadershipExtended(valid_until=self.now + 1e9))
        self._list()

    def _list(self) -> None:
        """Tell of all that lists show, and that they are complete."""
        for ref, document in list(self.api.objects.items()):
            if ref not in self.hidden:
                self.put(seen(ref, document))
        for resource in watched(self.machine.core.kinds):
            if resource not in self.unlisted:
                self.put(Synced(resource))

    def deposed(self, term: int) -> None:
        """Let another candidate have taken the Lease, which nobody here has heard of."""
        self.lease = Lease(spec=LeaseSpec(holder_identity=ANOTHER, lease_transitions=term))

    def _tell(self, who: Any, what: Any) -> None:
        self.tell(who, what)

    def restart(self) -> None:
        """Throw the manager away, start another, let all agents greet it."""
        self.boot()
        for name in self.agents:
            self.connect(name, **self.greetings.get(name, {}))

    def connect(self, name: str, *, resumed: bool = False, **changes: Any) -> ScriptedAgent:
        """Let an agent open a session: inventory, open link, its final states again."""
        agent = self.agents.get(name) or ScriptedAgent(name=name, world=self)
        self.agents[name] = agent
        self.sessions[name] = self.sessions.get(name, 0) + 1
        agent.session = session = self.sessions[name]
        self.greetings.setdefault(name, {}).update((each, changes[each]) for each in GREETED if each in changes)
        known = self.links.views.get(name)
        kinds = frozenset(kind.name for kind in self.machine.core.kinds if kind.travels)
        view = replace(
            known or ClusterView(name=name, kinds=kinds, credits=256),
            state=LinkState.CONNECTED,
            session=session,
            open=True,
            fenced_through=0,
            **changes,
        )
        revision = self.machine.core.record_revision
        self.links.views[name] = view
        if not resumed:
            self.upcall(
                PlacementsInventoried(
                    cluster=name,
                    session=session,
                    record_revision=revision,
                    applied=agent.applied,
                    entries=agent.inventory(),
                    unproven=view.unproven,
                    unproven_through=view.unproven_through,
                )
            )
        self.upcall(LinkOpened(cluster=name, session=session, resumed=resumed))
        if not resumed:
            agent.resend()
        return agent

    def cut(self, name: str, *, lost: bool = False) -> None:
        """End the session of a cluster."""
        view = self.links.views[name]
        state = LinkState.LOST if lost else LinkState.SUSPECT
        self.links.views[name] = replace(view, open=False, state=state)
        self.agents[name].session = 0
        self.upcall(LinkBroken(cluster=name, session=view.session))
        if lost:
            self.upcall(LinkLost(cluster=name))

    def fence(self, name: str, who: str = "ada", *, through: int = 0) -> None:
        """Let a person's word about a lost cluster's session (its last) stand in its status."""
        through = through or self.sessions[name]
        self.links.views[name] = replace(self.links.views[name], fenced_through=through, fenced_by=who)
        self.upcall(FencedByPerson(cluster=name, through_session=through, who=who))

    # --- events ---------------------------------------------------------------------------------------------------

    def put(self, event: events.Event) -> None:
        self.queue.append(event)

    def upcall(self, upcall: Upcall) -> None:
        """Hand the machine an upcall of its links, at once."""
        self.links.pending.append(upcall)
        self.give(events.Ticked())

    def report(self, cluster: str, session: int, report: Report) -> None:
        self.wire.append((cluster, session, report))
        self.tell(f"{cluster} says", report)

    def give(self, event: events.Event) -> None:
        """Hand the machine one event and queue what follows from its commands."""
        commands = self.machine.handle(event, self.now)
        invariants.check(self.machine.core, self.now)
        self.history += commands
        for command in commands:
            self._carry_out(command)

    def _carry_out(self, command: Command) -> None:
        match command:
            case Create() | Patch() | Delete():
                self._write(command)
            case Read() if self.read_fails is not None and (failed := self.read_fails(command)) is not None:
                self.put(failed)
            case Read() if command.ref == ObjectRef(resources.LEASE, LEASE_KEY):
                self.put(events.ReadDone(read_id=command.read_id, ref=command.ref, object=self.lease))
            case Read():
                document = self.api.objects.get(command.ref)
                found = seen(command.ref, document) if document is not None else None
                self.put(
                    events.ReadDone(
                        read_id=command.read_id,
                        ref=command.ref,
                        object=found.object if found else None,
                        raw=found.raw if found else b"",
                    )
                )
            case ReadAll():
                everything = [
                    seen(ref, one)
                    for ref, one in self.api.objects.items()
                    if ref.resource == command.resource and command.namespace in ("", ref.key.namespace)
                ]
                listed = tuple((one.object, one.raw) for one in everything)
                self.put(events.ReadAllDone(read_id=command.read_id, objects=listed))
            case ListOutOfSight():
                kinds = self.machine.core.kinds
                asked = {resource for resource, _ in lost(kinds)}
                there = ((ref.resource, seen(ref, one).object) for ref, one in self.api.objects.items())
                told = (out_of_sight(kinds, *each) for each in there if each[0] in asked)
                hidden = tuple(one for one in told if one is not None)
                self.put(events.OutOfSightListed(read_id=command.read_id, objects=hidden))
            case ListAnew():
                self._list()
            case EmitEvent():
                self.emitted.append(command)
                self.tell("event", command)
            case Note():
                self.notes.append(command)
            case StepDown():
                self.stepped_down.append(command.reason)

    def _write(self, command: Create | Patch | Delete) -> None:
        error = self.fail(command) if self.fail is not None else None
        if error is not None and error is not WriteError.UNKNOWN:
            self.put(WriteFailed(write_id=command.write_id, error=error, message="as told"))
            return
        try:
            document = self.api.carry_out(command)
            self.tell("write", self.api.writes[-1])
        except ApiError as failure:
            self.put(WriteFailed(write_id=command.write_id, error=failure.error, message=str(failure)))
            return
        if error is WriteError.UNKNOWN:
            self.put(WriteFailed(write_id=command.write_id, error=error, message="timeout"))
            return
        found = seen(command.ref, document) if document is not None else None
        self.put(
            WriteDone(
                write_id=command.write_id,
                object=found.object if found else None,
                raw=found.raw if found else b"",
            )
        )

    # --- running --------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Let the next thing happen; False when nothing is left at this time."""
        self.steps += 1
        if self.queue:
            self.give(self.queue.popleft())
        elif self.api.changes and not self.watch_late:
            kind, ref, document = self.api.changes.popleft()
            event = seen(ref, document)
            if ref not in self.hidden:
                self.give(event if kind == "seen" else ObjectGone(ref.resource, event.object))
        elif self.links.sent:
            cluster, session, sequence, message = self.links.sent.popleft()
            self.agents[cluster].receive(session, sequence, message)
        elif self.wire:
            cluster, session, report = self.wire.popleft()
            self.reports += 1
            if session == self.agents[cluster].session:
                upcall = Reported(cluster=cluster, session=session, sequence=self.reports, message=report)
                self.links.pending.append(upcall)
                self.give(events.Ticked())
        elif (due := self.machine.next_deadline()) is not None and due <= self.now:
            self.give(events.Ticked())
        else:
            return False
        return True

    def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(STEPS_MAX):
            if self.stop_after is not None and self.steps >= self.stop_after:
                return
            if not self.step():
                return
        raise AssertionError(f"not quiet after {STEPS_MAX} steps; last: {self.history[-6:]}")

    def advance(self, seconds: float) -> None:
        """Let the time pass, through every deadline on the way."""
        end = self.now + seconds
        self.settle()
        while (due := self.machine.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.give(events.Ticked())
            self.settle()
        self.now = end
        self.settle()
        if self.stop_after is None:
            self._check_shown()

    def _check_shown(self) -> None:
        """Check that queues show what the engine has, unless the machine will look at them again."""
        core = self.machine.core
        wrong = [
            problem
            for ref, document in self.api.objects.items()
            if ref.resource in (resources.CLUSTER_QUEUE, resources.LOCAL_QUEUE)
            and not moves(core, ref.resource, ref.key, document)
            for problem in queue_is_wrong(core, ref.resource, ref.key, document)
        ]
        assert core.stepped_down or not core.leads(self.now) or not wrong, wrong

    # --- the book of runs -----------------------------------------------------------------------------------------

    def started(self, key: PlacementKey, cluster: str) -> None:
        """Note that a placement was lifted; two of one workload at once is the one thing that must not be."""
        others = [run for run in self.running if run[0] == key.uid and run != (key.uid, key.epoch, cluster)]
        assert not others, f"{key} on {cluster} runs beside {others}"
        self.running[(key.uid, key.epoch, cluster)] = self.now
        self.runs.append((key.uid, key.epoch, cluster))

    def stopped(self, key: PlacementKey, cluster: str) -> None:
        self.running.pop((key.uid, key.epoch, cluster), None)

    def local_stop(self, cluster: str, held: Held) -> None:
        """On `local` a lifted pod that has to stop is deleted."""
        if cluster == "local" and held.commit is not None and held.commit.kind == "Pod":
            self.api.delete(ObjectRef(POD, ObjectKey(held.commit.namespace, held.commit.name)))

    # --- looking --------------------------------------------------------------------------------------------------

    def find(self, kind: str, name: str = "") -> Doc:
        """Return the one object of a kind (and name)."""
        found = [
            one
            for ref, one in self.api.objects.items()
            if ref.resource.kind == kind and (not name or ref.key.name == name)
        ]
        assert len(found) == 1, f"{len(found)} objects {kind} {name}"
        return found[0]

    def all(self, kind: str) -> list[Doc]:
        return [one for ref, one in self.api.objects.items() if ref.resource.kind == kind]

    def condition(self, document: Doc, type_: str) -> Doc:
        for one in document.get("status", {}).get("conditions", []):
            if one["type"] == type_:
                return dict(one)
        return {}

    def messages(self, kind: type[Message]) -> list[tuple[str, Any]]:
        """Return what was sent of one type, with its cluster."""
        return [(cluster, message) for cluster, message in self.links.log if isinstance(message, kind)]

    def writes(self, kind: str) -> list[str]:
        """Return the verbs of the machine's writes to objects of a kind."""
        return [verb for verb, ref, _ in self.api.writes if ref.resource.kind == kind]


def a_world(
    setting: Iterable[Doc],
    *,
    clusters: tuple[str, ...] = ("a", "b"),
    dispatch: DispatchSettings | None = None,
    readiness: ReadinessSettings | None = None,
    kinds: Registry = SERVED,
    **settings: Any,
) -> World:
    """Return a world that has been set up: objects applied, clusters connected, everything quiet."""
    settings |= {"readiness": readiness, "kinds": kinds}
    world = World(settings={**settings, "dispatch": dispatch} if dispatch is not None else settings)
    for document in setting:
        world.api.apply(document)
    world.settle()
    for name in clusters:
        world.connect(name)
    world.advance(3.0)
    return world


RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "main", "ready": True}],
}
SUCCEEDED = {
    "phase": "Succeeded",
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
}


THE_POD = ObjectRef(POD, ObjectKey(NAMESPACE, "one"))


def a_running_pod() -> tuple[World, ScriptedAgent]:
    """Return a world in which THE_POD runs on cluster a, and the agent of that."""
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[-1], RUNNING)
    world.settle()
    return world, agent


def workload_ref(world: World) -> ObjectRef:
    """Return what names the only Workload of a world."""
    meta = world.find("Workload")["metadata"]
    return ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
