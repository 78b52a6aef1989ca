"""Who waits for a cluster: for room at some, or for any that could take it. Pure. Neighbours: `core` (owns it)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift.core.state.dispatch_values import backoff


class _Wish(NamedTuple):
    """Room that somebody waits for: since when, at which clusters, and which checks its queue has."""

    since: float
    clusters: tuple[str, ...]
    checks: tuple[str, ...]


class _Woken(NamedTuple):
    """When a cluster woke somebody, and how often in a row without having answered anybody meanwhile."""

    at: float
    in_vain: int


class Pace(NamedTuple):
    """At which one cluster wakes the same work: the first pause, which doubles, and the longest one.

    It begins anew where the cluster has answered an offer meanwhile (`answered_at`): credit alone costs nothing to say.
    """

    base: float
    most: float
    answered_at: float


@dataclass(slots=True)
class ClusterWaiters:
    """UIDs of attempts, each list with who has waited longest first. Only this module writes it."""

    _for_room: dict[str, dict[str, None]] = field(default_factory=dict)
    """Cluster -> who stands in line there."""
    _wishes: dict[str, _Wish] = field(default_factory=dict)
    _for_any: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Whom no cluster could take -> the checks of its queue."""
    _woken: dict[str, dict[str, _Woken]] = field(default_factory=dict)
    """UID -> cluster -> when a change of that cluster woke it last, or will."""

    # --- for room at some -----------------------------------------------------------------------------------------

    def wait_for_room(self, uid: str, clusters: Iterable[str], checks: tuple[str, ...], now: float) -> float:
        """Let an attempt wait until one of these has room, in its place; return since when it waits."""
        before = self._wishes.get(uid)
        wish = _Wish(before.since if before is not None else now, tuple(clusters), checks)
        self._leave_lines(uid, but=wish.clusters)
        self._wishes[uid] = wish
        for cluster in wish.clusters:
            self._for_room.setdefault(cluster, {}).setdefault(uid)
        return wish.since

    def next_for_room(self, cluster: str) -> str | None:
        """Take whoever has waited longest for room at a cluster; since when it waits is kept."""
        uid = next(iter(self._for_room.get(cluster, ())), None)
        if uid is not None:
            self._leave_lines(uid)
        return uid

    def waits_for_room(self, uid: str) -> bool:
        """Say whether an attempt stands in line for room."""
        wish = self._wishes.get(uid)
        return wish is not None and any(uid in self._for_room.get(cluster, ()) for cluster in wish.clusters)

    def count_for_room(self, cluster: str) -> int:
        """Return how many wait for room at a cluster."""
        return len(self._for_room.get(cluster, ()))

    def wants_no_room(self, uid: str) -> None:
        """Take that an attempt waits for no room any more."""
        self._leave_lines(uid)
        self._wishes.pop(uid, None)

    def _leave_lines(self, uid: str, but: tuple[str, ...] = ()) -> None:
        wish = self._wishes.get(uid)
        for cluster in wish.clusters if wish is not None else ():
            line = self._for_room.get(cluster)
            if line is None or cluster in but:
                continue
            line.pop(uid, None)
            if not line:
                del self._for_room[cluster]

    # --- for any --------------------------------------------------------------------------------------------------

    def wait_for_any(self, uid: str, checks: tuple[str, ...]) -> None:
        """Let an attempt wait that no cluster could take, until one changes of those to which these checks lead."""
        self._for_any[uid] = checks

    def checks_of(self, uid: str) -> tuple[str, ...] | None:
        """Return the checks of whose queue says where it may go; None: it waits for nobody."""
        wish = self._wishes.get(uid)
        return wish.checks if wish is not None else self._for_any.get(uid)

    def everybody(self) -> deque[str]:
        """Return who waits, for any cluster or for room at some."""
        return deque((*self._for_any, *self._wishes))

    def wake(self, uid: str, cluster: str, now: float, pace: Pace) -> float:
        """Take that a change of a cluster wakes an attempt; return when it may: at once, then at its pace."""
        at = self._next(uid, cluster, now, now, pace)
        if at <= now:
            self._for_any.pop(uid, None)
        return at

    def wake_later(self, uid: str, cluster: str, now: float, pace: Pace) -> float:
        """Take that a change of a cluster has come while it was asked in vain; return when that is tried again."""
        return self._next(uid, cluster, now, now + pace.base, pace)

    def _next(self, uid: str, cluster: str, now: float, first: float, pace: Pace) -> float:
        times = self._woken.setdefault(uid, {})
        before = times.get(cluster)
        if before is not None and before.at > now:
            return before.at
        in_vain = 0 if before is None or pace.answered_at >= before.at else before.in_vain + 1
        earliest = before.at + backoff(in_vain, pace.base, pace.most) if before is not None else first
        times[cluster] = _Woken(max(first, earliest), in_vain)
        return times[cluster].at

    def forget(self, uid: str) -> None:
        """Keep nothing of an attempt."""
        self.wants_no_room(uid)
        self._for_any.pop(uid, None)
        self._woken.pop(uid, None)
