"""A queue in which shares take turns, as `FairLine`, for those who wait until there is something."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from gatelift_kube.deciding.fair_line import FairLine, Share

QueuedT = TypeVar("QueuedT")


@dataclass(frozen=True, slots=True, eq=False)
class _Queued(Generic[QueuedT]):
    """One entry: what is put twice is there twice."""

    item: QueuedT


class FairQueue(asyncio.Queue[QueuedT]):
    """`share` says in whose share something waits, as it is put."""

    def __init__(self, share: Callable[[QueuedT], Share]) -> None:
        self._share = share
        super().__init__()

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 (of `asyncio.Queue`)
        self._queue: FairLine[_Queued[QueuedT]] = FairLine()

    def _put(self, item: QueuedT) -> None:
        self._queue.stand(_Queued(item), self._share(item))

    def _get(self) -> QueuedT:
        return self._queue.take().item
