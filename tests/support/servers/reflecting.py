"""A reflector on a fake API server, and what it told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import Reflector, ReflectorLimits
from gatelift_kube.deciding.backoff import Backoff
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import POD, Resource
from support.servers.fake_apiserver import FakeApiServer

LIMITS = ReflectorLimits(
    page_size=2, idle_seconds=30.0, backoff=Backoff(first_seconds=0.001, max_seconds=0.01), calm_seconds=0.0
)


class Followed:
    """A reflector and what it told."""

    def __init__(
        self,
        client: Client,
        limits: ReflectorLimits = LIMITS,
        selection: Selection | None = None,
        *,
        raw: bool = True,
        followed: bool = False,
        resource: Resource = POD,
    ) -> None:
        self.events: list[ApiEvent] = []
        self.problems: list[str] = []
        self.went_back: list[str] = []
        self.reflector = Reflector(
            client,
            resource,
            self.events.append,
            selection=selection or Selection(),
            with_raw=raw,
            followed=followed,
            limits=limits,
            on_problem=self.problems.append,
            on_went_back=self.went_back.append,
        )

    def told(self) -> list[str]:
        """Return the events as short words."""
        return [word(event) for event in self.events]


def word(event: ApiEvent) -> str:
    """Return an event as a short word."""
    match event:
        case ObjectSeen():
            return f"+{event.object.metadata.name}"
        case ObjectGone():
            return f"-{event.object.metadata.name}"
        case _:
            return "synced"


@asynccontextmanager
async def running(followed: Followed) -> AsyncIterator[Followed]:
    task = spawn("reflector", followed.reflector.run())
    try:
        async with asyncio.timeout(60):
            await followed.reflector.synced.wait()
        yield followed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def watches(server: FakeApiServer) -> list[str]:
    """Return the version from which each watch was asked for."""
    return [seen.query["resourceVersion"] for seen in server.asked("GET") if "watch" in seen.query]
