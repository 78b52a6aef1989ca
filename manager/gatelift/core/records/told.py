"""Which objects of a placement its cluster was told of, where they come and go, and of whom it has told the end.

In memory alone: a session that is not resumed is told all again, by the Commit, and a new leader takes those that the
Workload names for told. Ends are said again in each session, until the placement is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

STRANGERS_MAX = 4096
"""Objects of one placement that a worker tells of and nobody has at home: as many as a placement has at most. Each is
read once, and kept as long as the placement: a worker could name others without end."""


@dataclass(slots=True)
class ToldMembers:
    """By UID. Only this class writes what it holds.

    `session`: in which all was said since. `number`: of the last Change. `members`: name of each that may be there.
    `leaves`: of these, who was told to go in this session. `ends`: name of each whose end was told and is not known to
    be shown at home. `_plainly`: of these, who does not take the status that came with it. `gates`: the user's own ones
    of which it was told in it, of each that has any. `_gone`: of whom the cluster has said that nothing is there.
    `_unsure`: of `members`, those of which it has to be looked whether they are to leave: their object has changed, or
    they have just been told of. `_strangers`: how many were taken in that nobody has at home. `_still_since`: since
    when nothing runs and who is left waits. `_tried_at`: when ends were tried last that nothing takes.
    """

    session: int = 0
    number: int = 0
    members: dict[str, str] = field(default_factory=dict)
    leaves: set[str] = field(default_factory=set)
    ends: dict[str, str] = field(default_factory=dict)
    _plainly: set[str] = field(default_factory=set)
    gates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _unsure: dict[str, None] = field(default_factory=dict)
    _strangers: int = 0
    _still_since: float | None = None
    _tried_at: float | None = None

    def stands(self, now: float, *, still: bool) -> float:
        """Take whether all of it stands still; return since when."""
        if not still or self._still_since is None:
            self._still_since = now if still else None
        return now if self._still_since is None else self._still_since

    def tries_again(self, now: float, every: float) -> float:
        """Return when ends that nothing takes are to be tried again; if that is now, the next pause begins."""
        tried_at = now if self._tried_at is None else self._tried_at
        self._tried_at = now if now >= tried_at + every else tried_at
        return tried_at + every

    def begins(self, session: int) -> None:
        """Take that another session is told all; numbers begin anew."""
        self.session, self.number = session, 0
        self.leaves.clear()
        self.gates.clear()
        self.looks_at_all()

    def forget(self) -> None:
        """Take that nobody is told of any more."""
        self.members.clear()
        self.gates.clear()
        self._unsure.clear()
        self._strangers = 0

    def joins(self, members: Iterable[tuple[str, str]]) -> None:
        """Take that the cluster is told of these: UID and name."""
        for uid, name in members:
            if uid not in self._gone:
                self.members[uid] = name
                self.has_changed(uid)

    def hears_of(self, uid: str, name: str, *, gone: bool) -> bool:
        """Take what the cluster says of one that nobody has at home: it is to leave. False: they are too many."""
        if uid in self.members:
            if gone:
                self.is_gone(uid)
            return True
        if gone or uid in self._gone:
            return True
        if self._strangers >= STRANGERS_MAX:
            return False
        self._strangers += 1
        self.joins([(uid, name)])
        return True

    def has_changed(self, uid: str) -> None:
        """Take that the object of one has changed at home, or is gone there."""
        if uid in self.members and uid not in self.leaves:
            self._unsure[uid] = None

    def looks_at_all(self) -> None:
        """Take that of nobody it is known whether he is to leave."""
        self._unsure = dict.fromkeys(self.members)

    def unsure(self) -> list[tuple[str, str]]:
        """Return of whom it has to be looked whether he is to leave: UID and name."""
        return [(uid, self.members[uid]) for uid in self._unsure]

    def stays(self, uid: str) -> None:
        """Take that one is not to leave, as its object is now."""
        self._unsure.pop(uid, None)

    def has_gates(self, uid: str, gates: tuple[str, ...]) -> None:
        """Take which gates of its user's own the cluster was told that one has."""
        if gates:
            self.gates[uid] = gates
        else:
            self.gates.pop(uid, None)

    def next_number(self, leaves: Iterable[str]) -> int:
        """Return the number of a Change that has these leave."""
        self.number += 1
        for uid in leaves:
            self.leaves.add(uid)
            self._unsure.pop(uid, None)
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
        self._unsure.pop(uid, None)
        self.gates.pop(uid, None)
        self.leaves.discard(uid)
