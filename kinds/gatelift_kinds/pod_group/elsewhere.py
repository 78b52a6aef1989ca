"""What is known of the run of each pod of a group at a worker, while one of the group's placements is live there. Pure.

Neighbours: `gathering` asks, `member` says what a pod counts as by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from gatelift_kinds.pod_group import unshown_ends
from gatelift_kinds.pod_group.made_there import NONE, UNKNOWN, MadeThere
from gatelift_kinds.pod_group.member import Elsewhere, MemberState
from gatelift_kinds.pod_group.members import GroupMembers
from gatelift_kinds.shared.digests import digest
from gatelift_wire.values.messages import PodSetCounts


class RunsElsewhere:
    """By UID. Each method returns of which pods something else is known than before."""

    __slots__ = ("_by_uid", "_ended", "_held", "_kept", "_placement", "_unproven", "made")

    def __init__(self) -> None:
        self._placement: Hashable = None
        self._unproven: set[str] = set()
        self._held: set[str] = set()
        self.made = NONE
        """What a driver made there by itself."""
        self._by_uid: dict[str, Elsewhere] = {}
        self._kept = ""
        self._ended: Mapping[str, bool] = {}

    def of(self, uid: str) -> Elsewhere:
        """Return what is known of one; who may run there does, whatever is kept of it."""
        found = self._by_uid.get(uid, Elsewhere.NOWHERE)
        kept = self._ended.get(digest(uid)) if self._ended and found is not Elsewhere.MAY_RUN else None
        return found if kept is None else Elsewhere.SUCCEEDED if kept else Elsewhere.FAILED

    def has_ended(self, uid: str) -> bool:
        """Say whether it is kept of one that it has ended."""
        return bool(self._ended) and digest(uid) in self._ended

    def keeps(self, text: str, uids: Iterable[str]) -> list[str]:
        """Take what the Workload keeps of ends that are not shown."""
        if text == self._kept:
            return []
        before, self._kept, self._ended = self._ended, text, unshown_ends.read(text)
        news = {each for each, _ in before.items() ^ self._ended.items()}
        return [uid for uid in uids if digest(uid) in news]

    def runs_here(self, may_run: bool) -> bool:
        """Say whether what may run does so at home, as far as no placement at a worker is live."""
        return may_run and self._placement is None

    def is_at(self, placement: Hashable) -> bool:
        """Say whether it is known that a placement is live."""
        return placement == self._placement

    def placed(self, placement: Hashable, over: Mapping[str, bool]) -> list[str]:
        """Take that a placement is live, and that these may run there, but for those that show their end."""
        if placement == self._placement:
            return []
        before, self._placement, self.made = self._by_uid, placement, UNKNOWN
        self._by_uid = dict.fromkeys([uid for uid, shown in over.items() if not shown], Elsewhere.MAY_RUN)
        self._unproven = {uid for uid, shown in over.items() if shown}
        self._held = set()
        return list(before.keys() | self._by_uid.keys())

    def ended(self) -> list[str]:
        """Take that none is; what was made there counts for the end that follows from that, and for no later one."""
        self.made = self.made.at_rest() if self._placement is not None else NONE
        before, self._placement, self._by_uid = self._by_uid, None, {}
        self._unproven = set()
        return list(before)

    def makes(self, counts: tuple[PodSetCounts, ...]) -> bool:
        """Take what a driver has made there by itself; False where that is known, or nothing is live there."""
        if self._placement is None or self.made.says(counts):
            return False
        self.made = MadeThere(counts)
        return True

    def unproven(self, members: GroupMembers) -> dict[str, int]:
        """Return how many of each role show that they succeeded, and no worker of this placement has said so."""
        if self._placement is None:
            return {name: each.counts[MemberState.SUCCEEDED] for name, each in members.roles.items()}
        shown = filter(None, map(members.get, self._unproven))
        return Counter(each.role for each in shown if each.state is MemberState.SUCCEEDED)

    def put(self, uid: str, where: Elsewhere) -> list[str]:
        """Take what is known of one; what has stopped runs no more in this placement, whatever is said later."""
        if self._placement is None or self._by_uid.get(uid) in {where, Elsewhere.STOPPED, Elsewhere.SUCCEEDED}:
            return []
        self._unproven.discard(uid)
        self._by_uid[uid] = where
        return [uid]

    def holds(self, uid: str, waits: bool) -> None:
        """Take that its worker says of one whether it waits there, since no slot is free."""
        (self._held.add if waits else self._held.discard)(uid)

    def held(self, members: GroupMembers) -> int:
        """Return how many wait there of those of which it is known here that they are there."""
        found = filter(None, map(members.get, self._held))
        return sum(each.state is MemberState.ACTIVE for each in found)

    def is_let_go(self, uid: str) -> bool:
        """Say whether one may have been let go at its worker."""
        return self.of(uid) is Elsewhere.MAY_RUN and uid not in self._held

    def forget(self, uid: str) -> None:
        """Forget one that is gone."""
        self._held.discard(uid)
        self._by_uid.pop(uid, None)
