"""Signatures are looked at beside the event loop, in an order that strangers do not choose."""

from __future__ import annotations

import asyncio
import threading

import pytest

from gatelift.adapters.signing import Rank, Signing, SigningBusyError
from gatelift_kube.process.tasks import spawn


class Work:
    """Pieces of work behind one that takes until it is let go."""

    def __init__(self, signing: Signing) -> None:
        self.signing = signing
        self.order: list[str] = []
        self.go = threading.Event()
        self.first = spawn("first", signing.run(Rank.STRANGER, "x", self.go.wait, 20))

    async def add(self, rank: Rank, address: str, name: str) -> asyncio.Task[None]:
        task = spawn(name, self.signing.run(rank, address, self.order.append, name))
        await asyncio.sleep(0)
        return task

    async def finish(self, *tasks: asyncio.Task[None]) -> list[object]:
        self.go.set()
        await self.first
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_is_12_sessions_go_first_then_who_is_expected_and_strangers_take_turns() -> None:
    work = Work(Signing())
    await asyncio.sleep(0)
    tasks = [
        await work.add(Rank.STRANGER, "a", "a1"),
        await work.add(Rank.STRANGER, "a", "a2"),
        await work.add(Rank.STRANGER, "a", "a3"),
        await work.add(Rank.STRANGER, "b", "b1"),
        await work.add(Rank.EXPECTED, "a", "expected"),
        await work.add(Rank.SESSION, "w1", "session"),
    ]
    await work.finish(*tasks)
    assert work.order == ["session", "expected", "b1", "a1", "a2", "a3"]


async def test_is_12_when_too_many_wait_the_last_stranger_of_who_holds_most_gives_way() -> None:
    work = Work(Signing(waiting_max=2))
    await asyncio.sleep(0)
    tasks = [
        await work.add(Rank.STRANGER, "a", "a1"),
        await work.add(Rank.STRANGER, "a", "a2"),
        await work.add(Rank.STRANGER, "b", "b1"),
        await work.add(Rank.SESSION, "w1", "session"),
        await work.add(Rank.EXPECTED, "a", "expected"),
    ]
    outcomes = await work.finish(*tasks)
    assert work.order == ["session", "expected"]
    assert [isinstance(each, SigningBusyError) for each in outcomes] == [True, True, True, False, False]


async def test_is_12_who_hangs_up_while_he_waits_keeps_nobody_else_waiting() -> None:
    work = Work(Signing())
    await asyncio.sleep(0)
    gone, stays = await work.add(Rank.EXPECTED, "a", "gone"), await work.add(Rank.STRANGER, "b", "stays")
    gone.cancel()
    await work.finish(stays)
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert work.order == ["stays"]
    await work.signing.run(Rank.STRANGER, "c", work.order.append, "later")
    assert work.order == ["stays", "later"]
