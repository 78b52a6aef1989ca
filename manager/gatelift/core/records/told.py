"""Which objects of a placement its cluster was told of, where they come and go, and of whom it has told the end.

In memory alone: a session that is not resumed is told all again, by the Commit, and a new leader takes those that the
Workload names for told. Ends are said again in each session, until the placement is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class ToldMembers:
    """By UID. Only this class writes what it holds.

    `session`: in which all was said since. `number`: of the last Change. `members`: name of each that may be there.
    `leaves`: of these, who was told to go in this session. `ends`: name of each whose end was told and is not known to
    be shown at home. `_plainly`: of these, who does not take the status that came with it. `gates`: the user's own ones
    of which it was told in it, of each that has any. `_gone`: of whom the cluster has said that nothing is there.
    """

    session: int = 0
    number: int = 0
    members: dict[str, str] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    ends: dict[str, str] = field(default_factory=dict)
    _plainly: set[str] = field(default_factory=set)
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

    def has_ended(self, uid: str, name: str) -> None:
        """Take that the cluster has told the end of one."""
        self.ends[uid] = name

    def shows_end(self, uid: str) -> None:
        """Take that one shows its end, or is not to show it any more."""
        self.ends.pop(uid, None)
        self._plainly.discard(uid)

    def says_plainly(self, uid: str) -> bool:
        """Take that one does not take the status that came with its end; False if none of these is meant."""
        if uid in self.ends:
            self._plainly.add(uid)
        return uid in self.ends

    def is_said_plainly(self, uid: str) -> bool:
        """Say whether the end of one is shown by the smallest status that says it."""
        return uid in self._plainly

    def is_gone(self, uid: str) -> None:
        """Take that nothing of one is there."""
        self._gone.add(uid)
        self.members.pop(uid, None)
        self.gates.pop(uid, None)
        self.leaves.discard(uid)
