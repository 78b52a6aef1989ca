"""What the manager says of single objects of a placement. Pure values; `messages` has what is said of the whole."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_wire.values.keys import PlacementKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaver:
    """An object that is to go from a live placement: its name, and the UID of the user's object that it stands for.

    `grace_seconds` None: its own.
    """

    name: str
    uid: str
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteObject:
    """The user deleted one object of a live placement (a pod of a group)."""

    key: PlacementKey
    name: str
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUserGates:
    """The user's own scheduling gates that remain on an object; removed remotely when the user removes them."""

    key: PlacementKey
    name: str
    gates: tuple[str, ...]
