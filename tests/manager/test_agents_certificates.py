"""Certificates of the agents' port over time: handshakes of now, streams that end with their certificate, rotations."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator

import grpc
import pytest
from cryptography import x509

from gatelift.adapters import authority
from gatelift.core.clusters.link_values import LinkBroken
from gatelift_kube.process.tasks import spawn
from gatelift_wire.values.messages import CertificateRequest
from support.until import until
from support.wire.edge import DAY, HOST, Edge, Key, RawStream, utc_now
from support.wire.edge_sessions import agent, answers, raw


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge("w1", "w2")
    await made.start()
    yield made
    await made.stop()


def served_certificate(edge: Edge) -> x509.Certificate:
    text = ssl.get_server_certificate((HOST, edge.server.port), timeout=60)
    return x509.load_pem_x509_certificate(text.encode())


async def test_many_handshakes_at_once_do_the_process_no_harm(edge: Edge) -> None:
    for _ in range(12):
        streams = [RawStream(edge.server.port, edge.identities["w1"], edge.state.bundle) for _ in range(40)]
        reading = [spawn("ending", stream.ending()) for stream in streams]
        await until(lambda ending=reading: sum(each.done() for each in ending) >= 30)  # type: ignore[misc]  # bound now
        for stream in streams:
            await stream.close()
        await asyncio.gather(*reading, return_exceptions=True)
    async with agent(edge) as honest:
        await answers(edge, honest, "w1")


async def test_a_handshake_shows_the_servers_certificate_of_now(edge: Edge) -> None:
    before = await asyncio.to_thread(served_certificate, edge)
    edge.server_pair = authority.new_server(edge.state, (HOST, "localhost"), DAY, utc_now())
    after = await asyncio.to_thread(served_certificate, edge)
    assert before.serial_number != after.serial_number
    assert after == x509.load_pem_x509_certificate(edge.server_pair.certificate)


async def test_a_stream_ends_with_its_certificate_and_the_session_goes_on_with_the_renewed_one(edge: Edge) -> None:
    async with agent(edge) as short, agent(edge, "w2") as other:
        await short.renew()
        edge.moment = utc_now() + dt.timedelta(hours=23)
        edge.server.drop_untrusted()
        assert short.open
        edge.moment = utc_now() + dt.timedelta(hours=25)
        other.identity = edge.identities["w2"]
        edge.server.drop_untrusted()
        await short.closed()
        await other.closed()
        await short.connect()
        assert short.opened[-1].resumed, "nothing had to be said again"
        await answers(edge, short, "w1")


async def test_a_ca_rotation_drops_no_session_before_the_old_one_is_retired(edge: Edge) -> None:
    async with agent(edge) as connected:
        old = connected.identity
        edge.rotate(lambda state: authority.announce(state, utc_now()))
        await connected.renew()
        edge.rotate(authority.switch)
        edge.server.drop_untrusted()
        await answers(edge, connected, "w1")
        await connected.renew()
        assert connected.ended == []
        async with raw(edge, old) as late:
            await late.greet(instance="agent", peer_instance="manager")
        edge.rotate(authority.retire)
        edge.server.drop_untrusted()
        await connected.closed()
        await connected.connect()
        await answers(edge, connected, "w1")
        stream = RawStream(edge.server.port, old, edge.state.bundle)
        with pytest.raises(grpc.RpcError):
            await stream.greet()
        await stream.close()


async def test_an_agent_that_renewed_after_the_announcement_reaches_the_server_after_the_switch(edge: Edge) -> None:
    async with agent(edge) as connected:
        edge.rotate(lambda state: authority.announce(state, utc_now()))
        await connected.renew()
        await connected.close()
        edge.rotate(authority.switch)
        await until(lambda: edge.told(LinkBroken, "w1"))
        await connected.closed()
        await connected.connect()
        await answers(edge, connected, "w1")


async def test_a_certificate_is_renewed_for_the_approved_key_only(edge: Edge) -> None:
    async with agent(edge) as connected:
        connected.report(CertificateRequest(request=Key.new().request()))
        await until(lambda: edge.notes)
        assert any("is of another key than the approved one" in note for note in edge.notes)
        assert connected.delivered == []
