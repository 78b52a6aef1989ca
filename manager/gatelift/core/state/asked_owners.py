"""How far a Workload's owners, which no cache has, were asked for: one after the other, at a pace. Pure.

A Workload may name thousands. Where it stands is kept: an answer costs a look-up and no look at all of them, and none
is read again once that it is gone has been forgotten. Neighbours: `core` (owns it), `rules.seeking`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gatelift.core.api.user_objects import Name
from gatelift_kube.values.resources import ObjectRef

AT_ONCE = 8
"""So many are asked for without a pause: nearly all Workloads name one object."""
SECONDS = 0.05
"""Between the questions after those: twenty a second, so that all that a Workload may name take 205 s."""


@dataclass(slots=True)
class Inquiry:
    """Of one Workload. `done`: so many of its names, from the first on, are gone or others'.

    `asked`: so many were read. `reading`: which of them was read last, and `waits`: where that object would be.
    `not_before`: when the next one may be asked for.
    """

    names: tuple[Name, ...]
    done: int = 0
    asked: int = 0
    reading: int = -1
    waits: ObjectRef | None = None
    not_before: float = 0.0

    def next_name(self, is_settled: Callable[[Name], bool]) -> Name | None:
        """Return the first that is not known to be gone or another's, None where none is left."""
        while self.done < len(self.names) and is_settled(self.names[self.done]):
            self.done += 1
        return self.names[self.done] if self.done < len(self.names) else None

    def is_reading(self) -> bool:
        """Say whether the one that is next was asked for."""
        return self.reading == self.done

    def wait_no_more(self) -> None:
        """Take that no answer is waited for."""
        self.waits = None

    def pauses(self, now: float) -> bool:
        """Say whether it is too early for another question."""
        return self.asked >= AT_ONCE and now < self.not_before

    def ask(self, ref: ObjectRef, now: float) -> None:
        """Take that the next one is read."""
        self.asked += 1
        self.reading, self.waits = self.done, ref
        self.not_before = now + SECONDS


@dataclass(slots=True)
class AskedOwners:
    """By a Workload's UID."""

    _by_uid: dict[str, Inquiry] = field(default_factory=dict)

    def begin(self, uid: str, names: tuple[Name, ...]) -> Inquiry:
        """Return where a Workload stands; one that names others than before begins anew."""
        found = self._by_uid.get(uid)
        if found is None or (found.names is not names and found.names != names):
            waits = found.waits if found is not None else None
            found = self._by_uid[uid] = Inquiry(names, waits=waits)
        return found

    def waits(self, uid: str) -> ObjectRef | None:
        """Return which object's answer a Workload waits for."""
        found = self._by_uid.get(uid)
        return found.waits if found is not None else None

    def forget(self, uid: str) -> None:
        """Keep nothing of a Workload that is gone."""
        self._by_uid.pop(uid, None)
