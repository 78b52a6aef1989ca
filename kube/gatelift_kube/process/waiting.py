"""Looking again until something is so, by tenacity: for what waits outside of the cores and has no watch to follow.

Not for requests that are sent again (`retry` knows which may be), nor for loops whose pauses a core decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, retry_if_result, wait_fixed
from tenacity.stop import StopBaseT

from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.deciding.retry import is_transient

T = TypeVar("T")


def _never(_error: BaseException) -> bool:
    return False


async def until(
    look: Callable[[], Awaitable[T]],
    every: float,
    stop: StopBaseT,
    *,
    heals: Callable[[BaseException], bool] = _never,
) -> T:
    """Look every so many seconds until something true is seen, or `stop` says so; return what was seen last.

    An error for which `heals` is true counts as a look that saw nothing; every other one goes to the caller at once.
    """

    async def seen() -> T:
        return await look()

    again = retry_if_result(_nothing) | retry_if_exception(heals)
    looking = AsyncRetrying(retry=again, wait=wait_fixed(every), stop=stop, retry_error_callback=_last)
    found: T = await looking(seen)
    return found


def may_heal(error: BaseException) -> bool:
    """Return whether an error is one of the API server's that may be gone at the next try."""
    return isinstance(error, KubeError) and is_transient(error)


def failure(state: RetryCallState) -> BaseException | None:
    """Return what the last try has raised."""
    return None if state.outcome is None else state.outcome.exception()


def _nothing(seen: object) -> bool:
    return not seen


def _last(state: RetryCallState) -> object:
    return None if state.outcome is None else state.outcome.result()
