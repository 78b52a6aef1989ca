"""Writes that are taken back: one that waits for its turn is never sent, one that is under way is carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import cast

import pytest
import pytest_asyncio

from gatelift_kube.budget import Budget, Share, Traffic
from gatelift_kube.client import Client
from gatelift_kube.executor import Executor
from gatelift_kube.resources import POD
from gatelift_kube.tasks import spawn
from gatelift_kube.writes import ApiEvent, Patch, TakeBack, WriteDone, WriteError, WriteFailed
from support.fake_apiserver import ref_of
from support.until import until

LIMITS = Budget(dict.fromkeys(Traffic, Share(in_flight=1, per_second=1000, burst=100)))


class Busy:
    """An executor with one turn, and a client that answers when it is told to."""

    def __init__(self) -> None:
        self.sent: list[int] = []
        self.outcomes: list[ApiEvent] = []
        self.answers = asyncio.Semaphore(0)
        self.executor = Executor(cast("Client", self), self.outcomes.append, limits=LIMITS)

    async def apply(self, patch: Patch, *, seconds: float) -> None:
        assert seconds > 0
        self.sent.append(patch.write_id)
        await self.answers.acquire()

    def ask(self, write_id: int, name: str) -> None:
        self.executor.submit(Patch(write_id=write_id, ref=ref_of(POD, name, "ns"), body=b"{}"))

    def take_back(self, write_id: int, name: str) -> None:
        self.executor.take_back(TakeBack(write_id=write_id, ref=ref_of(POD, name, "ns")))

    async def answered(self, count: int) -> dict[int, WriteError | None]:
        """Wait for so many outcomes; return what came of each write, None if it was carried out."""
        await until(lambda: len(self.outcomes) >= count)
        return {
            one.write_id: one.error if isinstance(one, WriteFailed) else None
            for one in self.outcomes
            if isinstance(one, WriteDone | WriteFailed)
        }


@pytest_asyncio.fixture
async def busy() -> AsyncIterator[Busy]:
    """Let one write be under way, and one of another object wait."""
    made = Busy()
    task = spawn("executor", made.executor.run())
    made.ask(1, "first")
    await until(lambda: made.sent == [1])
    made.ask(2, "second")
    yield made
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_one_that_waits_is_answered_as_not_sent_after_the_call_and_never_sent(busy: Busy) -> None:
    busy.take_back(2, "second")
    assert busy.outcomes == []
    assert await busy.answered(1) == {2: WriteError.NOT_SENT}
    assert busy.executor.held == 1
    busy.ask(3, "third")
    busy.answers.release()
    busy.answers.release()
    assert await busy.answered(3) == {1: None, 2: WriteError.NOT_SENT, 3: None}
    assert busy.sent == [1, 3]


async def test_what_is_asked_for_after_it_is_carried_out_once(busy: Busy) -> None:
    busy.take_back(2, "second")
    busy.ask(3, "second")
    for _ in range(3):
        busy.answers.release()
    assert await busy.answered(3) == {1: None, 2: WriteError.NOT_SENT, 3: None}
    busy.ask(4, "second")
    assert await busy.answered(4) == {1: None, 2: WriteError.NOT_SENT, 3: None, 4: None}
    assert busy.sent == [1, 3, 4]


async def test_others_to_the_same_object_keep_their_order(busy: Busy) -> None:
    busy.ask(3, "second")
    busy.ask(4, "second")
    busy.take_back(3, "second")
    for _ in range(3):
        busy.answers.release()
    assert await busy.answered(4) == {1: None, 2: None, 3: WriteError.NOT_SENT, 4: None}
    assert busy.sent == [1, 2, 4]


@pytest.mark.parametrize(("write_id", "name"), [(1, "first"), (9, "second"), (9, "nobody")])
async def test_one_under_way_and_one_that_nobody_knows_change_nothing(busy: Busy, write_id: int, name: str) -> None:
    busy.take_back(write_id, name)
    busy.answers.release()
    busy.answers.release()
    assert await busy.answered(2) == {1: None, 2: None}
    assert busy.sent == [1, 2]
