"""Health, readiness and metrics over plain HTTP, on an address that only the cluster reaches. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

STOP_SECONDS = 2.0
"""How long open scrapes may take when the process ends."""


class ListenError(OSError):
    """An address cannot be listened on; one line that names it."""


class StatusServer:
    """`/healthz` lives while the loop does; `/readyz` says in one line what is missing; `/metrics`."""

    def __init__(self, registry: CollectorRegistry, missing: Callable[[], str], refresh: Callable[[], None]) -> None:
        """`missing` returns "" when ready; `refresh` sets gauges before a scrape."""
        self._registry = registry
        self._missing = missing
        self._refresh = refresh
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def start(self, address: str) -> None:
        """Listen on `host:port` (host may be empty, port 0 takes a free one). Raises ListenError."""
        app = web.Application()
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS)
        await self._runner.setup()
        host, _, port = address.rpartition(":")
        site = web.TCPSite(self._runner, host or "0.0.0.0", int(port))  # noqa: S104  # probes come from the node
        try:
            await site.start()
        except OSError as error:
            why = error.strerror or str(error)
            raise ListenError(f"health and metrics: {address} cannot be listened on ({why}); choose another") from error
        bound = self._runner.addresses[0]
        self.address = f"{bound[0]}:{bound[1]}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _request: web.Request) -> web.Response:
        missing = self._missing()
        return web.Response(status=503 if missing else 200, text=(missing or "ok") + "\n")

    async def _metrics(self, _request: web.Request) -> web.Response:
        self._refresh()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
