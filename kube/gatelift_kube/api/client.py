"""A thin client of the Kubernetes API: typed reads, watches, and the three writes in use. No hidden state.

Reads are tried again by `retry`; writes are tried once, since only the caller knows what a second try would mean
(`executor` does). Every call has a time limit. Patches are merge or JSON patches of named fields, so fields that the
typed objects do not carry survive.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlencode

import msgspec

from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.connections import HttpAnswer
from gatelift_kube.api.transport import CONNECTIONS_MAX, HttpTransport, Transport
from gatelift_kube.deciding.errors import ImpossibleNameError, KubeError, TimedOutError, from_status
from gatelift_kube.deciding.retry import Intent, RetryPolicy, delay
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, Patch, PatchKind
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.decoding import Page, Served, WatchLine
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.resources import ObjectRef, Resource

READ_SECONDS_MAX = 30.0
"""A read, its retries included: a page of 500 objects takes a busy API server a second or two."""
TRY_READ_SECONDS_MAX = 15.0
PAGE_SIZE = 500
"""Objects a page: decoding one stalls the event loop 5 ms, and the server holds one page in memory, not a list."""
WATCH_SECONDS = 290
"""A watch ends by itself below the API server's and aiohttp's 300 s; then the next one starts where it ended."""
WATCH_IDLE_SECONDS = 100.0
"""API servers send a bookmark about every 60 s, but none for a kind of which nothing changed since they started:
silence of 100 s means that the connection is dead, or that nothing happened. Either way the watch is opened anew."""

_JSON = "application/json"
_DRY_RUN = "dryRun=All"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind: all of them by default; the selectors are in the form of a query parameter."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> list[tuple[str, str]]:
        """Return the query parameters."""
        pairs = (("labelSelector", self.labels), ("fieldSelector", self.fields))
        return [(name, value) for name, value in pairs if value]


ALL = Selection()


class Client:
    """One API server. Raises KubeError and its kinds (`errors`), nothing else."""

    def __init__(
        self,
        transport: Transport,
        *,
        policy: RetryPolicy | None = None,
        rng: random.Random | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self._transport = transport
        self._policy = policy or RetryPolicy()
        self._rng = rng or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._clock = clock

    @classmethod
    def connect(
        cls, config: ClusterConfig, *, connections: int = CONNECTIONS_MAX, user_agent: str = "gatelift"
    ) -> Client:
        """Return a client over HTTP; connections are made when they are needed."""
        return cls(HttpTransport(config, connections=connections, user_agent=user_agent))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def get(self, ref: ObjectRef, *, seconds: float = READ_SECONDS_MAX) -> Served:
        """Read one object (a quorum read); NotFoundError where it is not there."""
        answer = await self._read(_path_of(ref), "", seconds)
        return Served(decoding.read_object(ref.resource, answer.body), answer.body)

    async def list_page(
        self,
        resource: Resource,
        selection: Selection = ALL,
        *,
        after: str = "",
        limit: int = PAGE_SIZE,
        with_raw: bool = False,
        seconds: float = READ_SECONDS_MAX,
    ) -> Page:
        """Read one page of a list (a quorum read, never resourceVersion=0); `after` is `Page.next` of the page before.

        GoneError where `after` is too old: start again without it.
        """
        pairs = [*selection.query(), ("limit", str(limit))]
        if after:
            pairs.append(("continue", after))
        answer = await self._read(_path(resource, selection.namespace), urlencode(pairs), seconds)
        return decoding.read_page(resource, answer.body, with_raw=with_raw)

    async def list(
        self, resource: Resource, selection: Selection = ALL, *, limit: int = PAGE_SIZE, with_raw: bool = False
    ) -> AsyncGenerator[Page, None]:
        """Read a list page by page; ends after the last one. GoneError where it took longer than the server allows."""
        after = ""
        while True:
            page = await self.list_page(resource, selection, after=after, limit=limit, with_raw=with_raw)
            yield page
            after = page.next
            if not after:
                return

    async def watch(
        self,
        resource: Resource,
        selection: Selection = ALL,
        *,
        since: str,
        seconds: int = WATCH_SECONDS,
        idle_seconds: float = WATCH_IDLE_SECONDS,
    ) -> AsyncGenerator[WatchLine, None]:
        """Stream changes after resourceVersion `since`, bookmarks included, until the server ends it.

        GoneError where `since` is too old; other ERROR lines raise ApiError. Wrap it in `contextlib.aclosing`.
        """
        pairs = [
            *selection.query(),
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", since),
            ("timeoutSeconds", str(seconds)),
        ]
        path = _path(resource, selection.namespace)
        async with aclosing(self._transport.lines(path, urlencode(pairs), idle_seconds=idle_seconds)) as texts:
            async for text in texts:
                if not text or text.isspace():
                    continue
                line = decoding.read_line(text)
                if line.type == "ERROR":
                    raise decoding.watch_error(line)
                yield line

    async def create(
        self,
        resource: Resource,
        namespace: str,
        body: bytes,
        *,
        dry_run: bool = False,
        seconds: float = WRITE_SECONDS_MAX,
    ) -> Served:
        """Create an object from a complete JSON document; AlreadyExistsError where the name is taken.

        `dry_run`: return what would be made, and keep nothing.
        """
        query = _DRY_RUN if dry_run else ""
        answer = await self._write("POST", _path(resource, namespace), body, _JSON, seconds, query=query)
        return Served(decoding.read_object(resource, answer.body), answer.body)

    async def patch(
        self,
        ref: ObjectRef,
        body: bytes,
        kind: PatchKind = PatchKind.MERGE,
        *,
        subresource: str = "",
        seconds: float = WRITE_SECONDS_MAX,
    ) -> Served:
        """Patch or replace an object; ConflictError where a precondition in `body` does not hold."""
        path = _path_of(ref, subresource)
        method = "PUT" if kind is PatchKind.REPLACE else "PATCH"
        answer = await self._write(method, path, body, kind.value, seconds)
        return Served(decoding.read_object(ref.resource, answer.body), answer.body)

    async def apply(self, patch: Patch, *, seconds: float = WRITE_SECONDS_MAX) -> Served:
        """Carry out a `Patch` command."""
        return await self.patch(patch.ref, patch.body, patch.kind, subresource=patch.subresource, seconds=seconds)

    async def delete(
        self,
        ref: ObjectRef,
        *,
        uid: str = "",
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        propagation: str = "Background",
        seconds: float = WRITE_SECONDS_MAX,
    ) -> Served | None:
        """Delete an object; None where it was removed at once, else the object as it terminates.

        ConflictError where the UID or resourceVersion is another one, NotFoundError where nothing is there.
        """
        preconditions: dict[str, str] = {"uid": uid} if uid else {}
        if resource_version is not None:
            preconditions["resourceVersion"] = resource_version
        options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if preconditions:
            options["preconditions"] = preconditions
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        answer = await self._write("DELETE", _path_of(ref), msgspec.json.encode(options), _JSON, seconds)
        return decoding.read_deleted(ref.resource, answer.body)

    async def raw(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        content_type: str = _JSON,
        *,
        seconds: float = READ_SECONDS_MAX,
    ) -> bytes:
        """Send any request once and return the body; raises ApiError from status 300 on. For discovery and reviews."""
        answer = await self._transport.request(method, path, query, body, content_type if body else "", seconds=seconds)
        return _checked(answer).body

    async def _write(
        self, method: str, path: str, body: bytes, content_type: str, seconds: float, *, query: str = ""
    ) -> HttpAnswer:
        # The server gives up at the same moment as we do. Without this a write that waited in one of its queues could
        # land long after we had called its outcome unknown (protocol rule R1).
        answer = await self._transport.request(method, path, query, body, content_type, seconds=seconds, told=True)
        return _checked(answer)

    async def _read(self, path: str, query: str, seconds: float) -> HttpAnswer:
        deadline = self._clock() + seconds
        tried = 0
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise TimedOutError(f"GET {path}: no answer within {seconds:g} s")
            try:
                return _checked(
                    await self._transport.request("GET", path, query, seconds=min(left, TRY_READ_SECONDS_MAX))
                )
            except KubeError as error:
                tried += 1
                wait = delay(error, tried=tried, intent=Intent.READ, policy=self._policy, fraction=self._rng.random())
                if wait is None or self._clock() + wait >= deadline:
                    raise
            await asyncio.sleep(wait)


def _path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    try:
        return resource.path(namespace, name, subresource)
    except ValueError as error:
        raise ImpossibleNameError(str(error)) from None


def _path_of(ref: ObjectRef, subresource: str = "") -> str:
    return _path(ref.resource, ref.key.namespace, ref.key.name, subresource)


def _checked(answer: HttpAnswer) -> HttpAnswer:
    if answer.status >= 300:
        raise from_status(answer.status, answer.body, answer.retry_after)
    return answer
