"""A worker that takes what asks for it, and then says of each of its pods in turn that it is over and that it runs.

`python -m bench.hostile_flip FILE`: as `hostile_worker`, whose load `flip` this is. It holds for pods whose name begins
with `PREFIX` and refuses all others, so that work of the honest does not end here; it begins when it has any. It is one
process for all rounds: one that comes back has none of its pods, and all of them would be placed anew.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from bench.hostile_worker import RENEW_SECONDS, SERVICE, Hostile, serve
from bench.loader import BESIDE
from gatelift_kube.process import collector
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Capacity,
    Commit,
    Control,
    Frame,
    GatesLifted,
    Hello,
    LeaseRenew,
    Message,
    ObjectReport,
    Offer,
    Report,
    Stop,
    Stopped,
)
from gatelift_wire.values.refusals import Refusal

PREFIX = f"{BESIDE}flip-"
FLIP_SECONDS = 0.3
"""From one report of each to the next."""
AT_ONCE = 200
"""Messages of one frame."""
RUNS = json.dumps({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}).encode()
OVER = json.dumps({"phase": "Succeeded", "conditions": [{"type": "Ready", "status": "False"}]}).encode()


class Flipping(Hostile):
    """The worker."""

    async def _stream(self) -> None:
        call = self._channel.stream_stream(f"/{SERVICE}/Session")()
        self.told.streams += 1
        self._placed: dict[PlacementKey, str] = {}
        self._acknowledged = 0
        hello = Hello(instance=f"flip-{self.told.streams}", kinds=("Pod",), credits=10_000, api_reachable=True)
        await call.write(codec.encode_from_agent(Frame(session=0, control=(hello,))))
        await self._greeted(call)
        self._turn = asyncio.Lock()
        await self._send(call, (Capacity(namespaces=("bench",)),))
        self.open.set()
        besides = (spawn("flip reads", self._answers(call)), spawn("flip renews", self._renews(call)))
        try:
            await self._flips(call)
        finally:
            for each in besides:
                each.cancel()
            call.cancel()

    async def _send(self, call: Any, messages: tuple[Report, ...] = (), control: tuple[Control, ...] = ()) -> None:
        async with self._turn:  # numbers go out in their order
            sequence, self._sequence = self._sequence, self._sequence + len(messages)
            frame = Frame(
                session=self._session,
                sequence=sequence,
                acknowledged=self._acknowledged,
                control=control,
                messages=messages,
            )
            data = codec.encode_from_agent(frame)
            self.told.frames += 1
            self.told.size += len(data)
            await call.write(data)

    async def _answers(self, call: Any) -> None:
        while True:
            frame = await self._next(call)
            said: list[Report] = []
            for number, message in enumerate(frame.messages):
                self._acknowledged = max(self._acknowledged, frame.sequence + number)
                said += self._answer(message)
            for at in range(0, len(said), AT_ONCE):
                await self._send(call, tuple(said[at : at + AT_ONCE]))

    def _answer(self, message: Message) -> list[Report]:
        match message:
            case Offer(key=key, name=name) if name.startswith(PREFIX):
                return [Bid(key=key, kind=BidKind.HELD, hold_seconds=60.0, cost=-1.0)]
            case Offer(key=key):
                return [Bid(key=key, kind=BidKind.REFUSED, refusal=Refusal.POLICY)]
            case Commit(key=key, objects=objects):
                self._placed[key] = objects[0].name
                return [Applied(key=key), GatesLifted(key=key), self._report(key, over=False)]
            case Stop(key=key):
                self._placed.pop(key, None)
                return [Stopped(key=key)]
            case _:
                return []

    def _report(self, key: PlacementKey, *, over: bool) -> ObjectReport:
        status = OVER if over else RUNS
        return ObjectReport(key=key, kind="Pod", name=self._placed[key], uid="u", status=status)

    async def _renews(self, call: Any) -> None:
        while True:
            await self._send(call, control=(LeaseRenew(sent_at=time.monotonic()),))
            await asyncio.sleep(RENEW_SECONDS)

    async def _flips(self, call: Any) -> None:
        over = False
        while True:
            await asyncio.sleep(FLIP_SECONDS)
            self._say()
            if self._orders.switch and not Path(self._orders.switch).exists():  # noqa: ASYNC240 (its loop is its own)
                continue
            over = not over
            said = [self._report(key, over=over) for key in self._placed]
            for at in range(0, len(said), AT_ONCE):
                await self._send(call, tuple(said[at : at + AT_ONCE]))


if __name__ == "__main__":
    collector.tune()
    asyncio.run(serve(Path(sys.argv[1]), Flipping))
