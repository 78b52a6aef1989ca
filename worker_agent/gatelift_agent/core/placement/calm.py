"""Which objects of a live placement are at rest: nothing is due for them until something else is known of them. Pure.

A group has thousands of objects and an event concerns one of them, so a look goes through those that are not at rest.
Whatever changes what is known of one stirs it; whatever may concern all of them has all looked at, and nothing is at
rest until that look is over. Neighbour: `advancing.resting` says what is at rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Calm:
    """By name. Each object of the placement is in one of both. `restless`: to be looked at.

    `_resting`: of the others, whose slot each has, None for none. `taken`: how many slots they have, by pod set.
    """

    restless: dict[str, None]
    _resting: dict[str, str | None] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> Mapping[str, int]:
        """How many slots those at rest have, by pod set."""
        return self._taken

    def rests(self, name: str, slot: str | None) -> None:
        """Take that one is at rest, and of which pod set it has a slot."""
        self.stir(name)
        self.restless.pop(name, None)
        self._resting[name] = slot
        if slot is not None:
            self._taken[slot] = self._taken.get(slot, 0) + 1

    def stir(self, name: str) -> None:
        """Take that one is to be looked at."""
        slot = self._resting.pop(name, None)
        if slot is not None:
            self._taken[slot] -= 1
        self.restless[name] = None

    def forget(self, name: str) -> None:
        """Take that one is none of the placement's any more."""
        self.stir(name)
        self.restless.pop(name, None)


def of(names: Iterable[str]) -> Calm:
    """Return these, none of which is at rest."""
    return Calm(dict.fromkeys(names))
