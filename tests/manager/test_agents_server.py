"""The port that agents dial, on a real wire: who gets in, what ends one session and no other, what a rotation costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from gatelift.adapters import agents_server, authority
from gatelift.core.api.commands import CloseAgentStream, SendToAgent
from gatelift.core.clusters.link_values import LinkBroken, LinkOpened, Reported
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    CertificateRequest,
    Close,
    CreditGrant,
    Forget,
    Frame,
    GatesLifted,
    Hello,
    TemplateBlob,
    Welcome,
)
from gatelift_wire.values.refusals import CloseReason
from support.until import until
from support.wire.edge import DAY, Edge, Identity, Key, RawStream, signed, utc_now
from support.wire.edge_sessions import agent, answers, raw

KEY = PlacementKey("uid-of-w1", 1)

UNREAD_SECONDS = 2.0
"""After this an agent is known not to read; one that reads has as much time on a busy machine."""
STALLED_SECONDS = 8.0
"""As long where frames have to have filled all buffers by then, or a peer that does not read lets go all the same."""
BUSY_SECONDS = 60.0
"""What a busy machine may take longer; a stream that is not ended stays for ever."""


# --- who gets in ---------------------------------------------------------------------------------------------------


async def test_an_agent_acts_as_the_cluster_of_its_certificate_and_as_no_other(edge: Edge) -> None:
    async with agent(edge, "w2") as other:
        other.report(GatesLifted(key=KEY), CertificateRequest(request=other.identity.key.request()))
        await until(lambda: edge.told(Reported) and other.delivered)
        assert [each.cluster for each in edge.told(LinkOpened)] == ["w2"]
        assert [each.cluster for each in edge.told(Reported)] == ["w2"], "w1's placement in it does not make it w1's"
        (renewed,) = other.delivered
        names = x509.load_pem_x509_certificate(renewed.certificate).extensions  # type: ignore[attr-defined]
        (uri,) = names.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(
            x509.UniformResourceIdentifier
        )
        assert uri == "gatelift://cluster/w2"
    assert not edge.cluster("w1").status.session


def self_made(_: Edge) -> Identity:
    return signed(authority.new_state(utc_now()), "w1")


def expired(edge: Edge) -> Identity:
    return signed(edge.state, "w1", edge.identities["w1"].key, now=utc_now() - 3 * DAY)


def not_yet_valid(edge: Edge) -> Identity:
    return signed(edge.state, "w1", edge.identities["w1"].key, now=utc_now() + DAY)


def of_a_retired_authority(edge: Edge) -> Identity:
    before = edge.identities["w1"]
    for step in (lambda state: authority.announce(state, utc_now()), authority.switch, authority.retire):
        edge.rotate(step)
    return before


def none(_: Edge) -> None:
    return None


def of_the_server(edge: Edge) -> Identity:
    """Show a certificate of the right authority that was made for another purpose."""
    pair = edge.server_pair
    private = serialization.load_pem_private_key(pair.key, None)
    return Identity(key=Key(private=private), certificate=pair.certificate, bundle=edge.state.bundle)  # type: ignore[arg-type]  # the server's key is of the same kind


STRANGERS: dict[str, Callable[[Edge], Identity | None]] = {
    "no certificate": none,
    "a self-made certificate": self_made,
    "an expired certificate": expired,
    "a certificate that is not valid yet": not_yet_valid,
    "a certificate of a retired CA": of_a_retired_authority,
    "the server's own certificate": of_the_server,
}


@pytest.mark.parametrize("made", STRANGERS.values(), ids=STRANGERS.keys())
async def test_who_has_no_valid_certificate_does_not_get_past_the_handshake(
    edge: Edge, made: Callable[[Edge], Identity | None]
) -> None:
    identity = made(edge)
    stream = RawStream(edge.server.port, identity, edge.state.bundle)
    try:
        with pytest.raises(grpc.RpcError) as refused:
            await stream.greet()
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        await stream.close()
    assert not edge.opened_streams()
    async with raw(edge, signed(edge.state, "w1", edge.identities["w1"].key)) as honest:
        await honest.greet()


async def test_a_certificate_that_names_no_cluster_is_told_so_and_opens_no_stream(edge: Edge) -> None:
    key = Key.new()
    issuer = x509.load_pem_x509_certificate(edge.state.current.certificate)
    signer = serialization.load_pem_private_key(edge.state.current.key, None)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key.private.public_key())
        .serial_number(7)
        .not_valid_before(utc_now() - DAY)
        .not_valid_after(utc_now() + DAY)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]  # the authority's key
        .public_bytes(serialization.Encoding.PEM)
    )
    async with raw(edge, Identity(key=key, certificate=certificate, bundle=edge.state.bundle)) as stream:
        reason, text, _ = await stream.ending()
    assert reason is CloseReason.UNKNOWN_CLUSTER
    assert "must have exactly one alternative name gatelift://cluster/<name>, has 0" in text
    assert not edge.opened_streams()


TURNED_AWAY: dict[str, tuple[Callable[[Edge], Identity], CloseReason, str]] = {
    "a cluster that nobody expects": (
        lambda edge: signed(edge.state, "w9"),
        CloseReason.UNKNOWN_CLUSTER,
        "no WorkerCluster w9: run 'gatelift cluster add w9'",
    ),
    "another key than the approved one": (
        lambda edge: signed(edge.state, "w1"),
        CloseReason.REVOKED,
        "this key is not the one that was approved last for w1; enrol the agent with a new token",
    ),
}


@pytest.mark.parametrize(("made", "reason", "text"), TURNED_AWAY.values(), ids=TURNED_AWAY.keys())
async def test_a_valid_certificate_alone_opens_no_session(
    edge: Edge, made: Callable[[Edge], Identity], reason: CloseReason, text: str
) -> None:
    async with raw(edge, made(edge)) as stream:
        assert await stream.ending() == (reason, text, grpc.StatusCode.OK)
    assert not edge.told(LinkOpened)


async def test_a_standby_says_that_it_is_one() -> None:
    standby = Edge("w1", leads=False)
    await standby.start()
    try:
        async with raw(standby) as stream:
            reason, text, _ = await stream.ending()
        assert (reason, text) == (CloseReason.NOT_LEADER, "this manager is a standby")
    finally:
        await standby.stop()


async def test_a_second_agent_with_the_same_identity_fences_the_first(edge: Edge) -> None:
    async with agent(edge, instance="first") as first, agent(edge, instance="second") as second:
        ended = await first.closed()
        assert ended.reason is CloseReason.FENCED_BY_NEWER_SESSION
        assert (first.session.session, second.session.session) == (1, 2)
        await answers(edge, second, "w1")
        assert edge.cluster("w1").status.session == 2


async def test_a_revocation_ends_the_session_at_once_and_keeps_the_agent_out(edge: Edge) -> None:
    async with agent(edge) as revoked, agent(edge, "w2") as other:
        edge.patch_spec("w1", revoked=True)
        ended = await revoked.closed()
        assert ended.reason is CloseReason.REVOKED
        await answers(edge, other, "w2")
    async with raw(edge) as stream:
        reason, text, _ = await stream.ending()
    assert (reason, text) == (
        CloseReason.REVOKED,
        "w1 was revoked by a person; 'gatelift cluster add w1' takes it in again",
    )


# --- what ends one session and nothing else ------------------------------------------------------------------------


def varint_bomb(_: RawStream) -> bytes:
    return b"\xff" * 64


def from_the_manager(stream: RawStream) -> bytes:
    welcome = Welcome(session=stream.session + 1, instance="x", version=1, resume=False, origin="o")
    return codec.encode_from_manager(Frame(session=stream.session, term=1, control=(welcome,)))


def command(stream: RawStream) -> bytes:
    return codec.encode_from_manager(
        Frame(session=stream.session, term=1, sequence=1, messages=(TemplateBlob(hash="h" * 64, content=b"{}"),))
    )


def frame(**parts: object) -> Callable[[RawStream], bytes]:
    def made(stream: RawStream) -> bytes:
        filled = {"session": stream.session, "sequence": 1, **parts}
        return codec.encode_from_agent(Frame(**filled))  # type: ignore[arg-type]  # named by the table

    return made


def many_controls(stream: RawStream) -> bytes:
    """Two encoded frames one after the other are one frame with the lists of both: that is protobuf."""
    nine, eight = (CreditGrant(credits=1),) * 9, (CreditGrant(credits=1),) * 8
    return frame(control=nine)(stream) + frame(control=eight)(stream)


LIFTED = GatesLifted(key=KEY)
VIOLATIONS: dict[str, tuple[Callable[[RawStream], bytes], CloseReason, str]] = {
    "a frame above the codec's limit": (
        lambda _: b"\x00" * (limits.FRAME_BYTES_MAX + 1),
        CloseReason.TOO_LARGE,
        "Frame: must have at most 4194304 bytes, has 4194305",
    ),
    "bytes that are no frame": (
        varint_bomb,
        CloseReason.PROTOCOL_VIOLATION,
        "Frame: is not a valid AgentMessage of gatelift.wire.v1",
    ),
    "a gap in the sequence": (
        frame(sequence=9, messages=(LIFTED,)),
        CloseReason.PROTOCOL_VIOLATION,
        "sequence: must be 1, is 9; messages between are missing",
    ),
    "an acknowledgement of what was never sent": (
        frame(acknowledged=99),
        CloseReason.PROTOCOL_VIOLATION,
        "acknowledged: is 99, but only 0 were ever sent",
    ),
    "a session that does not exist": (
        frame(session=7, messages=(LIFTED,)),
        CloseReason.PROTOCOL_VIOLATION,
        "session: must be 1, is 7",
    ),
    "a second greeting": (
        frame(control=(Hello(instance="again"),)),
        CloseReason.PROTOCOL_VIOLATION,
        "control: Hello has no place in OPEN",
    ),
    "an inventory that nobody asked for": (
        frame(control=(InventoryChunk(request=77, applied=0, last=True),)),
        CloseReason.PROTOCOL_VIOLATION,
        "InventoryChunk.request: 77 was never asked for",
    ),
    "too many controls": (
        many_controls,
        CloseReason.TOO_LARGE,
        "Frame.control: must have at most 16 items, has 17",
    ),
    "a frame of the manager": (from_the_manager, CloseReason.PROTOCOL_VIOLATION, ""),
    "a command, which travels the other way": (command, CloseReason.PROTOCOL_VIOLATION, ""),
}


@pytest.mark.parametrize(("bad", "reason", "text"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
async def test_what_breaks_a_rule_ends_one_session_with_a_typed_close_and_nothing_else(
    edge: Edge, bad: Callable[[RawStream], bytes], reason: CloseReason, text: str
) -> None:
    async with agent(edge, "w2") as other, raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.told(LinkOpened, "w1"))
        await stream.write(bad(stream))
        said, why, code = await stream.ending()
        assert (said, code) == (reason, grpc.StatusCode.OK)
        assert why == text or not text
        assert not edge.told(Reported, "w1")
        await until(lambda: edge.told(LinkBroken))
        assert [each.cluster for each in edge.told(LinkBroken)] == ["w1"]
        await answers(edge, other, "w2")
        async with agent(edge, "w1") as back:
            await answers(edge, back, "w1")


async def test_a_frame_above_grpcs_own_limit_ends_that_stream_and_nothing_else(edge: Edge) -> None:
    async with agent(edge, "w2") as other, raw(edge) as stream:
        await stream.greet()
        await stream.write(b"\x00" * (agents_server.MESSAGE_BYTES_MAX + 1))
        reason, text, code = await stream.ending()
        assert (reason, code) == (None, grpc.StatusCode.RESOURCE_EXHAUSTED)
        assert "larger than max" in text
        await until(lambda: edge.told(LinkBroken, "w1"))
        await answers(edge, other, "w2")


async def test_a_report_before_the_greeting_is_refused(edge: Edge) -> None:
    async with raw(edge) as stream:
        await stream.write(Frame(session=1, sequence=1, messages=(LIFTED,)))
        reason, text, _ = await stream.ending()
    assert reason is CloseReason.PROTOCOL_VIOLATION
    assert text == "frame: the first on a stream must be a Hello of session 0, alone"
    assert not edge.told(Reported)


async def test_every_opened_stream_is_posted_as_closed_once_and_says_nothing_afterwards(edge: Edge) -> None:
    async with raw(edge) as stream:
        await stream.greet()
        await stream.write(b"\xff" * 64)
        await stream.ending()
    await until(edge.closed_streams)
    (opened,) = edge.opened_streams()
    of_it = [each for each in edge.events if getattr(each, "stream_id", 0) == opened.stream_id]
    assert [type(each).__name__ for each in of_it].count("AgentStreamClosed") == 1
    assert type(of_it[-1]).__name__ == "AgentStreamClosed"
    assert edge.server.streams == 0


# --- slow and many -------------------------------------------------------------------------------------------------


def big_frame(session: int, sequence: int) -> Frame:
    blob = TemplateBlob(hash="h" * 64, content=b"x" * limits.MEBIBYTE)
    return Frame(session=session, term=1, sequence=sequence, messages=(blob,))


async def test_an_agent_that_does_not_read_loses_its_stream_and_delays_no_other(edge: Edge) -> None:
    async with agent(edge, "w2") as other, raw(edge) as stalled:
        await stalled.greet()
        await until(lambda: edge.told(LinkOpened, "w1"))
        stream_id = next(each.stream_id for each in edge.opened_streams() if each.cluster == "w1")
        most = agents_server.BYTES_WAITING_MAX // limits.MEBIBYTE
        for number in range(3 * most):
            edge.server.send(SendToAgent(stream_id=stream_id, frame=big_frame(stalled.session, number + 1)))
            if number % 8 == 0:
                await answers(edge, other, "w2")
        await until(lambda: [each for each in edge.closed_streams() if each.stream_id == stream_id])
        (closed,) = [each for each in edge.closed_streams() if each.stream_id == stream_id]
        assert closed.text == "the agent does not read: too much waits for it"
        await answers(edge, other, "w2")


async def test_an_agent_that_does_not_take_a_frame_in_time_loses_its_stream(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_server, "WRITE_SECONDS_MAX", UNREAD_SECONDS)
    async with raw(edge) as stalled:
        await stalled.greet()
        for number in range(8):
            edge.server.send(SendToAgent(stream_id=1, frame=big_frame(stalled.session, number + 1)))
        await until(edge.closed_streams)
        assert edge.closed_streams()[0].text == "the agent does not read: a frame was not taken within 2 s"


async def test_a_stream_that_is_closed_ends_in_time_even_if_its_peer_does_not_read(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_server, "CLOSE_SECONDS", 0.2)
    async with raw(edge) as stalled:
        await stalled.greet()
        for number in range(8):
            edge.server.send(SendToAgent(stream_id=1, frame=big_frame(stalled.session, number + 1)))
        edge.server.close(CloseAgentStream(stream_id=1, close=Close(reason=CloseReason.LOST)))
        await until(edge.closed_streams)
        assert edge.closed_streams()[0].text == "the agent does not read: the stream was not closed in time"


async def test_streams_of_one_identity_are_bounded_and_their_places_come_free(edge: Edge) -> None:
    async with agent(edge, "w2") as other:
        held = [RawStream(edge.server.port, edge.identities["w1"], edge.state.bundle) for _ in range(40)]
        reading = [spawn("ending", stream.ending()) for stream in held]
        left = limits.STREAMS_WAITING_MAX
        await until(lambda: sum(each.done() for each in reading) == len(held) - left, "all but those that may wait")
        assert edge.server.streams == left + 1
        texts = {each.result()[1] for each in reading if each.done()}
        assert "more than 4 streams of this cluster have not greeted" in texts
        await answers(edge, other, "w2")
        for stream in held:
            await stream.close()
        await asyncio.gather(*reading, return_exceptions=True)
        await until(lambda: edge.server.streams == 1)
        async with agent(edge) as back:
            await answers(edge, back, "w1")


async def test_streams_that_the_peer_does_not_let_go_of_count_until_it_does(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents_server, "WRITE_SECONDS_MAX", STALLED_SECONDS)
    stalled: list[RawStream] = []
    for _ in range(agents_server.STREAMS_PER_CLUSTER_MAX):
        stream = RawStream(edge.server.port, edge.identities["w1"], edge.state.bundle)
        await stream.greet()
        await until(lambda: len(edge.opened_streams()) > len(stalled))
        stream_id = edge.opened_streams()[-1].stream_id
        for number in range(12):
            edge.server.send(SendToAgent(stream_id=stream_id, frame=big_frame(stream.session, number + 1)))
        stalled.append(stream)
    await until(lambda: edge.server.streams == 0)
    async with raw(edge) as one_more:
        reason, text, _ = await one_more.ending()
    assert (reason, text) == (
        CloseReason.SHUTTING_DOWN,
        "8 streams of w1 are open, no more are served; close the others",
    )
    for stream in stalled:
        await stream.close()
    async with agent(edge) as back:
        await answers(edge, back, "w1")


async def test_a_server_that_stops_says_so(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents_server, "STOP_SECONDS", BUSY_SECONDS)
    async with raw(edge) as listening:
        await listening.greet()
        _, ending = await asyncio.gather(edge.server.stop(), listening.ending())
    assert ending[:2] == (CloseReason.SHUTTING_DOWN, "this manager stops; ask again")


async def test_a_server_that_stops_ends_a_stream_in_time_whose_peer_does_not_read(edge: Edge) -> None:
    async with raw(edge) as stalled:
        await stalled.greet()
        for number in range(8):
            edge.server.send(SendToAgent(stream_id=1, frame=big_frame(stalled.session, number + 1)))
        async with asyncio.timeout(agents_server.STOP_SECONDS + BUSY_SECONDS):
            await edge.server.stop()
            await until(lambda: edge.server.streams == 0)


async def test_a_frame_that_cannot_be_encoded_breaks_one_stream_only(edge: Edge) -> None:
    async with agent(edge, "w2") as other, raw(edge) as stream:
        await stream.greet()
        stream_id = next(each.stream_id for each in edge.opened_streams() if each.cluster == "w1")
        huge = TemplateBlob(hash="h" * 64, content=b"x" * (limits.FRAME_BYTES_MAX + 1))
        edge.server.send(SendToAgent(stream_id=stream_id, frame=Frame(session=1, sequence=1, messages=(huge,))))
        await until(lambda: edge.told(LinkBroken, "w1"))
        await answers(edge, other, "w2")


async def test_commands_for_a_stream_that_is_gone_go_nowhere(edge: Edge) -> None:
    edge.server.send(SendToAgent(stream_id=99, frame=Frame(session=1, messages=(Forget(key=KEY),))))
    edge.server.close(CloseAgentStream(stream_id=99, close=Close(reason=CloseReason.LOST)))
    async with agent(edge) as honest:
        await answers(edge, honest, "w1")
