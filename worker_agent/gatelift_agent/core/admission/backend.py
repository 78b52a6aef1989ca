"""What decides at this worker whether there is room for a placement: the protocol of a backend, and its values. Pure.

A backend answers from what it knows: it may be asked anything at any time and as often as one likes, and nothing that
it is told twice counts twice. It may take its time: what it wants carried out it gives as commands, their outcome is
heard as an event, and until its verdict is *granted* the placement stays gated (`State.ADMITTING`).

A backend grants and refuses room, it starts nothing: R1 and R8 are asked by `progress` after it has granted, and a
command of it that would write to a Pod or a Job is not carried out (`desk`). What runs is not its to stop either: a
verdict that it takes back counts until the last object is let go, and not after.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from gatelift_agent.core.values.commands import AgentNote
from gatelift_agent.core.values.events import RoomSeen
from gatelift_kube.deciding.writes import ApiWrite, EmitEvent, WriteDone, WriteFailed
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CapacityEntry, PodSetRequest
from gatelift_wire.values.refusals import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What room is wanted for. `placed`: its objects stand in the cluster, so a restart finds it again.

    Before that it is an offer or an accepted commit, which a process that dies takes along: nothing that outlives the
    process is done for it, or nobody would give that back. `pod_sets` is empty for what a process before this one
    accepted, unless the manager says its commit again.
    """

    key: PlacementKey
    namespace: str
    name: str
    pod_sets: tuple[PodSetRequest, ...]
    placed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Answer to an offer: `refusal` None means that it fits. `cost` is the fullest flavor's use after it, 0 to 1."""

    refusal: Refusal | None = None
    text: str = ""
    cost: float = 0.0


class RoomAnswer(enum.Enum):
    """What came of a request."""

    GRANTED = "granted"
    NOT_YET = "not yet"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomVerdict:
    """Where a request stands. `text`: why it waits (for the log) or is refused (for the manager, with `refusal`).

    `again_at`: ask again then, if nothing is heard before.
    """

    answer: RoomAnswer
    text: str = ""
    refusal: Refusal = Refusal.QUOTA_BUSY
    again_at: float | None = None


GRANTED = RoomVerdict(answer=RoomAnswer.GRANTED)

BackendCommand = ApiWrite | EmitEvent | AgentNote
"""What a backend may want. It writes with `write_id` 0: writes are numbered where they are carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of a write that the backend gave for `key`; it may come after the release."""

    key: PlacementKey
    command: ApiWrite
    outcome: WriteDone | WriteFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What follows from an event: what is to be done, whose verdict may be another one, whether capacity is told."""

    commands: tuple[BackendCommand, ...] = ()
    keys: tuple[PlacementKey, ...] = ()
    capacity: bool = False


class Backend(Protocol):
    """The remote admission of a worker. `now` is the machine's clock."""

    def judge(self, request: Request) -> Judgement:
        """Say whether this may be served here at all, and fits by what is known; asked for an offer and its commit.

        What the placement holds already is not counted against it.
        """
        ...

    def ask(self, request: Request, now: float) -> tuple[BackendCommand, ...]:
        """Take that room is wanted, and return what is to be done for it by now. The last request of a key counts.

        Asked when an offer is held, when its commit is accepted, and, while it is gated and may start, each time it is
        looked at: also by a process that finds it after a restart. What is made for it in the cluster had better be
        owned by its objects: a process may die between its release and what that wants done.
        """
        ...

    def verdict(self, key: PlacementKey, now: float) -> RoomVerdict:
        """Say what came of a request, as it is now: what was granted may be taken back until it is let go."""
        ...

    def reclaim(self, key: PlacementKey, over: Mapping[str, int]) -> tuple[BackendCommand, ...]:
        """Take how many pods of each pod set need room no longer while the others run (KEP-78); it may fall again.

        Of what was asked for; counts until it is said anew or the placement is released, also if room is asked again.
        """
        ...

    def release(self, key: PlacementKey) -> tuple[BackendCommand, ...]:
        """Take that a placement has ended, or its hold has: it wants no room any more, whatever it was given.

        Once for each, also while its request is not answered; after a restart also for what a process before this one
        asked for, or released already.
        """
        ...

    def hear(self, event: RoomSeen | Answered) -> Heard:
        """Take an event that is of no placement's objects."""
        ...

    def entries(self) -> tuple[CapacityEntry, ...]:
        """Return the capacity as the manager is told it; nothing where there is no limit."""
        ...


def without(pod_sets: Iterable[PodSetRequest], over: Mapping[str, int]) -> tuple[PodSetRequest, ...]:
    """Return what pod sets ask for without so many pods of each; what does not divide by the count stays."""
    return tuple(_less(one, min(over.get(one.name, 0), one.count)) for one in pod_sets)


def _less(one: PodSetRequest, over: int) -> PodSetRequest:
    if over <= 0:
        return one
    requests, uncounted = (
        tuple((name, amount - amount // one.count * over) for name, amount in each)
        for each in (one.requests, one.uncounted)
    )
    return replace(one, count=one.count - over, requests=requests, uncounted=uncounted)
