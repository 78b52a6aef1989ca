"""How fast what agents send is taken, on a real wire: one frame after the other, in slices, and within a budget."""

from __future__ import annotations

import asyncio
import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from gatelift.adapters import peer_turns
from gatelift.adapters.frame_slices import SLICE_MESSAGES
from gatelift.adapters.peer_budget import CPU_BURST_SECONDS, PACE_WAIT_SECONDS_MAX
from gatelift.core.api.events import AgentFrameArrived, Event, StreamViolated
from gatelift.core.clusters.link_values import Reported
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.encoding.pieces import PIECE_BYTES
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CreditGrant, Finished, Frame, GatesLifted, ObjectReport
from support.until import until
from support.wire.edge import Edge
from support.wire.edge_sessions import raw

LIFTED = GatesLifted(key=PlacementKey("uid-of-w1", 1))


async def test_hd_113_a_frame_is_read_when_the_core_has_handled_the_one_before(edge: Edge) -> None:
    def said() -> list[int]:
        found = (each for each in edge.events if isinstance(each, AgentFrameArrived))
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
        for each in [each for each in edge.events if isinstance(each, AgentFrameArrived)]:
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
    arrived = [each for each in edge.events if isinstance(each, AgentFrameArrived) and each.frame.messages]
    assert max(len(each.frame.messages) for each in arrived) <= SLICE_MESSAGES


async def test_is_10_between_the_slices_of_a_frame_the_pace_is_kept_and_its_renewal_waits_for_nothing(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    waited: list[float] = []

    async def waits(seconds: float) -> None:
        waited.append(seconds)
        await go_on.wait()

    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        renewal = (CreditGrant(credits=7),)
        frame = Frame(session=stream.session, sequence=1, control=renewal, messages=(LIFTED,) * 200)
        decoded = edge.server._turns.decoded

        async def dear(*given: Any) -> Any:
            found = await decoded(*given)
            monkeypatch.setattr(edge.server._turns, "_sleep", waits)
            edge.server._turns.budget.spent("w1", monotonic(), seconds=CPU_BURST_SECONDS)
            return found

        monkeypatch.setattr(edge.server._turns, "decoded", dear)
        await stream.write(frame)
        await until(lambda: len(edge.told(Reported, "w1")) == SLICE_MESSAGES and bool(waited), "one slice is through")
        assert 0 < waited[0] <= PACE_WAIT_SECONDS_MAX
        go_on.set()
        await until(lambda: len(edge.told(Reported, "w1")) == 200)


async def test_is_10_a_large_frame_is_decoded_in_parts_and_none_before_the_one_before_is_handled(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    decode = codec.decode_from_agent

    def noted(data: bytes) -> Frame:
        sizes.append(len(data))
        return decode(data)

    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        monkeypatch.setattr(codec, "decode_from_agent", noted)
        report = ObjectReport(key=LIFTED.key, kind="Pod", name="p", uid="u", status=b'{"a":"' + b"x" * 40_000 + b'"}')
        edge.tells_handled = False
        await stream.write(Frame(session=stream.session, sequence=1, messages=(report,) * 4))
        await until(lambda: len(sizes) == 1)
        edge.tells_handled = True
        for each in [each for each in edge.events if isinstance(each, AgentFrameArrived)]:
            edge.server.handled(each, 0.0)
        await until(lambda: len(edge.told(Reported, "w1")) == 4)
    assert len(sizes) == 4
    assert max(sizes) <= PIECE_BYTES


async def test_is_10_an_inventory_that_travels_with_many_messages_has_no_order_and_is_refused(edge: Edge) -> None:
    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        report = ObjectReport(key=LIFTED.key, kind="Pod", name="p", uid="u", status=b'{"a":"' + b"x" * 40_000 + b'"}')
        control = (InventoryChunk(request=9, applied=0, last=True),)
        await stream.write(Frame(session=stream.session, sequence=1, control=control, messages=(report,) * 4))
        await until(lambda: any(isinstance(each, StreamViolated) for each in edge.events))
    (found,) = (each for each in edge.events if isinstance(each, StreamViolated))
    assert "must not travel in such numbers with InventoryChunk" in found.text
    assert not edge.told(Reported, "w1")


async def test_is_10_parts_do_not_have_more_items_together_than_one_frame(edge: Edge) -> None:
    state = ObjectReport(key=LIFTED.key, kind="Pod", name="p", uid="u", status=b"{}")
    whole = Finished(key=LIFTED.key, succeeded=True, objects=(state,) * limits.OBJECTS_MAX)
    count = limits.FRAME_PARTS_MAX // limits.OBJECTS_MAX + 1
    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        await stream.write(Frame(session=stream.session, sequence=1, messages=(whole,) * count))
        await until(lambda: any(isinstance(each, StreamViolated) for each in edge.events), seconds=60.0)
    (found,) = (each for each in edge.events if isinstance(each, StreamViolated))
    assert found.too_large
    assert f"at most {limits.FRAME_PARTS_MAX} items in its lists" in found.text
    assert len(edge.told(Reported, "w1")) < count


async def test_is_10_of_a_frame_that_breaks_a_rule_no_more_is_taken_apart_whenever_its_stream_ends(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody closes the stream here, so what comes after the broken part would be seen."""
    said: list[Event] = []

    def noted(event: Event) -> None:
        said.append(event)
        edge.server.handled(event, 0.0)

    async with raw(edge) as stream:
        await stream.greet()
        await until(lambda: edge.is_open("w1"))
        monkeypatch.setattr(edge.server, "_post", noted)
        report = ObjectReport(key=LIFTED.key, kind="Pod", name="p", uid="u", status=b'{"a":"' + b"x" * 40_000 + b'"}')
        whole = codec.encode_from_agent(Frame(session=stream.session, sequence=1, messages=(report,) * 4))
        await stream.write(whole.replace(b'{"a"', b'["a"', 1))
        await stream.write(Frame(session=stream.session, sequence=5, control=(CreditGrant(credits=7),)))
        await until(lambda: any(isinstance(each, AgentFrameArrived) for each in said), "the next frame is read")
    violated, arrived, *_ = said
    assert isinstance(violated, StreamViolated)
    assert isinstance(arrived, AgentFrameArrived)
    assert arrived.frame.control == (CreditGrant(credits=7),)


async def test_a_stream_that_ends_between_two_slices_of_a_frame_says_no_more(edge: Edge) -> None:
    async with raw(edge, cluster="w2") as other:
        await other.greet()
        async with raw(edge) as stream:
            await stream.greet()
            await until(lambda: edge.is_open("w1") and edge.is_open("w2"))
            edge.tells_handled = False
            await stream.write(Frame(session=stream.session, sequence=1, messages=(LIFTED,) * 200))
            await until(lambda: len(edge.told(Reported, "w1")) == SLICE_MESSAGES, "one slice is through")
        await until(edge.closed_streams)
        for each in [each for each in edge.events if isinstance(each, AgentFrameArrived)]:
            edge.server.handled(each, 0.0)
        await other.write(Frame(session=other.session, sequence=1, messages=(LIFTED,)))
        await until(lambda: edge.told(Reported, "w2"), "time for more has passed")
    (closed,) = edge.closed_streams()
    of_it = [each for each in edge.events if getattr(each, "stream_id", 0) == closed.stream_id]
    assert of_it[-1] == closed


async def test_is_10_to_look_through_the_fields_of_a_frame_costs_its_worker_though_it_is_dropped(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = edge.server._turns
    async with raw(edge) as first:
        await first.greet()
        await until(lambda: edge.is_open("w1"))
        await first.close()
    async with raw(edge) as second:
        await second.greet()
        await until(lambda: edge.is_open("w1"))
        assert turns.budget.pace("w1", monotonic()) == 0.0
        ticks = itertools.count()
        monkeypatch.setattr(peer_turns, "time", SimpleNamespace(thread_time=lambda: float(next(ticks))))
        await second.write(Frame(session=first.session, sequence=1, messages=(LIFTED,)))
        await until(lambda: turns.budget.pace("w1", monotonic()) > 0.0, "what it took is charged")
    assert not edge.told(Reported, "w1"), "it was of an earlier session"


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
