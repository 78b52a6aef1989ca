"""Which objects of a placement its cluster was told of, where they come and go.

In memory alone: a session that is not resumed is told all again, by the Commit, and a new leader takes those that the
Workload names for told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class ToldMembers:
    """By UID. Only this class writes what it holds.

    `session`: in which all was said since. `number`: of the last Change. `members`: name of each that may be there.
    `leaves`: of these, who was told to go in this session. `gates`: the user's own ones of which it was told in it, of
    each that has any. `_gone`: of whom the cluster has said that nothing is there.
    """

    session: int = 0
    number: int = 0
    members: dict[str, str] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    gates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)

    def begins(self, session: int) -> None:
        """Take that another session is told all; numbers begin anew."""
        self.session, self.number = session, 0
        self.leaves.clear()
        self.gates.clear()

    def forget(self) -> None:
        """Take that nobody is told of any more."""
        self.members.clear()
        self.gates.clear()

    def joins(self, members: Iterable[tuple[str, str]]) -> None:
        """Take that the cluster is told of these: UID and name."""
        self.members.update((uid, name) for uid, name in members if uid not in self._gone)

    def has_gates(self, uid: str, gates: tuple[str, ...]) -> None:
        """Take which gates of its user's own the cluster was told that one has."""
        if gates:
            self.gates[uid] = gates
        else:
            self.gates.pop(uid, None)

    def next_number(self, leaves: Iterable[str]) -> int:
        """Return the number of a Change that has these leave."""
        self.number += 1
        self.leaves.update(leaves)
        return self.number

    def is_gone(self, uid: str) -> None:
        """Take that nothing of one is there."""
        self._gone.add(uid)
        self.members.pop(uid, None)
        self.gates.pop(uid, None)
        self.leaves.discard(uid)
