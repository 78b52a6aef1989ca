"""Health, readiness and metrics over plain HTTP, on an address that only the cluster reaches. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gatelift_kube.clock import Clock, monotonic
from gatelift_kube.door import Door, Limits
from gatelift_kube.numbers import whole

STOP_SECONDS = 2.0
"""How long open scrapes may take when the process ends."""
LIMITS = Limits(connections_max=64, bytes_max=1, idle_seconds=75.0)
"""Probes of one node, and a few that scrape; nobody sends a body. Prometheus asks every minute at the latest."""
SCRAPE_SHARE = 10
"""Figures are kept this many times as long as it took to make them, so that who asks without end gets a tenth of us."""


class ListenError(OSError):
    """An address cannot be listened on; one line that names it."""


class StatusServer:
    """`/healthz` lives while the loop does; `/readyz` says in one line what is missing; `/metrics`."""

    def __init__(
        self,
        registry: CollectorRegistry,
        missing: Callable[[], str],
        refresh: Callable[[], None],
        clock: Clock = monotonic,
    ) -> None:
        """`missing` returns "" when ready; `refresh` sets gauges before a scrape."""
        self._registry = registry
        self._missing = missing
        self._refresh = refresh
        self._door = Door("health and metrics", LIMITS)
        self._clock = clock
        self._figures = b""
        self._figures_until = 0.0
        self.address = ""

    async def start(self, address: str) -> None:
        """Listen on `host:port` (host may be empty, port 0 takes a free one). Raises ListenError."""
        app = web.Application()
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        host, _, port = address.rpartition(":")
        try:
            host = host or "0.0.0.0"  # noqa: S104  # probes come from the node
            await self._door.open(app, host, whole(port) or 0, stop_seconds=STOP_SECONDS)
        except OSError as error:
            why = error.strerror or str(error)
            raise ListenError(f"health and metrics: {address} cannot be listened on ({why}); choose another") from error
        self.address = ":".join(map(str, self._door.address))

    async def stop(self) -> None:
        """Stop listening."""
        await self._door.close()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _request: web.Request) -> web.Response:
        missing = self._missing()
        return web.Response(status=503 if missing else 200, text=(missing or "ok") + "\n")

    async def _metrics(self, _request: web.Request) -> web.Response:
        now = self._clock()
        if now >= self._figures_until:
            self._refresh()
            self._figures = generate_latest(self._registry)
            end = self._clock()
            self._figures_until = end + SCRAPE_SHARE * (end - now)
        return web.Response(body=self._figures, headers={"Content-Type": CONTENT_TYPE_LATEST})
