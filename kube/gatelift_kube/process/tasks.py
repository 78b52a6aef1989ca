"""The one place where asyncio tasks start: each has a name, is referred to, and its failure reaches somebody.

`spawn` is for a task whose result its starter awaits. A `Supervisor` owns tasks that live as long as the process:
it hears of each failure and ends them all within a time limit. Used by every adapter and runtime loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

STOP_SECONDS = 5.0
"""How long a supervisor waits for cancelled tasks: longer than any clean-up of ours, shorter than a pod's grace."""

_running: set[asyncio.Task[Any]] = set()
"""The event loop holds tasks weakly; this reference keeps a task alive until it is done."""


def spawn(name: str, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start `coroutine` as a task of the running loop, and keep it alive until it is done.

    Its exception is for whoever awaits the task; if nobody does, the loop's exception handler is told of it.
    """
    task = asyncio.get_running_loop().create_task(coroutine, name=name)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


class Supervisor:
    """Owns long-lived tasks: tells `on_failure(name, error)` of each that fails, and ends them all on `stop`.

    `on_failure` is called in the event loop, once for each failed task; a cancelled task has not failed.
    """

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopped = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tasks that still run, sorted."""
        return tuple(sorted(task.get_name() for task in self._tasks))

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that this supervisor owns; after `stop` it raises RuntimeError and closes the coroutine."""
        if self._stopped:
            coroutine.close()
            raise RuntimeError(f"task {name} comes after the supervisor was stopped")
        task = spawn(name, coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def stop(self, seconds: float = STOP_SECONDS) -> tuple[str, ...]:
        """Cancel all tasks and wait at most `seconds` for them; return the names of those that have not ended."""
        self._stopped = True
        own = {task for task in self._tasks if task is not asyncio.current_task()}
        for task in own:
            task.cancel()
        if own:
            await asyncio.wait(own, timeout=seconds)
        return tuple(sorted(task.get_name() for task in own if not task.done()))

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_failure(task.get_name(), error)
