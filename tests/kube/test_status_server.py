"""Health, readiness and metrics over HTTP: what a probe and Prometheus get."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from gatelift_kube.serving.status_server import ListenError, StatusServer


async def _get(server: StatusServer, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://{server.address}{path}") as response:
        return response.status, await response.text()


async def test_a_probe_is_told_what_is_missing_and_a_scrape_gets_the_figures_of_now() -> None:
    registry, missing, but, scrapes = CollectorRegistry(), "not listed yet: pods", "", 0
    gauge = Gauge("looked_at", "How often.", registry=registry)

    def refresh() -> None:
        nonlocal scrapes
        scrapes += 1
        gauge.set(scrapes)

    server = StatusServer(registry, lambda: missing, refresh, clock=lambda: 0.0, but=lambda: but)
    await server.start("127.0.0.1:0")
    try:
        assert await _get(server, "/readyz") == (503, "not listed yet: pods\n")
        assert await _get(server, "/healthz") == (200, "ok\n"), "who is not ready is not restarted for it"
        missing = ""
        assert await _get(server, "/readyz") == (200, "ok\n")
        but = "namespace n: may not be listed"
        assert await _get(server, "/readyz") == (200, "ok, but namespace n: may not be listed\n"), "HD-300"
        for times in (1, 2):
            assert f"looked_at {times}.0" in (await _get(server, "/metrics"))[1]
        with pytest.raises(ListenError, match=f"^health and metrics: {server.address} cannot be listened on"):
            await StatusServer(registry, str, refresh).start(server.address)
    finally:
        await server.stop()
