"""A worker with a valid certificate that sends the costliest legal frames as fast as they are taken.

`python -m bench.hostile_worker FILE`: FILE is JSON (`Orders`). Prints `ready` when its session is open, floods until
its standard input ends, and keeps what it has written in the file `told`. It renews its lease, and greets anew when it
is closed. The loads:

- `finished`: seven Finished of 8,192 small objects, 3 MB: as many parts as a frame may have
- `inventory`: chunks of an inventory that is complete, four of 4,096 placements a frame
- `json`: two reports of 1.4 MB whose status has as many names as one may have values
- `counts`: 200 reports of the counts of 64 pod sets
- `older`: frames of almost 4 MiB of a session that is over
- `strays`: one report of a placement that nobody knows, a frame
- `renewals`: one renewal a frame
- `capacities`: one Capacity a frame, as many entries as there may be
- `greetings`: streams that greet, one after the other
- `credits`: fifty times a second how many placements it takes, one more and one less in turn
- `reach`: fifty times a second that it reaches its API server, and that it does not
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import msgspec

from bench.costly_statuses import SHAPES
from bench.fake_agents import AgentIdentity
from bench.processes import takes_what_is_left
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry, InventoryRequest
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Capacity,
    CapacityEntry,
    Close,
    Control,
    CountsReport,
    CreditGrant,
    Finished,
    Frame,
    Hello,
    LeaseRenew,
    ObjectReport,
    PodSetCounts,
    Report,
    Stopped,
    Welcome,
)

SERVICE = "gatelift.wire.v1.AgentService"
KEY = PlacementKey("11111111-2222-3333-4444-555555555555", 1)
RENEW_SECONDS = 5.0
AGAIN_SECONDS = 0.5
"""From the end of a stream to the next dial."""
REASON_CHARACTERS = 200
SMALL = ("credits", "reach")
"""Loads of small frames at an even pace."""
SMALL_SECONDS = 0.02
LOADS = ("finished", "inventory", "json", "counts", "older", "strays", "renewals", "capacities", "greetings", *SMALL)


class Orders(msgspec.Struct, frozen=True):
    """What the process is told. `switch`: a file; it floods while that is there, "" for always."""

    manager: str
    bundle: str
    identity: AgentIdentity
    load: str
    told: str
    switch: str = ""


class Told(msgspec.Struct):
    """What it has done so far. `frames` and `size` were taken by the stream; streams that ended were closed on it."""

    frames: int = 0
    size: int = 0
    streams: int = 0
    closed: int = 0
    reasons: list[str] = msgspec.field(default_factory=list)


def messages(load: str) -> tuple[Report, ...]:
    """Return the messages of one frame of a load."""
    state = ObjectReport(key=KEY, kind="Pod", name="p", uid="", status=b"")
    match load:
        case "finished":
            whole = Finished(key=KEY, succeeded=True, objects=(state,) * limits.OBJECTS_MAX)
            return (whole,) * (limits.FRAME_PARTS_MAX // limits.OBJECTS_MAX - 1)
        case "counts":
            one = PodSetCounts(name="main", active=1, ready=1, succeeded=0, failed=0, terminating=0, remaining=0)
            return (CountsReport(key=KEY, pod_sets=(one,) * limits.POD_SETS_MAX, reclaimable=()),) * 200
        case "json":
            text = SHAPES["long names"]()
            return (ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=text),) * 2
        case "older":
            text = b'{"a":"' + b"x" * (limits.STATUS_BYTES_MAX - 64) + b'"}'
            return (ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=text),) * 2
        case "capacities":
            entries = tuple(
                CapacityEntry(flavor=f"f-{number}", resource="cpu", nominal=1, used=0, largest_fit=1)
                for number in range(limits.CAPACITY_ENTRIES_MAX)
            )
            return (Capacity(entries=entries, namespaces=("bench",)),)
        case _:
            return (Stopped(key=PlacementKey("stray", 1)),)


def chunks() -> tuple[InventoryChunk, ...]:
    """Return what an inventory of some of the most has, under the number of one that nobody waits for any more."""
    listed = tuple(
        InventoryEntry(
            key=PlacementKey(f"11111111-2222-3333-4444-{number:012}", 1),
            namespace="bench",
            name=f"pod-{number}",
            state="RUNNING",
            lifted=True,
        )
        for number in range(limits.INVENTORY_CHUNK_ENTRIES)
    )
    return (InventoryChunk(request=1, applied=0, last=False, entries=listed),) * 4


class Hostile:
    """The worker."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._channel = grpc.aio.secure_channel(
            orders.manager,
            grpc.ssl_channel_credentials(
                orders.bundle.encode(), orders.identity.key.encode(), orders.identity.certificate.encode()
            ),
            options=(("grpc.max_send_message_length", -1), ("grpc.ssl_target_name_override", "localhost")),
        )
        self._session = 0
        self._sequence = 1
        self._path = Path(orders.told)
        self.told = Told()
        self.open = asyncio.Event()

    async def run(self) -> None:
        """Flood, and dial again whenever the stream ends."""
        while True:
            try:
                await self._stream()
            except (grpc.RpcError, asyncio.InvalidStateError) as ended:
                self.told.reasons = [*self.told.reasons, f"{type(ended).__name__}: {ended}"[:REASON_CHARACTERS]][-5:]
            self.told.closed += 1
            self._say()
            if self._orders.load != "greetings":
                await asyncio.sleep(AGAIN_SECONDS)

    async def _stream(self) -> None:
        call = self._channel.stream_stream(f"/{SERVICE}/Session")()
        self.told.streams += 1
        reading: asyncio.Task[None] | None = None
        try:
            hello = Hello(instance=f"hostile-{self.told.streams}", kinds=("Pod",), credits=1, api_reachable=True)
            await call.write(codec.encode_from_agent(Frame(session=0, control=(hello,))))
            if self._orders.load == "greetings" and self.open.is_set():
                await call.read()
                return
            await self._greeted(call)
            self.open.set()
            reading = spawn("hostile reads", self._read(call))
            await self._flood(call)
        finally:
            if reading is not None:
                reading.cancel()
            call.cancel()

    async def _greeted(self, call: Any) -> None:
        """Answer the inventory, so that the session is open."""
        while True:
            frame = await self._next(call)
            for control in frame.control:
                if isinstance(control, Welcome):
                    self._session, self._sequence = control.session, 1
                elif isinstance(control, InventoryRequest):
                    chunk = InventoryChunk(request=control.request, applied=0, last=True)
                    await call.write(
                        codec.encode_from_agent(Frame(session=self._session, sequence=1, control=(chunk,)))
                    )
                    return

    async def _next(self, call: Any) -> Frame:
        data = await call.read()
        if data is grpc.aio.EOF:
            raise asyncio.InvalidStateError("the stream ended")
        frame = codec.decode_from_manager(data)
        for control in frame.control:
            if isinstance(control, Close):
                self.told.reasons = [*self.told.reasons, f"{control.reason.value}: {control.text}"][-5:]
        return frame

    async def _read(self, call: Any) -> None:
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            while True:
                await self._next(call)

    async def _flood(self, call: Any) -> None:
        renewed, frames = 0.0, self._frames()
        while True:
            if time.monotonic() - renewed > RENEW_SECONDS:
                renewed = time.monotonic()
                await call.write(self._renewal())  # before the next frame takes its numbers
            data = next(frames)
            await call.write(data)
            self.told.frames += 1
            self.told.size += len(data)
            if self.told.size > 1 << 20 or self.told.frames % 50 == 0:
                self._say()
            if self._orders.load in SMALL:
                await asyncio.sleep(SMALL_SECONDS)

    def _renewal(self) -> bytes:
        control = (LeaseRenew(sent_at=time.monotonic(), api_reachable=True),)
        return codec.encode_from_agent(Frame(session=self._session, sequence=self._sequence, control=control))

    def _small(self, load: str, *, other: bool) -> bytes:
        said: Control = CreditGrant(credits=1 + other)
        if load == "reach":
            said = LeaseRenew(sent_at=time.monotonic(), api_reachable=other)
        return codec.encode_from_agent(Frame(session=self._session, sequence=self._sequence, control=(said,)))

    def _frames(self) -> Iterator[bytes]:
        load, session = self._orders.load, self._session
        if load in {"renewals", "greetings"}:
            while True:
                yield self._renewal()
        for turn in itertools.count() if load in SMALL else ():
            yield self._small(load, other=bool(turn % 2))
        if load == "inventory":
            data = codec.encode_from_agent(Frame(session=session, sequence=1, control=chunks()))
            while True:
                yield data
        said = messages(load)
        if load == "older":
            data = codec.encode_from_agent(Frame(session=session - 1, sequence=1, messages=said))
            while True:
                yield data
        data = codec.encode_from_agent(Frame(session=session, messages=said))
        while True:
            sequence, self._sequence = self._sequence, self._sequence + len(said)
            yield codec.join_from_agent([data], sequence)

    def _say(self) -> None:
        keep(self._path, self.told)


def keep(path: Path, told: Told) -> None:
    """Keep what was done so far; whoever reads sees all of it, or all of what was there before."""
    beside = path.with_suffix(".new")
    beside.write_bytes(msgspec.json.encode(told))
    beside.replace(path)


async def serve(path: Path, worker: type[Hostile] = Hostile) -> None:
    """Flood, as this kind of worker does, until standard input ends."""
    takes_what_is_left()
    hostile = worker(msgspec.json.decode(await asyncio.to_thread(path.read_bytes), type=Orders))
    flooding = spawn("flood", hostile.run())
    await hostile.open.wait()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    flooding.cancel()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
