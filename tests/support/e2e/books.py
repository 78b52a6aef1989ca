"""The simulation's account of what runs and what is charged, kept of running clusters by their watches.

Between two clusters nothing is ordered, and on a busy machine a watch is seconds late: a shortfall is borne for a
while, one that stays is told. Nobody may edit by hand meanwhile, for a watch does not say who wrote.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import msgspec

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import GoneError, KubeError
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.account import Account, AccountError
from support.sim.attribution import LOCAL

BEARS_SECONDS = 30.0
"""Far above what a watch is late on a busy machine, and below what any of these runs lasts."""
PAUSE_SECONDS = 0.2
"""Before a watch that broke is opened anew, and between two looks at what is borne."""

Json = dict[str, Any]


class Books:
    """Follows the pods and Jobs of all clusters and the Workloads of the management cluster."""

    def __init__(self, clients: Mapping[str, Client], namespace: str, management: str) -> None:
        self.account = Account(bears=BEARS_SECONDS)
        self.wrong: list[str] = []
        self._namespace = namespace
        self._clients = {LOCAL if name == management else name: client for name, client in clients.items()}
        self._known: dict[tuple[str, Resource], dict[str, Json]] = {}

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[Books]:
        """Follow while the body runs."""
        tasks = [
            spawn(f"books-{cluster}-{resource.plural}", self._follow(cluster, resource))
            for cluster in self._clients
            for resource in (WORKLOAD, POD, JOB)
            if resource != WORKLOAD or cluster == LOCAL
        ]
        tasks.append(spawn("books", self._look()))
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            try:
                self.account.look(time.monotonic())
            except AccountError as problem:
                if str(problem) not in self.wrong:
                    self.wrong.append(str(problem))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _follow(self, cluster: str, resource: Resource) -> None:
        client, since = self._clients[cluster], ""
        while True:
            try:
                since = since or await self._listed(cluster, resource)
                watch = client.watch(resource, Selection(namespace=self._namespace), since=since)
                async with aclosing(watch) as lines:
                    async for line in lines:
                        document = msgspec.json.decode(line.raw)
                        if line.type in {"ADDED", "MODIFIED", "DELETED"}:
                            self._take(cluster, resource, document, removed=line.type == "DELETED")
                        since = document["metadata"]["resourceVersion"]
            except GoneError:
                since = ""
            except KubeError:  # the server is busy, or says nothing for long: from where we were
                await asyncio.sleep(PAUSE_SECONDS)

    async def _listed(self, cluster: str, resource: Resource) -> str:
        """Take all that is there, and what is gone since; return the version of the list."""
        found = msgspec.json.decode(await self._clients[cluster].raw("GET", resource.path(self._namespace)))
        there = {document["metadata"]["uid"] for document in found["items"]}
        known = self._known.get((cluster, resource), {})
        for uid in [uid for uid in known if uid not in there]:
            self._take(cluster, resource, known[uid], removed=True)
        for document in found["items"]:
            self._take(cluster, resource, document, removed=False)
        return str(found["metadata"]["resourceVersion"])

    def _take(self, cluster: str, resource: Resource, document: Json, *, removed: bool) -> None:
        known, uid = self._known.setdefault((cluster, resource), {}), document["metadata"]["uid"]
        if removed:
            known.pop(uid, None)
        else:
            known[uid] = document
        now = time.monotonic()
        try:
            if resource == WORKLOAD:
                self.account.workload(document, now, removed=removed)
            else:
                self.account.object(cluster, resource.kind, document, now, removed=removed)
        except AccountError as problem:
            self.wrong.append(str(problem))
