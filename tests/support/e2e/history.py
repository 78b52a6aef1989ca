"""What Workloads have shown, version by version, for what is true for a moment only.

Whoever looks every tenth of a second misses what is overwritten sooner, and on a busy machine nobody looks for seconds.
A watch brings each version that was written, so what was shown can be asked for afterwards. Neighbour: `world`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import GoneError, KubeError
from gatelift_kube.values.resources import WORKLOAD

WORKLOADS_MAX = 1000
"""Far above what a run makes; the oldest ones go."""
VERSIONS_MAX = 500
"""Of one Workload: a life has a dozen writes for each placement."""
PAUSE_SECONDS = 0.2
"""Before a watch that broke is opened anew."""

Json = dict[str, Any]


class History:
    """All versions of the Workloads of a namespace since `follow` began, in the order in which they were written."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._versions: OrderedDict[str, deque[Json]] = OrderedDict()  # by UID

    async def follow(self) -> None:
        """Note what is written until cancelled. Only a version too old to be told by the server is not noted."""
        since = ""
        while True:
            try:
                since = since or await self._listed()
                watch = self._client.watch(WORKLOAD, Selection(namespace=self._namespace), since=since)
                async with aclosing(watch) as lines:
                    async for line in lines:
                        since = self.take(line.type, msgspec.json.decode(line.raw))
            except GoneError:
                since = ""
            except KubeError:  # the server is busy, or says nothing for long: from where we were
                await asyncio.sleep(PAUSE_SECONDS)

    async def _listed(self) -> str:
        """Note all that is there; return the version of the list."""
        found = msgspec.json.decode(await self._client.raw("GET", WORKLOAD.path(self._namespace)))
        for document in found["items"]:
            self.take("ADDED", document)
        return str(found["metadata"]["resourceVersion"])

    def take(self, type_: str, document: Json) -> str:
        """Note what a line of a watch says; return its resourceVersion."""
        meta = document["metadata"]
        if type_ in {"ADDED", "MODIFIED"}:
            versions = self._versions.setdefault(meta["uid"], deque(maxlen=VERSIONS_MAX))
            if not versions or versions[-1]["metadata"]["resourceVersion"] != meta["resourceVersion"]:
                versions.append(document)
            if len(self._versions) > WORKLOADS_MAX:
                self._versions.popitem(last=False)
        return str(meta["resourceVersion"])

    def first(self, kind: str, name: str, met: Callable[[Json], bool], after: Mapping[str, Any] | None) -> Json | None:
        """Return the first version of an object's Workload that is so, None if there was none yet.

        `after`: a version of it; only later ones count.
        """
        for versions in self._versions.values():
            owners = versions[-1]["metadata"].get("ownerReferences", ())
            if not any(owner["name"] == name and owner["kind"] == kind for owner in owners):
                continue
            for document in versions:
                if (after is None or _version(document) > _version(after)) and met(document):
                    return document
        return None


def _version(document: Mapping[str, Any]) -> int:
    """Return the resourceVersion, which is a number that grows on the API servers that we run."""
    return int(document["metadata"]["resourceVersion"])
