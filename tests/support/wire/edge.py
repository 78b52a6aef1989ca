"""The manager's network edge on loopback: real gRPC and mTLS, real links, a WorkerCluster API in memory, real agents.

`Edge` is the manager's side without its machine: what the links tell it is kept in `upcalls`. `WireAgent` is an honest
agent (the agent's own session machine over a real stream), `RawStream` one that may write what it likes.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gatelift.adapters import authority
from gatelift.adapters.agents_server import SERVICE, AgentsServer
from gatelift.adapters.enrol_server import EnrolServer
from gatelift.core.api import commands, events
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.enrolment import Enrolments, EnrolmentSettings
from gatelift.core.clusters.link_values import LinkOpened, Upcall, WriteIds
from gatelift.core.clusters.links import Links
from gatelift_kube.deciding.writes import Create, ObjectSeen, Patch, Synced, WriteDone
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.process.clock import monotonic, wall
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.encoding import codec
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.inventory import InventoryChunk, InventoryRequest
from gatelift_wire.values.messages import (
    CertificateRenewed,
    CertificateRequest,
    Close,
    Frame,
    Hello,
    Message,
    Report,
    Welcome,
)
from gatelift_wire.values.refusals import CloseReason
from support.manager.worker_cluster_api import Api
from support.until import until

HOST = "127.0.0.1"
DAY = dt.timedelta(days=1)
LIMIT_SECONDS = 60.0
UpcallT = TypeVar("UpcallT")


def utc_now() -> dt.datetime:
    """Return the time of the wall clock."""
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True, kw_only=True)
class Key:
    """A private key of an agent."""

    private: ec.EllipticCurvePrivateKey

    @classmethod
    def new(cls) -> Key:
        return cls(private=ec.generate_private_key(ec.SECP256R1()))

    @property
    def pem(self) -> bytes:
        return self.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @property
    def digest(self) -> str:
        return authority.key_digest(self.private.public_key())

    def request(self) -> bytes:
        """Return a signing request; its name does not count."""
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        return builder.sign(self.private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What an agent shows, and what it trusts."""

    key: Key
    certificate: bytes
    bundle: bytes


def signed(state: authority.AuthorityState, cluster: str, key: Key | None = None, **times: Any) -> Identity:
    """Return an identity signed by the authority: now, for a day, unless said otherwise (`now`, `lifetime`)."""
    key = key or Key.new()
    uri = f"gatelift://cluster/{cluster}"
    certificate = authority.sign_agent(
        state, key.request(), uri, times.get("lifetime", DAY), times.get("now") or utc_now()
    )
    return Identity(key=key, certificate=certificate, bundle=state.bundle)


def channel(port: int, identity: Identity | None, bundle: bytes) -> grpc.aio.Channel:
    """Return a channel of its own connection; without an identity no certificate is shown."""
    pair = (identity.key.pem, identity.certificate) if identity else (None, None)
    options = (
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_receive_message_length", -1),
    )
    return grpc.aio.secure_channel(f"{HOST}:{port}", grpc.ssl_channel_credentials(bundle, *pair), options=options)


class _Machine:
    """Links as a machine of the loop, so that what drives them here is what drives them in the daemon."""

    def __init__(self, links: Links, upcalls: list[Upcall]) -> None:
        self._links = links
        self._upcalls = upcalls

    def handle(self, event: events.Event, now: float) -> tuple[commands.Command, ...]:
        outcome = self._links.handle(event, now, record_revision=1)
        self._upcalls.extend(outcome.upcalls)
        for upcall in outcome.upcalls:
            if isinstance(upcall, LinkOpened) and not upcall.resumed:
                self._links.compared(upcall.cluster, upcall.session)
        return outcome.commands

    def next_deadline(self) -> float | None:
        return self._links.next_deadline()


class Edge:
    """Both servers over real links. `start` and `stop` it."""

    def __init__(self, *clusters: str, settings: EnrolmentSettings | None = None, leads: bool = True) -> None:
        self.state = authority.new_state(utc_now())
        self.server_pair = self._new_server()
        self.api = Api()
        self.api.objects.clear()
        self.identities: dict[str, Identity] = {}
        for name in clusters:
            self.identities[name] = signed(self.state, name)
            self.api.put(name, spec={}, status={"keyDigest": self.identities[name].key.digest})
        self.upcalls: list[Upcall] = []
        self.events: list[events.Event] = []
        self.notes: list[str] = []
        self.leads = leads
        self.moment = utc_now()
        self.answers_enrolment = True
        self.tells_handled = True
        """Whether the server hears that what it posted is handled."""
        wall_clock = Wall()
        wall_clock.read(wall(), monotonic())
        ids = WriteIds()
        enrolments = Enrolments(ids, settings or EnrolmentSettings())
        self.links = Links(lambda: ManagerSession(instance="manager"), ids, wall_clock, enrolments=enrolments)
        self.links.set_origin("origin-uid")
        self._loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
            _Machine(self.links, self.upcalls),
            self._perform,
            tick=events.Ticked(),
            observe=self._handled,
        )
        self.server = AgentsServer(self._post, self.credentials, wall=lambda: self.moment)
        self.paused: list[float] = []
        """For how long answers to strangers were put off, which here is no time at all."""
        self.enrol = EnrolServer(
            self._post,
            lambda: self.state,
            lambda: self.server_pair,
            lambda: self.leads,
            self.links.expects,
            pause=self._paused,
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        for name in self.api.objects:
            self._post(ObjectSeen(WORKER_CLUSTER, self.api.get(name), b""))
        self._post(Synced(WORKER_CLUSTER))
        if self.leads:
            self._post(events.LeadershipExtended(valid_until=monotonic() + 3600))
            self._post(events.LeadershipGained(term=1))
        await self.server.start(f"{HOST}:0")
        await self.enrol.start(f"{HOST}:0")
        self._task = spawn("edge", self._loop.run())

    async def stop(self) -> None:
        await self.server.stop()
        await self.enrol.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    # --- what a test does -------------------------------------------------------------------------------------------

    def credentials(self) -> tuple[bytes, bytes, bytes]:
        return self.server_pair.key, self.server_pair.certificate, self.state.bundle

    def rotate(self, step: Callable[[authority.AuthorityState], authority.AuthorityState]) -> None:
        """Take one step of a CA rotation, as the authority's store does when it sees one."""
        signer = self.state.current
        self.state = step(self.state)
        if self.state.current != signer:
            self.server_pair = self._new_server()

    def put(self, name: str, **parts: object) -> None:
        """Write a WorkerCluster as a person does; the links see it."""
        self.api.put(name, **parts)
        self._post(ObjectSeen(WORKER_CLUSTER, self.api.get(name), b""))

    def patch_spec(self, name: str, **spec: object) -> None:
        self.put(name, spec={**self.api.objects.get(name, {}).get("spec", {}), **spec})  # type: ignore[dict-item]

    def cluster(self, name: str) -> WorkerCluster:
        return self.api.get(name)

    def send(self, cluster: str, *messages: Message) -> None:
        """Send commands to a cluster whose session is open."""
        sent = self.links.send(cluster, messages, monotonic())
        assert sent.session, f"{cluster} has no open session"
        for command in sent.commands:
            self._perform(command)

    def is_open(self, cluster: str) -> bool:
        """Say whether commands may be sent."""
        view = self.links.state(cluster)
        return view is not None and view.open

    def told(self, kind: type[UpcallT], cluster: str = "") -> list[UpcallT]:
        """Return what the links told the machine, by kind and cluster."""
        found = [each for each in self.upcalls if isinstance(each, kind)]
        return [each for each in found if not cluster or getattr(each, "cluster", "") == cluster]

    def closed_streams(self) -> list[events.AgentStreamClosed]:
        return [each for each in self.events if isinstance(each, events.AgentStreamClosed)]

    def opened_streams(self) -> list[events.AgentStreamOpened]:
        return [each for each in self.events if isinstance(each, events.AgentStreamOpened)]

    # --- inside -----------------------------------------------------------------------------------------------------

    async def _paused(self, seconds: float) -> None:
        self.paused.append(seconds)

    def _new_server(self) -> authority.KeyPair:
        return authority.new_server(self.state, (HOST, "localhost"), DAY, utc_now())

    def _post(self, event: events.Event) -> None:
        self.events.append(event)
        if isinstance(event, events.EnrolmentAsked) and not self.answers_enrolment:
            return
        self._loop.post(event)

    def _handled(self, event: events.Event, seconds: float) -> None:
        if self.tells_handled:
            self.server.handled(event, seconds)

    def _perform(self, command: commands.Command) -> None:
        match command:
            case Patch() | Create():
                asyncio.get_running_loop().call_soon(self._write, command)
            case commands.SendToAgent():
                self.server.send(command)
            case commands.CloseAgentStream():
                self.server.close(command)
            case commands.IssueCertificate():
                asyncio.get_running_loop().call_soon(self.enrol.issue, command, DAY, utc_now())
            case commands.AnswerEnrolment():
                self.enrol.answer(command)
            case commands.Note():
                self.notes.append(command.text)
            case _:
                pass

    def _write(self, command: Patch | Create) -> None:
        outcome = self.api.write(command)
        self._post(outcome)
        if isinstance(outcome, WriteDone) and isinstance(outcome.object, WorkerCluster):
            self._post(ObjectSeen(WORKER_CLUSTER, outcome.object, b""))


class WireAgent:
    """An honest agent: its own session machine, a real stream."""

    def __init__(self, port: int, identity: Identity, instance: str = "agent") -> None:
        self.port = port
        self.identity = identity
        self.session = AgentSession(instance=instance)
        self.session.set_facts(credits_=5, api_reachable=True, replicas=1, kinds=("Pod",), now=monotonic())
        self.delivered: list[object] = []
        self.ended: list[wire.SessionEnded | wire.GreetingEnded] = []
        self.opened: list[wire.Opened] = []
        self._ahead = 0.0
        self._out: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._channel: grpc.aio.Channel | None = None

    async def connect(self) -> WireAgent:
        """Dial, now (the backoff is skipped by letting the agent's clock run ahead), until the session is open."""
        sessions = len(self.opened)
        self._take(self.session.start(self._now()))
        while self._task is None:
            deadline = self.session.next_deadline()
            assert deadline is not None, "the agent waits before it dials"
            self._ahead += max(0.0, deadline - self._now())
            self._take(self.session.tick(self._now()))
        await until(lambda: len(self.opened) > sessions, "the session opens")
        return self

    async def closed(self) -> wire.SessionEnded | wire.GreetingEnded:
        """Wait until the stream is over; return the last ending."""
        await until(lambda: self._task is None, "the stream ends")
        return self.ended[-1]

    @property
    def open(self) -> bool:
        """The session carries messages."""
        return self.session.state is wire.SessionState.OPEN

    def report(self, *messages: Report) -> None:
        self._take(self.session.send(messages, self._now()))

    async def renew(self) -> None:
        """Renew the certificate over the stream, by the same key."""
        before = len(self.delivered)
        self.report(CertificateRequest(request=self.identity.key.request()))
        await until(lambda: any(isinstance(each, CertificateRenewed) for each in self.delivered[before:]), "renewed")
        (renewed,) = [each for each in self.delivered[before:] if isinstance(each, CertificateRenewed)]
        self.identity = replace(self.identity, certificate=renewed.certificate, bundle=renewed.ca_bundle)

    async def close(self) -> None:
        """Hang up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _now(self) -> float:
        return monotonic() + self._ahead

    def _take(self, outputs: Iterable[wire.SessionOutput]) -> None:
        for output in outputs:
            match output:
                case wire.OpenStream():
                    self._out = asyncio.Queue()
                    self._task = spawn("wire agent", self._run(output.stream_id, self._out))
                case wire.Transmit():
                    self._out.put_nowait(codec.encode_from_agent(output.frame))
                case wire.CloseStream():
                    self._out.put_nowait(None)
                case wire.InventoryAsked():
                    self._take(self.session.answer_inventory(output.request, (), self._now()))
                case wire.Delivered():
                    self.delivered.append(output.message)
                case wire.Opened():
                    self.opened.append(output)
                case wire.SessionEnded() | wire.GreetingEnded():
                    self.ended.append(output)
                case _:
                    pass

    async def _run(self, stream_id: int, out: asyncio.Queue[bytes | None]) -> None:
        async with channel(self.port, self.identity, self.identity.bundle) as dialled:
            call = dialled.stream_stream(f"/{SERVICE}/Session")()
            self._take(self.session.handle(wire.StreamOpened(stream_id=stream_id), self._now()))
            writer = spawn("wire agent out", self._write(call, out))
            try:
                with suppress(grpc.RpcError):
                    async for data in call:
                        frame = codec.decode_from_manager(data)
                        event = wire.FrameReceived(stream_id=stream_id, frame=frame)
                        self._take(self.session.handle(event, self._now()))
            finally:
                writer.cancel()
                call.cancel()
                self._task = None
                self._take(self.session.handle(wire.StreamClosed(stream_id=stream_id), self._now()))

    async def _write(self, call: Any, out: asyncio.Queue[bytes | None]) -> None:
        with suppress(grpc.RpcError, asyncio.InvalidStateError):
            while (data := await out.get()) is not None:
                await call.write(data)
            await call.done_writing()


class RawStream:
    """A stream of an agent that writes what the test says, and reads when told to."""

    def __init__(self, port: int, identity: Identity | None, bundle: bytes) -> None:
        self._channel = channel(port, identity, bundle)
        self.call = self._channel.stream_stream(f"/{SERVICE}/Session")()
        self.session = 0
        self.sequence = 1

    async def write(self, data: bytes | Frame) -> None:
        await self.call.write(data if isinstance(data, bytes) else codec.encode_from_agent(data))

    async def read(self) -> Frame | None:
        """Return the next frame; None at the end of the stream. Raises grpc.RpcError when it broke."""
        async with asyncio.timeout(LIMIT_SECONDS):
            data = await self.call.read()
        return None if data is grpc.aio.EOF else codec.decode_from_manager(data)

    async def greet(self, **hello: Any) -> None:
        """Greet and answer the inventory, so that the session is open."""
        await self.write(Frame(session=0, control=(Hello(**{"instance": "raw", "kinds": ("Pod",), **hello}),)))
        while True:
            frame = await self.read()
            assert frame is not None, "the stream ended while greeting"
            for control in frame.control:
                match control:
                    case Welcome():
                        self.session = control.session
                    case InventoryRequest():
                        chunk = InventoryChunk(request=control.request, applied=0, last=True)
                        await self.write(Frame(session=self.session, sequence=1, control=(chunk,)))
                        return
                    case Close():
                        raise AssertionError(f"closed while greeting: {control}")
                    case _:
                        pass

    async def ending(self) -> tuple[CloseReason | None, str, grpc.StatusCode]:
        """Read to the end; return reason and text of the last Close (None: there was none) and the RPC's code."""
        said: Close | None = None
        try:
            while (frame := await self.read()) is not None:
                said = next((each for each in frame.control if isinstance(each, Close)), said)
        except grpc.RpcError:
            pass
        async with asyncio.timeout(LIMIT_SECONDS):
            code = await self.call.code()
            details = await self.call.details()
        return (said.reason, said.text, code) if said else (None, details or "", code)

    async def close(self) -> None:
        self.call.cancel()
        await self._channel.close()
