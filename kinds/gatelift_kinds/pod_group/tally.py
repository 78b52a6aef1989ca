"""What members say, and who says it: the members of each value, kept up by each change of one of them. Pure."""

from __future__ import annotations

from gatelift_kinds.pod_group.ordered import Ordered

Named = tuple[str, str, str]
"""A member in the order of age: when it was made, its name, its UID."""
VALUES_SHOWN = 3
NAMES_SHOWN = 3


class ValueTally:
    """Values and the members that say them, the value of the oldest member first."""

    __slots__ = ("_by_oldest", "_sayers")

    def __init__(self) -> None:
        self._sayers: dict[str, Ordered[Named]] = {}
        self._by_oldest: Ordered[tuple[Named, str]] = Ordered()

    def __len__(self) -> int:
        """Return how many different values are said."""
        return len(self._sayers)

    def add(self, value: str, member: Named) -> None:
        """Take that a member says a value."""
        self._change(value, member, joins=True)

    def remove(self, value: str, member: Named) -> None:
        """Take that a member says it no more."""
        self._change(value, member, joins=False)

    @property
    def agreed(self) -> str | None:
        """The value that all say; None where nobody says any, or where they differ."""
        return self.oldest if len(self._sayers) == 1 else None

    @property
    def oldest(self) -> str | None:
        """The value of the oldest member that says one."""
        first = self._by_oldest.first()
        return first[0][1] if first else None

    def said(self) -> str:
        """Return who says what in one line: `2 pods say 3 (a, b), 1 says 4 (c)`; long lists are cut."""
        shown = [value for _, value in self._by_oldest.first(VALUES_SHOWN)]
        parts = [_sentence(value, self._sayers[value]) for value in shown]
        more = len(self) - len(shown)
        return ", ".join([*parts, f"and {more} more values"] if more else parts)

    def _change(self, value: str, member: Named, *, joins: bool) -> None:
        sayers = self._sayers.setdefault(value, Ordered())
        before = sayers.first()
        if joins:
            sayers.add(member)
        else:
            sayers.remove(member)
        after = sayers.first()
        if before != after:
            for each in before:
                self._by_oldest.remove((each, value))
            for each in after:
                self._by_oldest.add((each, value))
        if not after:
            del self._sayers[value]


def _sentence(value: str, sayers: Ordered[Named]) -> str:
    names = [name for _, name, _ in sayers.first(NAMES_SHOWN)]
    more = len(sayers) - len(names)
    who = ", ".join([*names, f"and {more} more"] if more else names)
    return f"{len(sayers)} {'pods say' if len(sayers) > 1 else 'says'} {value or 'nothing'} ({who})"
