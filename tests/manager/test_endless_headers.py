"""HTTP/2 below gRPC: a block of headers that never ends ends with its connection, and nobody else notices.

gRPC keeps such a block, many times as large as it came, until it ends, and tells nobody of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from pathlib import Path

from bench import raw_http2
from gatelift.adapters import agents_server, enrol_server
from gatelift.core.clusters.link_values import Reported
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import GatesLifted
from gatelift_wire.values.refusals import CloseReason
from support.until import until
from support.wire.edge import HOST, Edge, Identity, Key, channel
from support.wire.edge_sessions import agent, raw

ENOUGH_BYTES = 64_000_000
"""More than any connection may send to no effect."""
Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def shows(identity: Identity | None) -> ssl.SSLContext:
    """Return how a client connects that asks nobody who he is."""
    context = raw_http2.client()
    if identity is not None:
        with tempfile.NamedTemporaryFile() as pair:
            Path(pair.name).write_bytes(identity.key.pem + identity.certificate)
            context.load_cert_chain(pair.name)
    return context


async def dialled(port: int, identity: Identity | None = None) -> Peer:
    """Connect as a client of HTTP/2 that has not called yet."""
    reader, writer = await asyncio.open_connection(HOST, port, ssl=shows(identity))
    writer.write(raw_http2.GREETING)
    return reader, writer


async def endless(peer: Peer, path: str, stream: int) -> int:
    """Send a block of headers that never ends, until the connection does; return how many bytes were taken."""
    _, writer = peer
    sent, piece = 0, raw_http2.endless(stream)
    with contextlib.suppress(ConnectionError):
        writer.write(raw_http2.frame(raw_http2.HEADERS, 0, stream, raw_http2.call(path)))
        while sent < ENOUGH_BYTES:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)  # where nothing is taken any more, `drain` does not wait
            sent += len(piece)
    writer.transport.abort()
    return sent


async def test_is_12_headers_without_an_end_at_the_port_of_enrolment_end_with_their_connection(edge: Edge) -> None:
    peer = await dialled(edge.enrol.port)
    assert await endless(peer, f"/{enrol_server.SERVICE}/Enroll", 1) < ENOUGH_BYTES
    await until(lambda: edge.enrol.gate.count == 0)
    request = pb.EnrollRequest(cluster="w1", request=Key.new().request(), token="wrong")
    async with channel(edge.enrol.port, None, edge.state.bundle) as honest:
        call = honest.unary_unary(f"/{enrol_server.SERVICE}/Enroll")
        assert await call(request.SerializeToString())


async def test_is_10_headers_without_an_end_of_a_worker_end_its_connection_and_it_is_not_let_in_for_a_while(
    edge: Edge,
) -> None:
    hostile = edge.identities["w1"]
    async with agent(edge, "w2") as honest:
        peer = await dialled(edge.server.port, hostile)
        called = raw_http2.call(f"/{agents_server.SERVICE}/Session")
        peer[1].write(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1, called))
        await until(lambda: edge.server.gate.count == 2)
        proven = edge.server.gate
        await until(lambda: proven.places.count == 0, "its stream is served")
        assert await endless(peer, f"/{agents_server.SERVICE}/Session", 3) < ENOUGH_BYTES
        await until(lambda: proven.is_barred("w1"))
        assert not proven.is_barred("w2")
        async with raw(edge, hostile) as again:
            assert (await again.ending())[:2] == (CloseReason.SHUTTING_DOWN, agents_server.BARRED)
        honest.report(GatesLifted(key=PlacementKey("uid-of-w2", 1)))
        await until(lambda: bool(edge.told(Reported, "w2")))
