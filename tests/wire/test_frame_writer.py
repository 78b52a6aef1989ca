"""The writer of one stream: order, company, the time limit of a write, the end."""

from __future__ import annotations

import asyncio

import pytest

from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.streams.frame_writer import FrameWriter
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Frame, GatesLifted, Withdraw
from gatelift_wire.values.violations import WireViolation
from support.until import until

KEY = PlacementKey("uid", 1)
LIMIT_SECONDS = 60.0


def urgent(sequence: int) -> Frame:
    return Frame(session=7, sequence=sequence, messages=(GatesLifted(key=KEY),))


def patient(sequence: int) -> Frame:
    return Frame(session=7, sequence=sequence, messages=(Applied(key=KEY),))


class Wire:
    """Takes what is written, when it is let."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.open = asyncio.Event()
        self.open.set()
        self.asked = 0

    async def write(self, data: bytes) -> None:
        self.asked += 1
        await self.open.wait()
        self.frames.append(codec.decode_from_agent(data))

    @property
    def numbers(self) -> list[int]:
        return [one.sequence + index for one in self.frames for index in range(len(one.messages))]


def writer(frames_max: int = 100, bytes_max: int = 1_000_000) -> FrameWriter:
    return FrameWriter(codec.encode_from_agent, codec.join_from_agent, frames_max=frames_max, bytes_max=bytes_max)


async def test_frames_arrive_in_order_with_fewer_writes_and_the_end_comes_after_them() -> None:
    wire, out = Wire(), writer()
    for number in range(1, 31):
        assert out.put(urgent(number) if number % 2 else patient(number))
    out.end()
    await out.run(wire.write, LIMIT_SECONDS)
    assert wire.numbers == list(range(1, 31))
    assert len(wire.frames) == 1


async def test_frames_that_come_during_a_write_are_the_next_write() -> None:
    wire, out = Wire(), writer()
    wire.open.clear()
    task = spawn("writer", out.run(wire.write, LIMIT_SECONDS))
    out.put(urgent(1))
    await until(lambda: wire.asked == 1, "the first write begins")
    for number in range(2, 10):
        out.put(patient(number))
    wire.open.set()
    await until(lambda: len(wire.numbers) == 9, "all are written")
    assert [len(one.messages) for one in wire.frames] == [1, 8]
    out.end()
    await task


async def test_a_patient_frame_is_written_without_company_too() -> None:
    wire, out = Wire(), writer()
    task = spawn("writer", out.run(wire.write, LIMIT_SECONDS))
    out.put(patient(1))
    await until(lambda: wire.numbers == [1], "it is written after a while")
    out.put(patient(2))
    out.put(urgent(3))
    await until(lambda: wire.numbers == [1, 2, 3], "and so is what came later")
    out.end()
    await task


async def test_a_write_that_is_not_taken_in_time_ends_the_run() -> None:
    wire, out = Wire(), writer()
    wire.open.clear()
    out.put(urgent(1))
    with pytest.raises(TimeoutError):
        await out.run(wire.write, 0.05)


async def test_a_write_that_begins_late_has_its_full_time() -> None:
    wire, out = Wire(), writer()
    task = spawn("writer", out.run(wire.write, 1.0))
    for number in range(1, 16):
        out.put(urgent(number))
        await until(lambda: len(wire.numbers) == number, "it is written")  # noqa: B023  # awaited here
    wire.open.clear()
    began = asyncio.get_running_loop().time()
    out.put(urgent(16))
    with pytest.raises(TimeoutError):
        await task
    assert asyncio.get_running_loop().time() - began >= 0.99


async def test_whoever_cancels_the_run_cancels_it_and_no_time_limit_is_told() -> None:
    wire, out = Wire(), writer()
    wire.open.clear()
    task = spawn("writer", out.run(wire.write, LIMIT_SECONDS))
    out.put(urgent(1))
    await until(lambda: wire.asked == 1, "the write begins")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_more_than_may_wait_is_not_taken() -> None:
    few = writer(frames_max=2)
    assert [few.put(urgent(number)) for number in (1, 2, 3)] == [True, True, False]
    light = writer(bytes_max=2 * len(codec.encode_from_agent(urgent(1))))
    assert [light.put(urgent(number)) for number in (1, 2, 3)] == [True, True, False]


async def test_what_is_being_written_counts_as_waiting() -> None:
    wire, out = Wire(), writer(bytes_max=2 * len(codec.encode_from_agent(urgent(1))))
    wire.open.clear()
    task = spawn("writer", out.run(wire.write, LIMIT_SECONDS))
    out.put(urgent(1))
    await until(lambda: wire.asked == 1, "the write begins")
    assert [out.put(urgent(number)) for number in (2, 3)] == [True, False]
    task.cancel()
    await asyncio.wait({task})


async def test_a_frame_that_the_peer_would_refuse_is_not_queued() -> None:
    wire, out = Wire(), writer()
    with pytest.raises(WireViolation):
        out.put(Frame(session=7, sequence=1, messages=(Withdraw(key=KEY),)))
    out.end()
    await out.run(wire.write, LIMIT_SECONDS)
    assert not wire.frames
