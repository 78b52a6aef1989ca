"""A worker that takes what asks for it, and answers as no honest one would, at full speed.

`python -m bench.hostile_answers FILE`: as `hostile_flip`, by whose switch it turns: without it, it is honest. Where
what it was given comes back it takes it again. The loads:

- `evicted`: lets each go and says at once that it lost it
- `unasked`: lets each go and says at once that it has stopped it
- `refused`: holds room for each, and refuses what is committed
- `unlifted`: makes each and never lets it go; renews its lease in between, as fast as it may
- `nonsense`: bids, counts and sizes that mean nothing, of each in turn
- `words`: everything that may be said of each, one after the other, but that it is over
- `ended`: that each is over, that it runs, that it was stopped, that it was lost: in turn, for ever
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from bench.hostile_flip import AT_ONCE, PREFIX, RUNS, Flipping
from bench.hostile_worker import Orders, serve
from gatelift_kube.process import collector
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Commit,
    Control,
    CountsReport,
    Evicted,
    Finished,
    GatesLifted,
    LeaseRenew,
    Message,
    ObjectReport,
    Offer,
    PodSetCounts,
    Refused,
    Report,
    Stopped,
)
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Drained, SizeRefused, SizeWanted, SliceFinished

ANSWERS = ("evicted", "unasked", "refused", "unlifted", "nonsense", "words", "ended")
KNOWN_MAX = 1_000
IDLE_SECONDS = 0.2
LOOK_SECONDS = 0.1
"""From one look at the switch to the next."""
MANY = 2**31 - 1
COST, HOLD_SECONDS = -1e18, 3e8


def nonsense(key: PlacementKey, turn: int) -> list[Report]:
    """Return what means nothing, and is written as it should be: of too many pods, of sizes of no work."""
    counts = PodSetCounts(
        name="main" if turn % 2 else f"nobody-{turn % 7}",
        active=MANY - turn % 5,
        ready=MANY,
        succeeded=turn % 3,
        terminating=MANY,
        remaining=turn % 2,
        rejected=turn % 11,
    )
    return [
        CountsReport(key=key, pod_sets=(counts,), reclaimable=(("main", turn % 2 * MANY),), made_here=(counts,)),
        Drained(key=key, number=turn % 5 + 1, remaining=(("main", MANY),)),
        SliceFinished(key=key, number=turn % 5 + 1, ended=(counts,)),
        SizeRefused(key=key, number=turn % 5 + 1, refusal=Refusal.QUOTA_BUSY, text=f"not {turn}"),
        SizeWanted(key=key, counts=(("main", turn % MANY), ("nobody", MANY))),
        Bid(key=key, kind=BidKind.HELD, hold_seconds=HOLD_SECONDS, cost=COST, size=turn % 5),
    ]


def words(key: PlacementKey) -> list[Report]:
    """Return what ends a placement without its own end, and takes that back."""
    return [
        Stopped(key=key),
        Applied(key=key, waits=True),
        Evicted(key=key, reason="Preempted"),
        GatesLifted(key=key),
        Refused(key=key, refusal=Refusal.INVALID),
        Applied(key=key),
    ]


class Answering(Flipping):
    """The worker."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(orders)
        self._on = False
        self._known: dict[PlacementKey, str] = {}
        """All that it ever had, the latest."""

    def _answer(self, message: Message) -> list[Report]:
        load = self._orders.load
        match message:
            case Offer(key=key, name=name) if load == "nonsense" and name.startswith(PREFIX):
                return [Bid(key=key, kind=BidKind.HELD, hold_seconds=HOLD_SECONDS, cost=COST)]
            case Commit(key=key) if self._on and load in {"evicted", "unasked", "refused"}:
                super()._answer(message)
                return self._ending(key)
            case Commit(key=key) if self._on and load == "unlifted":
                super()._answer(message)
                return [Applied(key=key)]
            case _:
                return super()._answer(message)

    def _ending(self, key: PlacementKey) -> list[Report]:
        """Return by what one that it has is over, and know it no more."""
        self._placed.pop(key, None)
        match self._orders.load:
            case "evicted":
                return [Applied(key=key), GatesLifted(key=key), Evicted(key=key, reason="Lost")]
            case "unasked":
                return [Applied(key=key), GatesLifted(key=key), Stopped(key=key)]
            case _:
                return [Refused(key=key, refusal=Refusal.DENIED)]

    def _said(self, turn: int) -> list[Report]:
        """Return what it says now of all that it has."""
        keys = list(self._placed)
        self._known |= self._placed
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        match self._orders.load:
            case "evicted" | "unasked" | "refused":
                return [word for key in keys for word in self._ending(key)]
            case "unlifted":
                return []
            case "nonsense":
                return [word for key in keys for word in nonsense(key, turn)]
            case "words":
                return [word for key in self._known for word in words(key)]
            case _:
                over = [Finished(key=key, succeeded=bool(turn % 2), message=f"the end {turn}") for key in self._known]
                back = [
                    ObjectReport(key=key, kind="Pod", name=name, uid="u", status=RUNS)
                    for key, name in self._known.items()
                ]
                return [*over, *back, *(Stopped(key=key) for key in self._known)]

    async def _flips(self, call: Any) -> None:
        turn, looked = 0, 0.0
        while True:
            if time.monotonic() - looked > LOOK_SECONDS:
                looked = time.monotonic()
                self._on = Path(self._orders.switch).exists()  # noqa: ASYNC240 (its loop is its own)
                self._say()
            if not self._on:
                await asyncio.sleep(IDLE_SECONDS)
                continue
            turn += 1
            said = self._said(turn)
            for at in range(0, len(said), AT_ONCE):
                await self._send(call, tuple(said[at : at + AT_ONCE]))
            renewal: tuple[Control, ...] = (LeaseRenew(sent_at=time.monotonic()),)
            await self._send(call, control=renewal)
            if self._orders.load in {"evicted", "unasked", "refused"}:
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    collector.tune()
    asyncio.run(serve(Path(sys.argv[1]), Answering))
