"""Several hands that do the same thing with one after the other of what is to be done: requests in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from gatelift_kube.process.tasks import spawn

T = TypeVar("T")
R = TypeVar("R")


async def by_hands(things: Iterable[T], do: Callable[[T], Awaitable[R]], hands: int) -> list[R]:
    """Do it with each, with so many at a time; return what came of it, in no order."""
    left, found = iter(things), list[R]()

    async def hand() -> None:
        for thing in left:
            found.append(await do(thing))

    await asyncio.gather(*(spawn(f"hand {number}", hand()) for number in range(hands)))
    return found
