"""A stage for the agent's machine: a pure API store as its cluster, the real manager's session as its peer, a clock.

Nothing here is asynchronous. Commands are carried out at once unless a test holds them back; watch events come in the
order of the writes. The agent can be thrown away and started anew at any moment; what the cluster holds stays.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec

from gatelift_agent.core.admission.desk import MakeBackend, quota_of
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.settings import AgentMode, AgentSettings, Policy
from gatelift_kinds.registry import SERVED
from gatelift_kube.deciding.errors import from_status, write_error
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, EmitEvent, Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import JOB, NAMESPACE, POD, SERVICE_ACCOUNT, Resource
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import Stored
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import CloseReason
from support.agent.values import (
    KEY,
    NAMESPACE_NAME,
    ORIGIN,
    START,
    CrashError,
    Held,
    Ids,
    Peer,
    commit_messages,
    decode,
    namespace_read,
    pods_not_read,
    pods_read,
)
from support.agent.watches import Watches


class Stage(Watches):
    """One cluster, one agent, one manager."""

    def __init__(
        self,
        *,
        mode: AgentMode = AgentMode.REMOTE,
        policy: Policy | None = None,
        backend: MakeBackend = quota_of,
        **settings: Any,
    ) -> None:
        super().__init__(settings.get("registry", SERVED), adopts=settings.get("adopts", False))
        self._backend = backend
        self.now = START
        self.origin = ORIGIN
        self.store = Store(Ids())
        self.mode = mode
        self._policy = policy or Policy(any_namespace=mode is AgentMode.LOCAL)
        self._settings = settings
        self.process = 0
        self.stream: int | None = None
        self.hold: Callable[[ApiWrite], bool] = lambda _write: False
        self.allowed = True
        self.fail: Callable[[ApiWrite], WriteError | None] = lambda _write: None
        self.idle: Callable[[ApiWrite], bool] = lambda _write: False
        """Writes that are answered as done and change nothing, as when a webhook of the cluster undoes them."""
        self.held: deque[Held] = deque()
        self.writes: list[ApiWrite] = []
        self.told: list[EmitEvent] = []
        self.notes: list[commands.AgentNote] = []
        self.identity: list[commands.InstallCertificate | commands.IdentityRefused] = []
        self.events: deque[events.Event] = deque()
        self.cut = False
        self.answers_first = False
        self.performed = 0
        self.crash_before: int | None = None
        self.crash_after: int | None = None
        self.store.listen(self._changed)
        for name in (NAMESPACE_NAME, "gatelift-system", "kube-system"):
            labels = {"gatelift.dev/accept": "true"} if name == NAMESPACE_NAME else {}
            self.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
            self.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": name}})
        self.peer = Peer(ManagerSession(instance="manager-1"))
        self.peer.session.lead(1, self.now)
        self.machine = self._new_machine()

    # --- the cluster --------------------------------------------------------------------------------------------

    def create(self, resource: Resource, document: dict[str, Any]) -> Stored:
        document = copy.deepcopy({"apiVersion": resource.api_version, "kind": resource.kind, **document})
        namespace = document["metadata"].get("namespace", "")
        return self.store.create(self.store.kinds.of(resource), namespace, document, self.now)

    def document(self, resource: Resource, name: str, namespace: str = NAMESPACE_NAME) -> dict[str, Any] | None:
        return self.store.look((resource.group, resource.plural), namespace, name)

    def pod(self, name: str = "p") -> dict[str, Any]:
        found = self.document(POD, name)
        assert found is not None, f"pod {name} is not there"
        return found

    def job(self, name: str = "j") -> dict[str, Any]:
        found = self.document(JOB, name)
        assert found is not None, f"job {name} is not there"
        return found

    def change(self, resource: Resource, name: str, patch: dict[str, Any], subresource: str = "") -> None:
        body = msgspec.json.encode(patch)
        kind = self.store.kinds.of(resource)
        media = "application/merge-patch+json"
        self.store.patch(kind, NAMESPACE_NAME, name, body, media, self.now, subresource=subresource)
        self.settle()

    def remove(self, resource: Resource, name: str, grace: int | None = None, propagation: str = "Background") -> None:
        """Delete as somebody else would."""
        deletion = Deletion(grace_seconds=grace, propagation=propagation)
        self.store.delete(self.store.kinds.of(resource), NAMESPACE_NAME, name, deletion, self.now)
        self.settle()

    def bind(self, name: str = "p", node: str = "node-1") -> None:
        self.store.bind(self.store.kinds.of(POD), NAMESPACE_NAME, name, node, self.now)
        self.settle()

    def run(self, name: str = "p") -> None:
        """Bind a pod and let its kubelet say that it runs and is ready."""
        self.bind(name)
        ready = [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True"},
        ]
        self.change(POD, name, {"status": {"phase": "Running", "conditions": ready}}, "status")

    def finish(self, name: str = "p", phase: str = "Succeeded", message: str = "") -> None:
        """Let a kubelet say a terminal phase."""
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}]
        self.change(POD, name, {"status": {"phase": phase, "message": message, "conditions": conditions}}, "status")
        found = self.document(POD, name)
        if found is not None and found["metadata"].get("deletionTimestamp"):
            self.remove(POD, name, grace=0)  # as a kubelet does once the containers are over

    # --- the manager --------------------------------------------------------------------------------------------

    def send(self, *messages: m.Message) -> None:
        self._peer_outputs(self.peer.session.send(messages, self.now))
        self.settle()

    def offer(self, key: PlacementKey = KEY, kind: str = "Pod", name: str = "p", **fields: Any) -> None:
        self.send(m.Offer(key=key, kind=kind, namespace=NAMESPACE_NAME, name=name, queue="queue", **fields))

    def commit(
        self,
        key: PlacementKey = KEY,
        kind: str = "Pod",
        name: str = "p",
        spec: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        template, commit = commit_messages(key, kind, name, spec, metadata, **fields)
        if self.mode is AgentMode.LOCAL:
            found = self.store.look(("", "pods") if kind == "Pod" else ("batch", "jobs"), NAMESPACE_NAME, name)
            admitted = found["metadata"]["uid"] if found is not None else "gone"
            commit = replace(commit, objects=tuple(replace(one, template=admitted) for one in commit.objects))
        self.send(template, commit)

    def place(self, key: PlacementKey = KEY, kind: str = "Pod", name: str = "p", **fields: Any) -> None:
        """Offer and commit."""
        self.offer(key, kind, name)
        self.commit(key, kind, name, **fields)

    def confirm(self, *keys: PlacementKey) -> None:
        self.send(m.Confirm(keys=keys or (KEY,)))

    def cut_stream(self) -> None:
        """Break the stream on both sides; new dials fail until `mend`."""
        self.cut = True
        if self.stream is not None:
            stream = self.stream
            self._hang_up(stream)
            self.events.append(events.ManagerStreamClosed(stream_id=stream, text="cut"))
        self.settle()

    def mend(self, *, resume: bool = True) -> None:
        """Let dials through; wait until the agent has dialled and the session is open."""
        self.cut = False
        self.resume = resume
        for _ in range(200):
            if self.peer.open:
                return
            self.pass_seconds(1.0)
        raise AssertionError("no session within 200 s")

    # --- the agent ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Let the agent lead, list, dial and resync."""
        self.post(events.AgentLeadershipGained(term=self.process, settle_seconds=0.0, unix=self.now))
        self.lead()
        for _ in range(100):
            if self.peer.open:
                return
            self.pass_seconds(0.5)
        raise AssertionError("no session within 50 s")

    def lead(self, seconds: float = 1e9) -> None:
        self.post(events.AgentLeadershipExtended(valid_until=self.now + seconds))

    def crash(self) -> None:
        """Throw the agent away; writes that had not landed never do, unless held ones are landed later."""
        self.events.clear()
        self.watched, self.watching = set(), False
        if self.stream is not None:
            self._hang_up(self.stream)
        self.machine = self._new_machine()

    def restart(self) -> None:
        self.crash()
        self.start()

    def post(self, event: events.Event) -> None:
        self.events.append(event)
        self.settle()

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass, stopping at every deadline of either machine."""
        end = self.now + seconds
        for _ in range(10_000):
            self.settle()
            due = [at for at in (self.machine.next_deadline(), self.peer.session.next_deadline()) if at is not None]
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            self.events.append(events.AgentTicked())
            self._peer_outputs(self.peer.session.tick(self.now))
        else:
            raise AssertionError("a deadline that never moves on")
        self.now = end
        self.settle()

    def settle(self) -> None:
        """Handle events until there are none."""
        for _ in range(100_000):
            if not self.events:
                return
            for command in self.machine.handle(self.events.popleft(), self.now):
                self._perform(command)
        raise AssertionError("events without end")

    def land(self, *, count: int | None = None) -> None:
        """Let held writes land, oldest first; their answers reach the agent that asked, if it still lives."""
        for _ in range(len(self.held) if count is None else count):
            self._write(self.held.popleft().command)
        self.settle()

    def land_unanswered(self) -> None:
        """Let held writes land after the agent that asked them has died."""
        while self.held:
            self._write(self.held.popleft().command, answered=False)
        self.settle()

    def lose(self) -> None:
        """Drop held writes; the agent is told that nobody knows what became of them."""
        while self.held:
            self._answer(
                WriteFailed(write_id=self.held.popleft().command.write_id, error=WriteError.UNKNOWN, message="timeout")
            )
        self.settle()

    def placement(self, key: PlacementKey = KEY) -> Placement | None:
        return self.machine.world.placements.get(key)

    def state(self, key: PlacementKey = KEY) -> str:
        found = self.placement(key)
        return found.state.value if found is not None else "none"

    def written(self, kind: type[Any], resource: Resource | None = None) -> list[Any]:
        """Return the writes of one type that were asked for, of placements' objects only."""
        resources = {resource} if resource is not None else {POD, JOB}
        return [write for write in self.writes if isinstance(write, kind) and write.ref.resource in resources]

    # --- inside -------------------------------------------------------------------------------------------------

    def _new_machine(self) -> AgentMachine:
        self.process += 1
        named = f"agent-{self.process}"
        settings = AgentSettings(mode=self.mode, instance=named, policy=self._policy, **self._settings)
        return AgentMachine(settings, backend=self._backend)

    def _perform(self, command: commands.Command) -> None:
        self.performed += 1
        if self.performed == self.crash_before:
            raise CrashError
        self._carry(command)
        if self.performed == self.crash_after:
            raise CrashError

    def _carry(self, command: commands.Command) -> None:
        match command:
            case Create() | Patch() | Delete():
                self._take_write(command)
            case commands.OpenManagerStream() | commands.SendToManager() | commands.CloseManagerStream():
                self._take_stream(command)
            case commands.WatchCluster():
                self._list_cluster()
            case commands.WatchNamespaces(namespaces=namespaces):
                self._list_namespaces(namespaces)
            case commands.ReadPods():
                self.events.append(pods_read(self.store, command) if self.allowed else pods_not_read(command))
            case commands.ReadNamespace():
                self.events.append(namespace_read(self.store, command))
            case commands.StopWatching():
                self.watched, self.watching = set(), False
            case commands.InstallCertificate() | commands.IdentityRefused():
                self.identity.append(command)
            case EmitEvent():
                self.told.append(command)
            case commands.AgentNote():
                self.notes.append(command)
            case _:
                raise AssertionError(f"nobody carries out {command}")

    def _take_write(self, write: ApiWrite) -> None:
        self.writes.append(write)
        error = self.fail(write)
        if error is not None:
            self._answer(WriteFailed(write_id=write.write_id, error=error, message=f"{write.ref}: told to fail"))
        elif self.hold(write):
            self.held.append(Held(write))
        elif self.idle(write):
            self._answer(self._unchanged(write))
        else:
            self._write(write)

    def _unchanged(self, write: ApiWrite) -> WriteDone:
        resource = write.ref.resource
        stored = self.store.find((resource.group, resource.plural), write.ref.key.namespace, write.ref.key.name)
        found = decode(resource, stored) if stored is not None else None
        return WriteDone(write_id=write.write_id, object=found, raw=stored.raw if stored is not None else b"")

    def _take_stream(
        self, command: commands.OpenManagerStream | commands.SendToManager | commands.CloseManagerStream
    ) -> None:
        stream_id = command.stream_id
        if isinstance(command, commands.OpenManagerStream):
            self._open(stream_id)
        elif stream_id != self.stream:
            return
        elif isinstance(command, commands.SendToManager):
            received = wire.FrameReceived(stream_id=stream_id, frame=command.frame)
            self._peer_outputs(self.peer.session.handle(received, self.now))
        else:
            self._hang_up(stream_id)

    def _hang_up(self, stream_id: int) -> None:
        self.stream = None
        self.peer.open = False
        self._peer_outputs(self.peer.session.handle(wire.StreamClosed(stream_id=stream_id), self.now))

    resume = True

    def _open(self, stream_id: int) -> None:
        if self.cut:
            self.events.append(events.ManagerStreamClosed(stream_id=stream_id, text="unreachable"))
            return
        self._stream_number = getattr(self, "_stream_number", 0) + 1
        self.stream = stream_id
        self._peer_stream = self._stream_number
        self._peer_outputs(self.peer.session.handle(wire.StreamOpened(stream_id=stream_id), self.now))
        self.events.append(events.ManagerStreamOpened(stream_id=stream_id))

    def _peer_outputs(self, outputs: Iterable[wire.SessionOutput]) -> None:
        for output in outputs:
            match output:
                case wire.Transmit(stream_id=stream_id, frame=frame):
                    if stream_id == self.stream:
                        self.events.append(events.ManagerFrameArrived(stream_id=stream_id, frame=frame))
                case wire.CloseStream(stream_id=stream_id):
                    if stream_id == self.stream:
                        self.stream = None
                        self.peer.open = False
                        self.events.append(
                            events.ManagerStreamClosed(stream_id=stream_id, text="closed by the manager")
                        )
                case _:
                    self._peer_upcall(output)

    def _peer_upcall(self, output: wire.SessionOutput) -> None:
        peer = self.peer
        session = peer.session
        match output:
            case wire.GreetingReceived(stream_id=stream_id, hello=hello):
                peer.greetings.append(hello)
                if peer.turns_away:
                    away = CloseReason.ANOTHER_AGENT, "another agent serves this cluster"
                    self._peer_outputs(session.refuse(stream_id, *away, self.now, ticket=peer.turns_away.pop(0)))
                    return
                peer.number += 1
                allowed = self.resume
                self._peer_outputs(
                    session.welcome(stream_id, peer.number, self.origin, self.now, resume_allowed=allowed)
                )
            case wire.Welcomed(resumed=False):
                peer.request += 1
                self._peer_outputs(session.ask_inventory(peer.request, self.now, peer.namespaces))
            case wire.InventoryReceived(entries=entries, unheard=unheard):
                peer.inventories.append(entries)
                peer.unheard.append(unheard)
            case wire.Opened():
                peer.open = True
            case wire.Delivered(message=message):
                peer.heard.append(message)
            case wire.LeaseRenewed() if peer.grants:
                self._peer_outputs(session.grant(self.now))
            case wire.SessionEnded():
                peer.open = False
            case _:
                pass

    def _write(self, command: ApiWrite, *, answered: bool = True) -> None:
        waiting = len(self.events)
        try:
            stored = self._carry_out(command)
        except RequestRefusedError as error:
            failure = from_status(error.code, msgspec.json.encode(error.status()))
            outcome: WriteDone | WriteFailed = WriteFailed(
                write_id=command.write_id, error=write_error(failure), message=f"{command.ref}: {error.message}"
            )
        else:
            found = decode(command.ref.resource, stored) if stored is not None else None
            outcome = WriteDone(write_id=command.write_id, object=found, raw=stored.raw if stored is not None else b"")
        if answered and self.answers_first:
            self.events.insert(waiting, outcome)  # the watch is slower than the answer
        elif answered:
            self._answer(outcome)

    def _answer(self, outcome: WriteDone | WriteFailed) -> None:
        self.events.append(outcome)

    def _carry_out(self, command: ApiWrite) -> Stored | None:
        kind = self.store.kinds.of(command.ref.resource)
        namespace, name = command.ref.key.namespace, command.ref.key.name
        match command:
            case Create(body=body, dry_run=dry_run):
                return self.store.create(kind, namespace, msgspec.json.decode(body), self.now, dry_run=dry_run)
            case Patch(body=body, kind=patch, subresource=subresource):
                return self.store.patch(kind, namespace, name, body, patch.value, self.now, subresource=subresource)
            case Delete():
                deletion = Deletion(
                    grace_seconds=command.grace_seconds,
                    uid=command.uid,
                    version=command.resource_version,
                    propagation=command.propagation,
                )
                deleted = self.store.delete(kind, namespace, name, deletion, self.now)
                return None if deleted.gone else deleted.stored
