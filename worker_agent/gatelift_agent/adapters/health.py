"""How the worker's API server does, as seen from here: reachable, how slow, whether it turns us away.

Measured on our own writes, and by a small read now and then so that an idle agent knows as well. A change that matters
(reachable or not, a step in latency) is posted; the rest is for metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gatelift_agent.core.values.events import ApiHealthChanged, Event
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ApiError, BusyError, KubeError
from gatelift_kube.deciding.writes import WriteDone, WriteError, WriteFailed
from gatelift_kube.process.clock import Clock
from gatelift_kube.values.resources import NAMESPACE, ObjectKey, ObjectRef

PROBE_SECONDS = 5.0
PROBE_LIMIT_SECONDS = 4.0
"""A read of one object that takes longer than this counts as no answer."""

FAILURES_MAX = 2
"""So many failed reads in a row, and the API server counts as unreachable: one may be a lost packet."""

SMOOTHING = 0.2
"""Weight of the newest measurement."""

STEPS = (0.1, 0.3, 1.0, 3.0)
"""Latencies between which nothing is posted: the core's own steps lie among them."""

NO_ANSWER = frozenset({WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.NOT_SENT})
"""Ends of a write that say nothing about how long the API server takes."""


class HealthWatch:
    """Measures; `latency_seconds` and `reachable` are the present view."""

    def __init__(self, client: Client, post: Callable[[Event], None], namespace: str, clock: Clock) -> None:
        self._client = client
        self._post = post
        self._ref = ObjectRef(NAMESPACE, ObjectKey("", namespace))
        self._clock = clock
        self._began: dict[int, float] = {}
        self._failures = 0
        self._told: tuple[bool, int, bool] = (True, 0, False)
        self.latency_seconds = 0.0
        self.reachable = True
        self.throttled = False

    def write_began(self, write_id: int) -> None:
        """Note when a write was handed over."""
        self._began[write_id] = self._clock()

    def write_ended(self, event: WriteDone | WriteFailed) -> None:
        """Note a write's outcome; its waiting for a turn counts, since that is what the next one will see."""
        began = self._began.pop(event.write_id, None)
        if began is None:
            return
        if isinstance(event, WriteDone) or event.error not in NO_ANSWER:
            self._heard(self._clock() - began)

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            began = self._clock()
            try:
                await self._client.get(self._ref, seconds=PROBE_LIMIT_SECONDS)
            except BusyError:
                self.throttled = True
                self._heard(self._clock() - began)
            except ApiError as error:
                if error.status >= 500:
                    self._failed()
                else:
                    self._heard(self._clock() - began)
            except KubeError:
                self._failed()
            else:
                self.throttled = False
                self._heard(self._clock() - began)

    def _heard(self, seconds: float) -> None:
        self._failures = 0
        self.reachable = True
        self.latency_seconds += SMOOTHING * (seconds - self.latency_seconds)
        self._tell()

    def _failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self.reachable = False
        self._tell()

    def _tell(self) -> None:
        step = sum(1 for limit in STEPS if self.latency_seconds >= limit)
        view = (self.reachable, step, self.throttled)
        if view != self._told:
            self._told = view
            self._post(
                ApiHealthChanged(
                    reachable=self.reachable, latency_seconds=self.latency_seconds, throttled=self.throttled
                )
            )
