"""Which objects of a live placement are at rest: nothing is due for them until something else is known of them. Pure.

A group has thousands of objects and an event concerns one of them, so a look goes through those that are not at rest.
Whatever changes what is known of one stirs it; whatever may concern all of them has all looked at, and nothing is at
rest until that look is over. While all of them are made, or let go, most of them wait for their turn: each look takes
as many as may be asked for in one call. Neighbour: `advancing.resting` says what is at rest, and what waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice


@dataclass(slots=True)
class Calm:
    """By name. Each object of the placement is in one of the first three. `restless`: to be looked at.

    `_resting`: of others, whose slot each has, None for none; `_taken`: how many slots they have, by pod set.
    `_under_way`: those at rest until the answer of what was asked of them. `_waiting`: those whose turn comes, oldest
    first; they have no slot.
    """

    restless: dict[str, None]
    _resting: dict[str, str | None] = field(default_factory=dict)
    _waiting: dict[str, None] = field(default_factory=dict)
    _under_way: dict[str, None] = field(default_factory=dict)
    _taken: dict[str, int] = field(default_factory=dict)

    @property
    def taken(self) -> Mapping[str, int]:
        """How many slots those at rest have, by pod set."""
        return self._taken

    @property
    def resting(self) -> Collection[str]:
        """The names of those at rest."""
        return self._resting.keys()

    @property
    def waiting(self) -> Collection[str]:
        """The names of those whose turn comes, the next one first."""
        return self._waiting.keys()

    @property
    def goes_on(self) -> bool:
        """Say whether some wait for their turn or for an answer."""
        return bool(self._waiting or self._under_way)

    def rests(self, name: str, slot: str | None, *, under_way: bool = False) -> None:
        """Take that one is at rest, and of which pod set it has a slot. `under_way`: until it is answered."""
        self.stir(name)
        self.restless.pop(name, None)
        self._resting[name] = slot
        if slot is not None:
            self._taken[slot] = self._taken.get(slot, 0) + 1
        if under_way:
            self._under_way[name] = None

    def waits(self, name: str) -> None:
        """Take that one waits for its turn, and has no slot."""
        self.stir(name)
        del self.restless[name]
        self._waiting[name] = None

    def starts_anew(self) -> None:
        """Take that the next step is due for all at rest: each waits for its turn, or is looked at if it has a slot."""
        for name, slot in tuple(self._resting.items()):
            (self.waits if slot is None else self.stir)(name)

    def take_turns(self, most: int) -> None:
        """Have so many of those that wait be looked at, the oldest first."""
        for name in tuple(islice(self._waiting, most)):
            self.stir(name)

    def stir(self, name: str) -> None:
        """Take that one is to be looked at."""
        slot = self._resting.pop(name, None)
        if slot is not None:
            self._taken[slot] -= 1
        self._under_way.pop(name, None)
        self._waiting.pop(name, None)
        self.restless[name] = None

    def forget(self, name: str) -> None:
        """Take that one is none of the placement's any more."""
        self.stir(name)
        self.restless.pop(name, None)


def of(names: Iterable[str]) -> Calm:
    """Return these, none of which is at rest."""
    return Calm(dict.fromkeys(names))


def goes_on(calm: Calm | None) -> bool:
    """Say whether any object that is not to be looked at now waits, for its turn or for an answer."""
    return calm is not None and calm.goes_on
