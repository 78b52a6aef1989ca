"""Health, readiness and metrics over plain HTTP, on an address that only the cluster reaches. Decides nothing.

Metrics may be guarded: then they have a port of their own, with TLS, where a scrape shows a token (`metrics_access`).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from gatelift_kube.deciding.budget import Share as Pace
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.serving.door import Door, Limits
from gatelift_kube.serving.metrics_access import Access, MetricsAccess
from gatelift_kube.values.numbers import whole

STOP_SECONDS = 2.0
"""How long open scrapes may take when the process ends."""
PACE = Pace(in_flight=64, per_second=200.0, burst=20)
"""Who asks without end gets a few percent of us, and one answer in a turn of the loop, not one for each connection."""
LIMITS = Limits(connections_max=64, bytes_max=1, idle_seconds=75.0, pace=PACE)
"""Probes of one node, and a few that scrape; nobody sends a body. Prometheus asks every minute at the latest."""
SCRAPE_SHARE = 10
"""Figures are kept this many times as long as it took to make them, so that who asks without end gets a tenth of us."""
_WAY_IN = "send the bearer token of a service account that may get the path /metrics"


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
        access: MetricsAccess | None = None,
        but: Callable[[], str] = str,
    ) -> None:
        """`missing` returns "" when ready; `refresh` sets gauges before a scrape.

        `access` decides who is given metrics; None: everybody. `but` returns what is not served though all else is.
        """
        self._registry = registry
        self._missing = missing
        self._refresh = refresh
        self._access = access
        self._but = but
        self._door = Door("health and metrics", LIMITS)
        self._clock = clock
        self._figures = b""
        self._figures_until = 0.0
        self.address = ""

    async def start(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        """Listen on `host:port` (host may be empty, port 0 takes a free one). Raises ListenError.

        With `tls` metrics alone are served there. Guarded ones are served nowhere else: a token is not for the clear.
        """
        app = web.Application()
        if tls is None:
            app.router.add_get("/healthz", self._health)
            app.router.add_get("/readyz", self._ready)
        else:
            self._door = Door("guarded metrics", LIMITS, lambda: tls)
        if tls is not None or self._access is None:
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
        but = "" if missing else self._but()
        return web.Response(status=503 if missing else 200, text=(missing or f"ok{but and f', but {but}'}") + "\n")

    async def _metrics(self, request: web.Request) -> web.Response:
        if self._access is not None:
            said = await self._access.judge(request.headers.get("Authorization", ""))
            if said is not Access.ALLOWED:
                return web.Response(status=said.value, text=f"{said.name.lower()}: {_WAY_IN}\n")
        now = self._clock()
        if now >= self._figures_until:
            self._refresh()
            self._figures = generate_latest(self._registry)
            end = self._clock()
            self._figures_until = end + SCRAPE_SHARE * (end - now)
        return web.Response(body=self._figures, headers={"Content-Type": CONTENT_TYPE_LATEST})
