"""The stream to the manager: real gRPC and mTLS; every way in which it ends is one event with one line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
import pytest_asyncio

from gatelift.adapters import authority
from gatelift_agent.adapters import manager_client
from gatelift_agent.adapters.enrolment import EnrolmentError
from gatelift_agent.adapters.identity_store import Identity
from gatelift_agent.adapters.manager_client import ManagerClient
from gatelift_agent.adapters.targets import Endpoint
from gatelift_agent.core.values import events
from gatelift_wire.values.messages import Frame, Hello, Welcome
from gatelift_wire.values.refusals import CloseReason
from support.until import until
from support.wire.edge import HOST, Edge, signed, utc_now


@pytest_asyncio.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge("w1")
    await made.start()
    yield made
    await made.stop()


class Dialled:
    """A client and what it posted."""

    def __init__(self, port: int, identity: Identity, **target: str) -> None:
        self.events: list[events.Event] = []
        self._identity = identity
        self.client = ManagerClient(self.events.append, Endpoint(address=f"{HOST}:{port}", **target), self._ready)

    async def _ready(self) -> Identity:
        return self._identity

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def ended(self) -> str:
        await until(lambda: self.of(events.ManagerStreamClosed), "the stream ends")
        [closed] = self.of(events.ManagerStreamClosed)
        assert "\n" not in closed.text
        return str(closed.text)


def _identity(edge: Edge, name: str = "w1", **times: Any) -> Identity:
    made = edge.identities.get(name) if not times else None
    made = made or signed(edge.state, name, **times)
    return Identity(key=made.key.pem, certificate=made.certificate, bundle=made.bundle)


HELLO = Frame(session=0, control=(Hello(instance="i", kinds=("Pod",)),))


async def test_a_stream_opens_and_carries_frames_both_ways(edge: Edge) -> None:
    dialled = Dialled(edge.server.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    dialled.client.send(1, HELLO)
    await until(lambda: dialled.of(events.ManagerFrameArrived), "the manager answers")
    frame = dialled.of(events.ManagerFrameArrived)[0].frame
    assert isinstance(frame.control[0], Welcome)
    dialled.client.close(1, "done")
    assert await dialled.ended() == "done"


async def test_what_was_sent_before_the_end_is_written(edge: Edge) -> None:
    dialled = Dialled(edge.server.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    dialled.client.send(1, HELLO)
    dialled.client.close(1)
    await dialled.ended()
    await until(lambda: any(type(each).__name__ == "AgentFrameArrived" for each in edge.events), "the hello arrived")


async def test_a_port_where_nobody_listens_is_said_at_once() -> None:
    dialled = Dialled(1, Identity(key=b"", certificate=b"", bundle=b""))
    state = authority.new_state(utc_now())
    made = signed(state, "w1")
    dialled = Dialled(1, Identity(key=made.key.pem, certificate=made.certificate, bundle=state.bundle))
    dialled.client.dial(1)
    assert "no connection" in await dialled.ended()


async def test_a_manager_of_another_ca_is_not_trusted(edge: Edge) -> None:
    stranger = authority.new_state(utc_now())
    made = signed(edge.state, "w1")
    wrong = Identity(key=made.key.pem, certificate=made.certificate, bundle=stranger.bundle)
    dialled = Dialled(edge.server.port, wrong)
    dialled.client.dial(1)
    assert "certificates do not match" in await dialled.ended()


async def test_hd_632_who_comes_to_no_connection_is_told_that_certificates_may_not_match(edge: Edge) -> None:
    made = signed(edge.state, "w1")
    posted: list[events.Event] = []
    told: list[str] = []
    wrong = Identity(key=made.key.pem, certificate=made.certificate, bundle=authority.new_state(utc_now()).bundle)

    async def ready() -> Identity:
        return wrong

    target = Endpoint(address=f"{HOST}:{edge.server.port}")
    client = ManagerClient(posted.append, target, ready, lambda: told.append("unreached"))
    client.dial(1)
    await until(lambda: posted, "the dial ends")
    assert told == ["unreached"]


async def test_another_name_in_the_managers_certificate_is_accepted_when_it_is_set(edge: Edge) -> None:
    dialled = Dialled(edge.server.port, _identity(edge), server_name="localhost")
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    dialled.client.close(1)
    wrong = Dialled(edge.server.port, _identity(edge), server_name="elsewhere.example.com")
    wrong.client.dial(1)
    assert "certificates do not match" in await wrong.ended()


async def test_an_identity_that_is_not_there_yet_ends_the_dial_with_its_text(edge: Edge) -> None:
    posted: list[events.Event] = []

    async def missing() -> Identity:
        raise EnrolmentError("waits for a person")

    client = ManagerClient(posted.append, Endpoint(address=f"{HOST}:{edge.server.port}"), missing)
    client.dial(7)
    await until(lambda: posted, "the dial ends")
    [closed] = posted
    assert isinstance(closed, events.ManagerStreamClosed)
    assert closed.stream_id == 7
    assert "waits for a person" in closed.text


async def test_the_end_of_the_managers_process_is_one_closed_stream(edge: Edge) -> None:
    dialled = Dialled(edge.server.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    await edge.server.stop()
    await dialled.ended()


class Odd:
    """A manager that writes and reads what it likes."""

    def __init__(self, edge: Edge, *, sends: tuple[bytes, ...] = (), reads: bool = True) -> None:
        self._edge = edge
        self._sends = sends
        self._reads = reads
        self._end = asyncio.Event()
        self._server: grpc.aio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        server = grpc.aio.server()
        handlers = {"Session": grpc.stream_stream_rpc_method_handler(self._session)}
        name = manager_client.METHOD.split("/")[1]
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))
        key, chain, bundle = self._edge.credentials()
        credentials = grpc.ssl_server_credentials([(key, chain)], bundle, require_client_auth=True)
        self.port = server.add_secure_port(f"{HOST}:0", credentials)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        self._end.set()
        if self._server is not None:
            await self._server.stop(grace=0)

    async def _session(self, requests: AsyncIterator[bytes], _context: object) -> AsyncIterator[bytes]:
        for data in self._sends:
            yield data
        if self._reads:
            async for _ in requests:
                pass
        await self._end.wait()


async def test_a_frame_that_cannot_be_read_is_a_violation_and_not_a_crash(edge: Edge) -> None:
    odd = Odd(edge, sends=(b"\xff\xff rubbish",))
    await odd.start()
    dialled = Dialled(odd.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.FrameViolated), "the violation is told")
    assert dialled.of(events.FrameViolated)[0].reason is CloseReason.PROTOCOL_VIOLATION
    dialled.client.close(1)
    await dialled.ended()
    await odd.stop()


async def test_a_manager_that_does_not_read_has_its_stream_broken(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_client, "FRAMES_WAITING_MAX", 4)
    odd = Odd(edge, reads=False)
    await odd.start()
    dialled = Dialled(odd.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    for _ in range(6):  # without a turn of the loop between them nothing can be written
        dialled.client.send(1, HELLO)
    assert "does not read" in await dialled.ended()
    await odd.stop()


async def test_stopping_ends_all_streams(edge: Edge) -> None:
    dialled = Dialled(edge.server.port, _identity(edge))
    dialled.client.dial(1)
    await until(lambda: dialled.of(events.ManagerStreamOpened), "the stream opens")
    await dialled.client.stop()
    assert await dialled.ended() == "the agent is stopping"


def test_a_proxy_and_a_name_become_options_of_the_channel() -> None:
    plain = dict(Endpoint(address="[::1]:7443").options())
    assert plain["grpc.enable_http_proxy"] == 0
    target = Endpoint(address="m.example.com:7443", server_name="inner", proxy="http://proxy:3128")
    options = dict(target.options())
    assert options["grpc.http_proxy"] == "http://proxy:3128"
    assert options["grpc.default_authority"] == "inner"
    assert (Endpoint(address="[::1]:7443").host, Endpoint(address="[::1]:7443").port) == ("::1", 7443)
    assert target.tls_name == "inner"
