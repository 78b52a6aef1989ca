"""Tasks have names, live as long as they run, and fail loudly."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from gatelift_kube.process.tasks import Supervisor, spawn
from support.until import until


async def test_a_task_gives_its_result_to_whoever_awaits_it() -> None:
    async def work() -> int:
        return 7

    task = spawn("seven", work())
    assert task.get_name() == "seven"
    assert await task == 7


async def _break() -> None:
    raise ValueError("broken")


async def _run_for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_failure_reaches_the_supervisor_with_the_name_of_the_task() -> None:
    failures: list[tuple[str, str]] = []
    supervisor = Supervisor(lambda name, error: failures.append((name, str(error))))
    supervisor.spawn("reader", _break())
    await until(lambda: failures)
    assert failures == [("reader", "broken")]
    assert not supervisor.names


async def test_stopping_ends_all_tasks_and_is_no_failure() -> None:
    failures: list[str] = []
    supervisor = Supervisor(lambda name, _error: failures.append(name))
    supervisor.spawn("b", _run_for_ever())
    supervisor.spawn("a", _run_for_ever())
    assert supervisor.names == ("a", "b")
    assert await supervisor.stop() == ()
    assert failures == []
    assert not supervisor.names


async def test_stopping_waits_only_so_long_and_names_who_does_not_end() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await release.wait()

    supervisor = Supervisor(lambda _name, _error: None)
    task = supervisor.spawn("stubborn", stubborn())
    await started.wait()
    assert await supervisor.stop(seconds=0.01) == ("stubborn",)
    release.set()
    await task


async def test_a_stopped_supervisor_starts_nothing() -> None:
    supervisor = Supervisor(lambda _name, _error: None)
    await supervisor.stop()
    with pytest.raises(RuntimeError, match="late comes after the supervisor was stopped"):
        supervisor.spawn("late", _run_for_ever())
