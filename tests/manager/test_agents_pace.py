"""How fast what agents send is taken, on a real wire: one frame after the other, in slices, and within a budget."""

from __future__ import annotations

import asyncio

import pytest

from gatelift.adapters.frame_slices import SLICE_MESSAGES
from gatelift.adapters.peer_budget import CPU_BURST_SECONDS
from gatelift.core.api.events import FrameArrived
from gatelift.core.clusters.link_values import Reported
from gatelift_kube.clock import monotonic
from gatelift_kube.tasks import spawn
from gatelift_wire import codec
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import CreditGrant, Frame, GatesLifted
from support.until import until
from support.wire.edge import Edge
from support.wire.edge_sessions import raw

LIFTED = GatesLifted(key=PlacementKey("uid-of-w1", 1))


async def test_hd_113_a_frame_is_read_when_the_core_has_handled_the_one_before(edge: Edge) -> None:
    def said() -> list[int]:
        found = (each for each in edge.events if isinstance(each, FrameArrived))
        return [one.credits for each in found for one in each.frame.control if isinstance(one, CreditGrant)]

    async with raw(edge) as first, raw(edge, cluster="w2") as other:
        for stream in (first, other):
            await stream.greet()
        await until(lambda: edge.is_open("w1") and edge.is_open("w2"))
        edge.tells_handled = False
        for number in (101, 102, 103):
            await first.write(Frame(session=first.session, sequence=1, control=(CreditGrant(credits=number),)))
        await until(lambda: said() == [101], "the first one is posted")
        await other.write(Frame(session=other.session, sequence=1, control=(CreditGrant(credits=201),)))
        await until(lambda: said() == [101, 201], "the other worker's is posted beside it, and no second one")
        edge.tells_handled = True
        for each in [each for each in edge.events if isinstance(each, FrameArrived)]:
            edge.server.handled(each, 0.0)
        await until(lambda: said() == [101, 201, 102, 103])


async def test_is_10_a_frame_of_an_older_session_is_dropped_unread_and_its_stream_goes_on(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    decode = codec.decode_from_agent

    def noted(data: bytes) -> Frame:
        frame = decode(data)
        decoded.append(frame.session)
        return frame

    async with raw(edge) as first, raw(edge) as second:
        await first.greet()
        await second.greet(instance="another")
        await until(lambda: edge.is_open("w1"))
        assert second.session > first.session
        monkeypatch.setattr(codec, "decode_from_agent", noted)
        await second.write(Frame(session=first.session, sequence=1, messages=(LIFTED,) * 256))
        await second.write(Frame(session=second.session, sequence=1, messages=(LIFTED,)))
        await until(lambda: edge.told(Reported, "w1"))
    assert decoded == [second.session]


async def test_is_10_a_large_frame_is_taken_in_slices_and_nothing_of_it_is_lost_or_turned(edge: Edge) -> None:
    keys = [PlacementKey("uid-of-w1", number) for number in range(1, 257)]
    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        messages = tuple(GatesLifted(key=key) for key in keys)
        await stream.write(Frame(session=stream.session, sequence=1, messages=messages))
        await until(lambda: len(edge.told(Reported, "w1")) == len(keys))
    assert [each.message.key for each in edge.told(Reported, "w1")] == keys  # type: ignore[union-attr]  # all of them have one
    arrived = [each for each in edge.events if isinstance(each, FrameArrived) and each.frame.messages]
    assert max(len(each.frame.messages) for each in arrived) <= SLICE_MESSAGES


async def test_is_11_a_worker_that_dials_again_and_again_waits_and_another_does_not(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def waits(_: float) -> None:
        await go_on.wait()

    monkeypatch.setattr(edge.server._turns, "_sleep", waits)
    edge.server._turns.budget.spent("w1", monotonic(), seconds=CPU_BURST_SECONDS)
    async with raw(edge) as first, raw(edge, cluster="w2") as other:
        greeting = spawn("greets", first.greet())
        await other.greet()
        assert [each.cluster for each in edge.opened_streams()] == ["w2"]
        go_on.set()
        await greeting
    assert {each.cluster for each in edge.opened_streams()} == {"w1", "w2"}
