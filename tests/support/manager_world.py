"""A world around the manager's machine, without I/O: a management API in memory, links that are lists, scripted agents.

`World.settle()` carries out commands and delivers their outcome until nothing is left to do at the present time;
`advance` moves the time through every deadline. Invariants are checked after each step, and the world keeps the one
book that counts: which (workload, epoch, cluster) had lifted objects, from when to when.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from gatelift.core import events, invariants
from gatelift.core.commands import Command, Note, Read, ReadAll, StepDown
from gatelift.core.dispatch_values import DispatchSettings
from gatelift.core.link_values import (
    ClusterView,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinksOutcome,
    LinkState,
    PlacementsInventoried,
    Reported,
    Sent,
    Upcall,
    WriteIds,
)
from gatelift.core.machine import WATCHED, Machine
from gatelift.core.state import Settings
from gatelift_kinds.registry import KINDS
from gatelift_kube import resources
from gatelift_kube.decoding import read_object
from gatelift_kube.resources import ObjectKey, ObjectRef, Resource
from gatelift_kube.writes import (
    Create,
    Delete,
    EmitEvent,
    ObjectGone,
    ObjectSeen,
    Patch,
    PatchKind,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import (
    Applied,
    Bid,
    BidKind,
    Commit,
    Confirm,
    Finished,
    Forget,
    GatesLifted,
    InventoryEntry,
    Message,
    ObjectReport,
    Offer,
    Refused,
    Report,
    Stop,
    Stopped,
    Withdraw,
)
from gatelift_wire.refusals import Refusal

Doc = dict[str, Any]
ALL = {f"{one.api_version}/{one.kind}": one for one in (*WATCHED, resources.COHORT, resources.PRIORITY_CLASS)}
STEPS_MAX = 20_000
"""A machine that is not quiet after so many steps is in a loop."""


def resource_of(document: Doc) -> Resource:
    return ALL[f"{document['apiVersion']}/{document['kind']}"]


def ref_of(document: Doc) -> ObjectRef:
    meta = document["metadata"]
    return ObjectRef(resource_of(document), ObjectKey(meta.get("namespace", ""), meta["name"]))


class ApiError(Exception):
    def __init__(self, error: WriteError, message: str = "") -> None:
        super().__init__(message or error.value)
        self.error = error


@dataclass
class Api:
    """The management API: objects as JSON, one resourceVersion for all, finalizers, owner garbage collection."""

    objects: dict[ObjectRef, Doc] = field(default_factory=dict)
    version: int = 100
    uids: int = 0
    changes: deque[tuple[str, ObjectRef, Doc]] = field(default_factory=deque)
    writes: list[tuple[str, ObjectRef, Doc | list[Doc]]] = field(default_factory=list)

    def apply(self, document: Doc) -> Doc:
        """Create an object as a user would."""
        document = copy.deepcopy(document)
        ref = ref_of(document)
        if ref in self.objects:
            raise ApiError(WriteError.ALREADY_EXISTS)
        self.uids += 1
        meta = document["metadata"]
        meta.setdefault("uid", f"uid-{self.uids}")
        meta.setdefault("creationTimestamp", "2026-11-21T00:00:00Z")
        meta.setdefault("generation", 1)
        return self._store(ref, document)

    def _store(self, ref: ObjectRef, document: Doc) -> Doc:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        if document["metadata"].get("deletionTimestamp") and not document["metadata"].get("finalizers"):
            self._remove(ref, document)
            return document
        self.objects[ref] = document
        self.changes.append(("seen", ref, copy.deepcopy(document)))
        return document

    def _remove(self, ref: ObjectRef, document: Doc) -> None:
        self.objects.pop(ref, None)
        self.changes.append(("gone", ref, copy.deepcopy(document)))
        uid = document["metadata"]["uid"]
        for other, dependent in list(self.objects.items()):
            if any(owner["uid"] == uid for owner in dependent["metadata"].get("ownerReferences", [])):
                self.delete(other)

    def delete(self, ref: ObjectRef) -> None:
        """Delete an object as a user (or the garbage collector) would."""
        document = self.objects.get(ref)
        if document is None or document["metadata"].get("deletionTimestamp"):
            return
        document = copy.deepcopy(document)
        document["metadata"]["deletionTimestamp"] = "2026-11-21T00:10:00Z"
        self._store(ref, document)

    def edit(self, ref: ObjectRef, change: Callable[[Doc], None]) -> Doc:
        """Change an object as a user would."""
        document = copy.deepcopy(self.objects[ref])
        change(document)
        return self._store(ref, document)

    def carry_out(self, command: Create | Patch | Delete) -> Doc | None:
        """Carry out a write; ApiError says why not."""
        if isinstance(command, Create):
            body = json.loads(command.body)
            self.writes.append(("create", command.ref, body))
            return self.apply(body)
        document = self.objects.get(command.ref)
        if document is None:
            raise ApiError(WriteError.NOT_FOUND)
        if isinstance(command, Delete):
            self.writes.append(("delete", command.ref, {}))
            self.delete(command.ref)
            return self.objects.get(command.ref)
        body = json.loads(command.body)
        self.writes.append((f"patch {command.subresource}".strip(), command.ref, body))
        document = copy.deepcopy(document)
        if command.kind is PatchKind.MERGE:
            document = self._merged(document, body, status=command.subresource == "status")
        else:
            json_patch(document, body)
        return self._store(command.ref, document)

    def _merged(self, document: Doc, body: Doc, *, status: bool) -> Doc:
        meta = document["metadata"]
        for name in ("uid", "resourceVersion"):
            wanted = body.get("metadata", {}).get(name)
            if wanted is not None and wanted != meta[name]:
                raise ApiError(WriteError.CONFLICT, f"{name}: {wanted}, is {meta[name]}")
        if status:
            document["status"] = merged(document.get("status", {}), body.get("status", {}))
            required(document["status"])
            return document
        before = json.dumps(document.get("spec"))
        document = {**merged(document, {**body, "status": document.get("status", {})})}
        if json.dumps(document.get("spec")) != before:
            document["metadata"]["generation"] = meta.get("generation", 1) + 1
        return document


def merged(old: Any, new: Any) -> Any:
    """Return the outcome of a JSON merge patch."""
    if not isinstance(new, dict):
        return new
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def required(status: Doc) -> None:
    """Refuse what the CRDs refuse: conditions and check states without a required field."""
    for condition in status.get("conditions", []):
        ours = "observedGeneration" in condition  # a pod's conditions may do without
        if ours and not (condition.get("reason") and "message" in condition and condition.get("lastTransitionTime")):
            raise ApiError(WriteError.INVALID, f"condition {condition}")
    for check in status.get("admissionChecks", []):
        if not check.get("state") or "message" not in check or not check.get("lastTransitionTime"):
            raise ApiError(WriteError.INVALID, f"check {check}")


def json_patch(document: Doc, operations: list[Doc]) -> None:
    """Apply the operations of a JSON patch that the kinds use."""
    for operation in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        parent: Any = document
        for part in parts[:-1]:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        last: Any = int(parts[-1]) if isinstance(parent, list) and parts[-1] != "-" else parts[-1]
        match operation["op"]:
            case "test":
                have = parent[last] if isinstance(parent, list) else parent.get(last)
                if have != operation["value"]:
                    raise ApiError(WriteError.CONFLICT, f"test {operation['path']}")
            case "remove":
                del parent[last]
            case "replace":
                parent[last] = operation["value"]
            case "add":
                if isinstance(parent, list):
                    parent.append(operation["value"]) if last == "-" else parent.insert(last, operation["value"])
                else:
                    parent[last] = operation["value"]


@dataclass
class ScriptedLinks:
    """Links whose sessions are what the test says; what is sent lands in `sent`."""

    views: dict[str, ClusterView] = field(default_factory=dict)
    sent: deque[tuple[str, int, int, Message]] = field(default_factory=deque)
    log: list[tuple[str, Message]] = field(default_factory=list)
    pending: deque[Upcall] = field(default_factory=deque)
    sequences: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    tell: Callable[[Any, Any], None] = lambda _who, _what: None

    def handle(self, event: events.Event, now: float, *, record_revision: int) -> LinksOutcome:
        self.revision = record_revision
        upcalls = tuple(self.pending)
        self.pending.clear()
        return LinksOutcome(upcalls=upcalls)

    def owns_write(self, write_id: int) -> bool:
        return False

    def send(self, cluster: str, messages: Iterable[Message], now: float) -> Sent:
        view = self.views.get(cluster)
        if view is None or not view.open:
            return Sent()
        first = self.sequences.get(cluster, 0) + 1
        for offset, message in enumerate(messages):
            self.sequences[cluster] = first + offset
            self.sent.append((cluster, view.session, first + offset, message))
            self.log.append((cluster, message))
            self.tell(f"to {cluster}:", message)
        return Sent(session=view.session, first_sequence=first)

    def place_counts(self, cluster: str, *, placements: int, offers: int) -> None:
        self.counts = (cluster, placements, offers)

    def state(self, cluster: str) -> ClusterView | None:
        return self.views.get(cluster)

    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.views))

    def next_deadline(self) -> float | None:
        return None


@dataclass
class Held:
    """A placement at a scripted agent."""

    offer: Offer | None = None
    commit: Commit | None = None
    state: str = "Held"
    lifted: bool = False
    confirmed: int = 0
    final: Report | None = None


@dataclass
class ScriptedAgent:
    """A worker cluster that keeps the rules: R1 (starts only when confirmed in the session), R5, R7.

    `bid` decides what it answers to an offer; `auto` False stops it after Applied until `lift` is called.
    """

    name: str
    world: World
    placements: dict[PlacementKey, Held] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    bid: Callable[[Offer], Bid] | None = None
    refuse_commit: Refusal | None = None
    auto: bool = True
    silent: bool = False
    session: int = 0
    applied: int = 0
    commits: list[PlacementKey] = field(default_factory=list)

    def receive(self, session: int, sequence: int, message: Message) -> None:
        if session != self.session:
            return
        self.applied = sequence
        if self.silent:
            return
        match message:
            case Offer():
                self._offer(message)
            case Commit():
                self._commit(message)
            case Confirm():
                for key in message.keys:
                    if key in self.placements:
                        self.placements[key].confirmed = self.session
                        self._start(key)
            case Withdraw():
                held = self.placements.get(message.key)
                if held is not None and held.state == "Held":
                    del self.placements[message.key]
            case Stop():
                self._stop(message.key)
            case Forget():
                self.placements.pop(message.key, None)

    def say(self, report: Report) -> None:
        self.world.report(self.name, self.session, report)

    def _offer(self, offer: Offer) -> None:
        if self.used.get(offer.key.uid, 0) >= offer.key.epoch:
            self.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.EPOCH_STALE))
            return
        answer = self.bid(offer) if self.bid is not None else Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=30.0)
        if answer.kind is not BidKind.REFUSED:
            self.placements[offer.key] = Held(offer=offer)
        self.say(answer)

    def _commit(self, commit: Commit) -> None:
        key = commit.key
        held = self.placements.get(key)
        if held is not None and held.commit is not None:
            return
        if self.used.get(key.uid, 0) >= key.epoch:
            self.say(Refused(key=key, refusal=Refusal.EPOCH_STALE))
            return
        self.used[key.uid] = key.epoch
        if held is None:
            self.say(Refused(key=key, refusal=Refusal.HOLD_EXPIRED))
            return
        if self.refuse_commit is not None:
            self.placements.pop(key, None)
            self.say(Refused(key=key, refusal=self.refuse_commit, text="as told"))
            return
        self.commits.append(key)
        self.placements[key] = Held(commit=commit, state="Gated", confirmed=self.session)
        self.say(Applied(key=key))
        if self.auto:
            self._start(key)

    def _start(self, key: PlacementKey) -> None:
        held = self.placements[key]
        if held.state == "Gated" and held.confirmed == self.session and self.auto:
            self.lift(key)

    def lift(self, key: PlacementKey) -> None:
        """Lift the gates: from here it runs."""
        held = self.placements[key]
        held.lifted, held.state = True, "Running"
        self.world.started(key, self.name)
        self.say(GatesLifted(key=key))

    def _stop(self, key: PlacementKey) -> None:
        held = self.placements.get(key)
        self.used[key.uid] = max(self.used.get(key.uid, 0), key.epoch)
        if held is not None and isinstance(held.final, Finished):
            self.say(held.final)
            return
        if held is not None and held.lifted:
            self.world.stopped(key, self.name)
            self.world.local_stop(self.name, held)
        final = Stopped(key=key)
        self.placements[key] = replace(held or Held(), state="Reported", lifted=False, final=final)
        self.say(final)

    def show(self, key: PlacementKey, status: Doc) -> None:
        """Report the status of the one object of a placement."""
        held = self.placements[key]
        assert held.commit is not None
        body = json.dumps(status).encode()
        self.say(ObjectReport(key=key, kind=held.commit.kind, name=held.commit.name, uid="w", status=body))

    def finish(self, key: PlacementKey, status: Doc, *, succeeded: bool = True, message: str = "") -> None:
        """End the work by itself."""
        held = self.placements[key]
        assert held.commit is not None
        report = ObjectReport(
            key=key, kind=held.commit.kind, name=held.commit.name, uid="w", status=json.dumps(status).encode()
        )
        final = Finished(
            key=key,
            succeeded=succeeded,
            reason="Succeeded" if succeeded else "Failed",
            message=message,
            objects=(report,),
        )
        self.world.stopped(key, self.name)
        held.state, held.lifted, held.final = "Reported", False, final
        self.say(final)

    def die(self) -> None:
        """End all that runs, and know nothing: the machine is gone."""
        for key in self.placements:
            self.world.stopped(key, self.name)
        self.placements.clear()

    def restart(self) -> None:
        """Lose what is only in memory: holds, and epochs of which no object is left (R5)."""
        self.placements = {key: held for key, held in self.placements.items() if held.state != "Held"}
        self.used = {key.uid: key.epoch for key in self.placements}

    def inventory(self) -> tuple[InventoryEntry, ...]:
        return tuple(
            InventoryEntry(key=key, namespace="team", name="one", state=held.state, lifted=held.lifted)
            for key, held in sorted(self.placements.items())
            if held.state != "Held"  # nothing of a hold exists, it expires by itself
        )

    def resend(self) -> None:
        """After a resync: final states are said again (R6)."""
        for held in list(self.placements.values()):
            if held.final is not None:
                self.say(held.final)


@dataclass
class World:
    """Management API, machine, links and agents, and the time."""

    api: Api = field(default_factory=Api)
    agents: dict[str, ScriptedAgent] = field(default_factory=dict)
    now: float = 1000.0
    term: int = 0
    sessions: dict[str, int] = field(default_factory=dict)
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
    watch_late: bool = False
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
        settings = Settings(origin="origin", kinds=KINDS, **self.settings)
        self.machine = Machine(settings, self.links, ids)
        self.put(events.ClockRead(unix_seconds=1_795_000_000.0 + self.now))
        self.put(events.LeadershipGained(term=self.term))
        self.put(events.LeadershipExtended(valid_until=self.now + 1e9))
        for ref, document in list(self.api.objects.items()):
            self.put(seen(ref, document))
        for resource in WATCHED:
            self.put(Synced(resource))

    def _tell(self, who: Any, what: Any) -> None:
        self.tell(who, what)

    def restart(self) -> None:
        """Throw the manager away, start another, let all agents greet it."""
        self.boot()
        for name in self.agents:
            self.connect(name)

    def connect(self, name: str, *, resumed: bool = False, **changes: Any) -> ScriptedAgent:
        """Let an agent open a session: inventory, open link, its final states again."""
        agent = self.agents.get(name) or ScriptedAgent(name=name, world=self)
        self.agents[name] = agent
        self.sessions[name] = self.sessions.get(name, 0) + 1
        agent.session = session = self.sessions[name]
        known = self.links.views.get(name)
        view = replace(
            known or ClusterView(name=name, kinds=frozenset({"Pod", "Job"}), credits=256),
            state=LinkState.CONNECTED,
            session=session,
            open=True,
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
            self.api.delete(ObjectRef(resources.POD, ObjectKey(held.commit.namespace, held.commit.name)))

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


def seen(ref: ObjectRef, document: Doc) -> ObjectSeen:
    raw = json.dumps(document).encode()
    return ObjectSeen(ref.resource, read_object(ref.resource, raw), raw)


def a_world(
    setting: Iterable[Doc], *, clusters: tuple[str, ...] = ("a", "b"), dispatch: DispatchSettings | None = None
) -> World:
    """Return a world that has been set up: objects applied, clusters connected, everything quiet."""
    world = World(settings={"dispatch": dispatch} if dispatch is not None else {})
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
