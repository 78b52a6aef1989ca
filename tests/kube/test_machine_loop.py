"""The loop that drives a machine: order, deadlines, and a queue that cannot grow without limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from gatelift_kube.process.machine_loop import QUEUE_MAX, MachineLoop
from gatelift_kube.process.tasks import spawn


class Recorder:
    """A machine that answers each event with itself and wants one tick at a time that is set."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self.deadline: float | None = None

    def handle(self, event: str, now: float) -> list[str]:
        self.handled.append(event)
        if event == "tick":
            self.deadline = None
        return [f"did {event}"]

    def next_deadline(self) -> float | None:
        return self.deadline


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110  # the machine under test is plain values: nothing sets an event
            await asyncio.sleep(0)


async def run_until(loop: MachineLoop[str, str], done: Callable[[], bool]) -> None:
    task = spawn("loop", loop.run())
    await until(done)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_events_are_handled_in_order_and_their_commands_performed() -> None:
    machine = Recorder()
    performed: list[str] = []
    loop = MachineLoop[str, str](machine, performed.append, tick="tick")
    loop.post("a")
    loop.post("b")
    await run_until(loop, lambda: len(performed) == 2)
    assert performed == ["did a", "did b"]


async def test_a_deadline_that_passes_becomes_a_tick() -> None:
    machine = Recorder()
    now = 0.0
    loop = MachineLoop[str, str](machine, lambda _command: None, tick="tick", clock=lambda: now)
    machine.deadline = 0.0
    await run_until(loop, lambda: "tick" in machine.handled)
    assert machine.handled == ["tick"]


async def test_an_event_wakes_a_loop_that_sleeps() -> None:
    machine = Recorder()
    loop = MachineLoop[str, str](machine, lambda _command: None, tick="tick")
    task = spawn("loop", loop.run())
    for _ in range(3):
        await asyncio.sleep(0)
    loop.post("late")
    await until(lambda: machine.handled == ["late"])
    task.cancel()


async def test_a_deadline_that_comes_nearer_is_kept_and_one_that_moves_away_rings_once() -> None:
    machine = Recorder()
    now = 0.0
    loop = MachineLoop[str, str](machine, lambda _command: None, tick="tick", clock=lambda: now)
    machine.deadline = 30.0
    task = spawn("loop", loop.run())
    await asyncio.sleep(0)
    machine.deadline = 0.02
    loop.post("nearer")
    await until(lambda: machine.handled == ["nearer"])
    machine.deadline = 0.06
    loop.post("away")
    await until(lambda: machine.handled == ["nearer", "away"])
    now = 0.03
    rung = asyncio.get_running_loop().time() + 0.04
    await until(lambda: asyncio.get_running_loop().time() > rung)
    assert machine.handled == ["nearer", "away"], "its first deadline is none any more"
    now = 0.06
    await until(lambda: "tick" in machine.handled)
    assert machine.handled == ["nearer", "away", "tick"]
    task.cancel()
    await asyncio.wait([task])


async def test_a_machine_that_is_always_due_leaves_others_their_turn() -> None:
    machine = Recorder()
    machine.next_deadline = lambda: 0.0  # type: ignore[method-assign] # a machine that never comes to rest
    loop = MachineLoop[str, str](machine, lambda _command: None, tick="tick")
    task = spawn("loop", loop.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert 3 <= machine.handled.count("tick") <= 6
    task.cancel()
    await asyncio.wait([task])


async def test_a_producer_that_never_waits_drains_the_queue_itself() -> None:
    machine = Recorder()
    loop = MachineLoop[str, str](machine, lambda _command: None, tick="tick")
    for number in range(QUEUE_MAX + 10):
        loop.post(str(number))
    assert loop.waiting == 10
    assert machine.handled == [str(number) for number in range(QUEUE_MAX)]


async def test_what_a_command_posts_is_handled_after_it_and_not_inside() -> None:
    machine = Recorder()

    def posts(command: str) -> None:
        if command == "did first":
            loop.post("second")

    loop = MachineLoop[str, str](machine, posts, tick="tick")

    loop.post("first")
    await run_until(loop, lambda: "second" in machine.handled)
    assert machine.handled == ["first", "second"]
