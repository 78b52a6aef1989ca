"""Reads the Leases of kubelets, while somebody has to know which of them reach the API server. Decides nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gatelift_agent.core.values.events import KubeletsRead
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.objects.core import Lease
from gatelift_kube.process.clock import Clock
from gatelift_kube.values.resources import LEASE

READ_SECONDS = 8.0
"""A kubelet renews every ten seconds: one that is not seen to in three lists is still no break (`renewals`)."""

OF_KUBELETS = Selection(namespace="kube-node-lease")


class KubeletLeases:
    """Lists them once in a while, as long as `wanted` says so: a watch would tell of each node every ten seconds."""

    def __init__(
        self,
        client: Client,
        post: Callable[[KubeletsRead], None],
        wanted: Callable[[], bool],
        *,
        clock: Clock,
        problem: Callable[[str], None],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._post = post
        self._wanted = wanted
        self._clock = clock
        self._problem = problem
        self._pause = pause

    async def run(self) -> None:
        """Read, until cancelled. Who may not read them waits for what nodes write, as before."""
        while True:
            await self._pause(READ_SECONDS)
            if not self._wanted():
                continue
            try:
                await self._read()
            except KubeError as error:
                self._problem(f"leases in {OF_KUBELETS.namespace}: {error}")

    async def _read(self) -> None:
        asked_at, found = self._clock(), list[tuple[str, str]]()
        async for page in self._client.list(LEASE, OF_KUBELETS):
            for served in page.items:
                if isinstance(served.object, Lease) and served.object.spec.renew_time:
                    found.append((served.object.metadata.name, served.object.spec.renew_time))
        self._post(KubeletsRead(asked_at=asked_at, renewals=tuple(found)))
