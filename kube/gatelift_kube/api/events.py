"""Writes Kubernetes events (events.k8s.io/v1) for people, best effort: own budget, counted, dropped oldest first.

`event_series` decides what is written; this module sends it. A write that fails is not tried again: the next event of
its kind starts anew, and no event ever stands in the way of work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.budget import Share, TokenBucket, Traffic, budget, rest
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.deciding.event_series import EventSeries, EventWrite
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.process.clock import Clock, monotonic, wall

WRITE_SECONDS = 3.0
"""An event that takes longer is not worth the connection."""


class EventRecorder:
    """Takes events (`record`) and writes them while `run` runs. Belongs to one event loop.

    `controller` is a qualified name such as `gatelift.dev/manager`, `instance` the pod or process that speaks.
    `allowed` is asked right before each write: what a process has seen that leads no more is not told, since a count
    comes due long after its event, so also to one that was paused and wakes.
    """

    def __init__(
        self,
        client: Client,
        controller: str,
        instance: str,
        *,
        share: Share | None = None,
        allowed: Callable[[], bool] = lambda: True,
        clock: Clock = monotonic,
        wall_clock: Clock = wall,
    ) -> None:
        self._client = client
        self._allowed = allowed
        self._series = EventSeries(controller, instance)
        self._clock = clock
        self._wall = wall_clock
        self._bucket = TokenBucket(share or budget().shares[Traffic.EVENT], clock())
        self._wake = asyncio.Event()

    @property
    def dropped(self) -> int:
        """How many events were given up: too many at once, or refused."""
        return self._series.dropped

    def record(self, event: EmitEvent) -> None:
        """Take an event; returns at once and never fails."""
        self._series.add(event, self._clock(), self._wall())
        self._wake.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            write = self._series.take(self._clock())
            if write is None:
                await self._until_due()
                continue
            wait = self._bucket.take(self._clock())
            if wait > 0:
                await asyncio.sleep(wait)
            if not self._allowed():
                self._series.failed(write)
                continue
            began = self._clock()
            try:
                await self._send(write)
            except KubeError:
                self._series.failed(write)  # refused, or expired on the server, or its namespace is gone
            else:
                self._series.written(write, self._clock())
            await asyncio.sleep(rest(self._clock() - began))

    async def _until_due(self) -> None:
        self._wake.clear()
        now = self._clock()
        due = self._series.next_deadline(now)
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - now)):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _send(self, write: EventWrite) -> None:
        if write.create:
            await self._client.create(write.ref.resource, write.ref.key.namespace, write.body, seconds=WRITE_SECONDS)
        else:
            await self._client.patch(write.ref, write.body, seconds=WRITE_SECONDS)
