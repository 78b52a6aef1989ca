"""What each cluster was like when it was looked at last, and what it has to give since then. Pure.

A worker may say a hundred times a second what it said before. So a change is a difference between what is known and
what was known; and only what may help somebody is one: see `gain`. Neighbours: `waking` (writes it, decides who is
woken), `core` (owns it).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gatelift.core.clusters.link_values import ClusterView


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCluster:
    """A cluster as dispatch sees it. `usable`: it may be asked at all; `room`: for how many; `placed`: how many."""

    view: ClusterView
    usable: bool
    placed: int
    room: int


@dataclass(frozen=True, slots=True)
class Gain:
    """What a cluster has to give that it had not: `all`: it is another one than before; room; namespaces it takes."""

    all: bool = False
    room: bool = False
    namespaces: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Say whether there is any."""
        return self.all or self.room or bool(self.namespaces)

    def and_(self, other: Gain) -> Gain:
        """Return both together."""
        return Gain(self.all or other.all, self.room or other.room, self.namespaces | other.namespaces)


def gain(before: SeenCluster | None, after: SeenCluster) -> Gain:
    """Return what a cluster can do now that it could not; of one that takes no work nothing counts."""
    if not after.usable:
        return Gain()
    if before is None or not before.usable:
        return Gain(all=True)
    old, new = before.view, after.view
    another = old.session != new.session or bool(new.kinds - old.kinds) or old.labels != new.labels
    takes, took = new.accepted_namespaces, old.accepted_namespaces
    opened = old.allowed_namespaces != new.allowed_namespaces or (takes is None and took is not None)
    more = takes - took if takes is not None and took is not None else frozenset()
    room = before.room <= 0 < after.room or after.placed < before.placed or _has_grown(old, new)
    return Gain(another or opened, room, more)


def _has_grown(old: ClusterView, new: ClusterView) -> bool:
    """Say whether any resource has more in all, more free, or a larger piece free; or is counted no more."""
    if old.capacity.keys() - new.capacity.keys():
        return True
    for name, now in new.capacity.items():
        was = old.capacity.get(name)
        if was is None:
            continue
        free, freed = now.nominal - now.used, was.nominal - was.used
        if now.nominal > was.nominal or free > freed or now.largest_fit > was.largest_fit:
            return True
    return False


def differs(before: SeenCluster | None, after: SeenCluster) -> bool:
    """Say whether anything else is new than how much a cluster has and grants, which it may say at any pace."""
    if before is None:
        return True
    return before.view != replace(after.view, credits=before.view.credits, capacity=before.view.capacity)


@dataclass(slots=True)
class Followed:
    """One cluster: what is known of it, and how far those are looked through whom its gains may help."""

    seen: SeenCluster | None = None
    gained: Gain = Gain()
    """Since the present look through began."""
    gained_at: float = float("-inf")
    offers: Gain = Gain()
    """For which the present one looks."""
    left: deque[str] = field(default_factory=deque)
    """UIDs that it has not come to."""
    next_at: float = 0.0
    """Not before this time does it go on."""
    lets_in_at: float = 0.0
    """Nor are those let in before this who wait for room there."""

    def see(self, seen: SeenCluster) -> SeenCluster | None:
        """Take what a cluster is like; return what it was like before."""
        before, self.seen = self.seen, seen
        return before

    def gains(self, gained: Gain, now: float) -> None:
        """Take that it has more to give."""
        self.gained, self.gained_at = self.gained.and_(gained), now

    def begin(self, uids: deque[str]) -> None:
        """Begin to look through these for what it has to give."""
        self.left, self.offers, self.gained = uids, self.gained, Gain()

    def take(self, count: int) -> list[str]:
        """Return the next ones, at most so many."""
        return [self.left.popleft() for _ in range(min(count, len(self.left)))]

    def rest(self, until: float) -> None:
        """Look through no more before a time."""
        self.next_at = until

    def lets_in(self, until: float) -> None:
        """Take that some are let in, and nobody else before a time."""
        self.lets_in_at = until


@dataclass(slots=True)
class ClusterChanges:
    """By cluster."""

    _followed: dict[str, Followed] = field(default_factory=dict)
    _mute: dict[str, float] = field(default_factory=dict)
    """Clusters for whose room somebody has given up waiting, and when."""

    def of(self, cluster: str) -> Followed:
        """Return what is kept of a cluster."""
        return self._followed.setdefault(cluster, Followed())

    def forget(self, cluster: str) -> None:
        """Keep nothing of a cluster that is gone."""
        self._followed.pop(cluster, None)
        self._mute.pop(cluster, None)

    def gained_since(self, clusters: Iterable[str], since: float) -> list[str]:
        """Return those of these that have had more to give after a time."""
        return [name for name in clusters if name in self._followed and self._followed[name].gained_at > since]

    # --- mute clusters --------------------------------------------------------------------------------------------

    @property
    def any_mute(self) -> bool:
        """Say whether there may be one."""
        return bool(self._mute)

    def may_be_mute(self, cluster: str) -> bool:
        """Say whether this one may be."""
        return cluster in self._mute

    def gave_up(self, clusters: Iterable[str], now: float) -> None:
        """Take that somebody has waited for room at these for as long as anybody is made to."""
        self._mute.update(dict.fromkeys(clusters, now))

    def heard(self, cluster: str, answered_at: float) -> None:
        """Take when a cluster answered an offer last."""
        if answered_at > self._mute.get(cluster, math.inf):
            del self._mute[cluster]

    def is_mute(self, cluster: str, answered_at: float) -> bool:
        """Say whether somebody gave up waiting for room there, and the cluster has answered no offer since."""
        self.heard(cluster, answered_at)
        return cluster in self._mute
