"""What is said of sizes of elastic work (KEP-77), from version 3 on: they have numbers that only grow. Pure values.

A size is a number, for all sessions of a placement, and a count per pod set. An Offer, a Commit, a Confirm and
an entry of an inventory have a size by fields of theirs. docs/protocol.md has the rules (Size 1 to 9). Neighbour:
`messages` (all else that crosses the wire).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.pod_sets import PodSetCounts, PodSetRequest
from gatelift_wire.values.refusals import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """From the manager: a live placement has this size from now on. One of its own number is a confirmation of that.

    `pod_sets`: all of them, as in the Commit, with what the slice adds to its pods. A lower number changes nothing.
    """

    key: PlacementKey
    number: int
    pod_sets: tuple[PodSetRequest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSize:
    """A placement and the number of its size, in a Confirm: what has another one is not confirmed by it."""

    key: PlacementKey
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFinished:
    """From the agent: no more of this placement runs, or can start, than this size grants. The answer to a size.

    The only word that lowers a charge. `ended`: pods that ended since this agent took the size.
    """

    key: PlacementKey
    number: int
    ended: tuple[PodSetCounts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """From the agent: so many pods above this size hold what they were given, by pod set. Said as it changes."""

    key: PlacementKey
    number: int
    remaining: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRefused:
    """From the agent: this size is not carried out, or not now. It takes nothing back: that needs a later size."""

    key: PlacementKey
    number: int
    refusal: Refusal
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeWanted:
    """From the agent: who runs it there wants another size, as an autoscaler does. No agent says it yet."""

    key: PlacementKey
    counts: tuple[tuple[str, int], ...]
