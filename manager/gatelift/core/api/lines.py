"""Lines of those who wait, each once, who came first first. Pure."""

from __future__ import annotations

import itertools
from typing import TypeVar

WaiterT = TypeVar("WaiterT")


def take_first(line: dict[WaiterT, None], count: int) -> list[WaiterT]:
    """Take so many out of a line."""
    taken = list(itertools.islice(line, count))
    for waiter in taken:
        del line[waiter]
    return taken
