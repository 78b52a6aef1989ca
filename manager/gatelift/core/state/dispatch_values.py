"""Settings of dispatch and its memory of failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchSettings:
    """How clusters are asked.

    `best`: how many are asked at once. `alone_seconds`: how long the best is waited for where it is asked alone, since
    it is expected to take the workload. `bid_seconds`: how long an answer is waited for before the next ones are asked;
    a bid takes one round trip and no write, so 300 ms is generous within a continent. `hold_seconds`: how long a
    cluster keeps room for us. `patience_seconds`: how long one that needs time, or said nothing, may still win when
    nobody else can take it. `queue_seconds`: how long one that is busy answering others is waited for before the next
    ones are asked; `queue_share`: share of its window that may be unanswered before fewer than `best` are asked.
    `give_up_base`, `give_up_max`: pause after no cluster could take it, doubling; a change at a cluster ends it early.
    """

    best: int = 3
    alone_seconds: float = 0.1
    bid_seconds: float = 0.3
    hold_seconds: float = 30.0
    hold_margin_seconds: float = 2.0
    patience_seconds: float = 5.0
    queue_seconds: float = 20.0
    queue_share: float = 0.25
    give_up_base: float = 5.0
    give_up_max: float = 300.0


AVOID_MAX = 50_000
"""(workload, cluster) pairs remembered as refused; the oldest go first, at the price of one more offer."""


ENDED_MAX = 50_000
"""Workloads of which it is remembered where they ended; the oldest go first, at the price of one more try there."""


IN_VAIN_SECONDS = 60.0
"""What ends at a cluster, and not well, so soon after it was admitted was placed in vain."""
IN_VAIN_MAX = 3
"""So many of a namespace in a row, and other clusters go first for it."""
IN_VAIN_REST_SECONDS = 60.0
"""For so long: then another one is tried there, at the cost of the time that it takes to be queued again."""
IN_VAIN_KEPT = 10_000
"""(cluster, namespace) pairs of which that is remembered; the oldest go first."""


class _Refused(NamedTuple):
    """Until when a cluster is not asked for a workload, in words and by the reason that its agent gave."""

    until: float
    why: str
    refusal: str


@dataclass(slots=True)
class DispatchFailures:
    """What failed where, fading with time."""

    half_life: float = 300.0
    _weight: dict[str, tuple[float, float]] = field(default_factory=dict)
    _avoid: dict[tuple[str, str], _Refused] = field(default_factory=dict)
    _avoid_at: dict[str, dict[str, None]] = field(default_factory=dict)  # cluster -> workloads that it has refused
    _in_vain: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """Cluster and namespace -> how many of it were placed there in vain in a row, and when the last."""
    _given_up: dict[str, tuple[int, float]] = field(default_factory=dict)
    _ended: dict[str, dict[str, tuple[float, float]]] = field(default_factory=dict)
    """Workload -> cluster -> how often it ended there lately, and when that was counted."""

    def failed(self, uid: str, cluster: str, now: float) -> None:
        """Note that the placement of a workload on a cluster failed."""
        self._weight[cluster] = (self.weight(cluster, now) + 1.0, now)
        if uid not in self._ended and len(self._ended) >= ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        ended = self._ended.setdefault(uid, {})
        ended[cluster] = (self._fading(ended.get(cluster), now) + 1.0, now)

    def weight(self, cluster: str, now: float) -> float:
        """Return the number of recent failures there, each halved every half-life."""
        return self._fading(self._weight.get(cluster), now)

    def ended(self, uid: str, cluster: str, now: float) -> int:
        """Return how often a workload ended there lately, in whole numbers: others are asked first (HD-264)."""
        return round(self._fading(self._ended.get(uid, {}).get(cluster), now))

    def was_in_vain(self, cluster: str, namespace: str, now: float, admitted_at: float | None) -> None:
        """Note that a placement ended there and not well; what ran for some time was not in vain.

        `admitted_at` None: by a leader before, or not by all checks yet, which says nothing.
        """
        if admitted_at is None:
            return
        count, _ = self._in_vain.pop((cluster, namespace), (0, 0.0))
        if now <= admitted_at + IN_VAIN_SECONDS:
            self._in_vain[cluster, namespace] = (count + 1, now)
        if len(self._in_vain) > IN_VAIN_KEPT:
            del self._in_vain[next(iter(self._in_vain))]

    def was_of_use(self, cluster: str, namespace: str) -> None:
        """Note that a placement there came to its own end."""
        self._in_vain.pop((cluster, namespace), None)

    def is_in_vain(self, cluster: str, namespace: str, now: float) -> bool:
        """Say whether what a namespace had placed there lately ended at once, each time: it is kept by none (HD-646).

        Of other namespaces that says nothing: why it ended may be its own doing.
        """
        count, at = self._in_vain.get((cluster, namespace), (0, 0.0))
        return count >= IN_VAIN_MAX and now < at + IN_VAIN_REST_SECONDS

    def _fading(self, noted: tuple[float, float] | None, now: float) -> float:
        weight, at = noted or (0.0, now)
        return float(weight * 0.5 ** ((now - at) / self.half_life))

    def avoid(self, uid: str, cluster: str, until: float, why: str, refusal: str = "") -> None:
        """Do not offer this workload to this cluster before `until`, unless the cluster changes in what it refused."""
        if len(self._avoid) >= AVOID_MAX:
            self._ask_again(*next(iter(self._avoid)))
        self._ask_again(uid, cluster)
        self._avoid[(uid, cluster)] = _Refused(until, why, refusal)
        self._avoid_at.setdefault(cluster, {})[uid] = None

    def avoided(self, uid: str, cluster: str, now: float) -> str:
        """Return why this cluster is not asked for this workload now, "" when it may be."""
        found = self._avoid.get((uid, cluster))
        if found is None:
            return ""
        if found.until <= now:
            self._ask_again(uid, cluster)
            return ""
        return found.why

    def asked_again_at(self, uid: str, clusters: Iterable[str], now: float) -> float:
        """Return when the first of the clusters that have refused a workload for good may be asked for it again."""
        found = filter(None, (self._avoid.get((uid, name)) for name in clusters))
        return min((each.until for each in found if each.refusal and each.until > now), default=inf)

    def forget_cluster(self, cluster: str) -> None:
        """Drop what is remembered of a cluster that is gone."""
        self._weight.pop(cluster, None)
        for one in [one for one in self._in_vain if one[0] == cluster]:
            del self._in_vain[one]
        self.cluster_changed(cluster, lambda _uid, _refusal: True)

    def cluster_changed(self, cluster: str, mends: Callable[[str, str], bool]) -> None:
        """Ask it again for those whose refusal (UID, reason) this may have mended: what was refused there may fit."""
        for uid in list(self._avoid_at.get(cluster, ())):
            if mends(uid, self._avoid[(uid, cluster)].refusal):
                self._ask_again(uid, cluster)

    def _ask_again(self, uid: str, cluster: str) -> None:
        there = self._avoid_at.get(cluster)
        if self._avoid.pop((uid, cluster), None) is None or there is None:
            return
        del there[uid]
        if not there:
            del self._avoid_at[cluster]

    def gave_up(self, uid: str, now: float, base: float, most: float) -> float:
        """Note that no cluster could take a workload; return when to try again, later each time in a row."""
        count = self._given_up.get(uid, (0, 0.0))[0] + 1
        until = now + backoff(count, base, most)
        self._given_up[uid] = (count, until)
        return until

    def has_given_up(self, uid: str) -> bool:
        """Say whether no cluster could take a workload when it was tried last."""
        return uid in self._given_up

    def paused_until(self, uid: str) -> float:
        """Return the time before which a workload is not tried again, 0 if it may be."""
        return self._given_up.get(uid, (0, 0.0))[1]

    def wake(self, uid: str, at: float) -> None:
        """Try again by then at the latest: something changed at a cluster. How often it failed in a row stays."""
        count, until = self._given_up.get(uid, (0, 0.0))
        if count:
            self._given_up[uid] = (count, min(until, at))

    def forget(self, uid: str) -> None:
        """Drop what is remembered of a workload that was placed."""
        self._given_up.pop(uid, None)

    def gone(self, uid: str) -> None:
        """Drop all that is remembered of a workload that is over or gone."""
        self.forget(uid)
        self._ended.pop(uid, None)


def backoff(count: int, base: float, most: float) -> float:
    """Return the pause before try number `count` + 1: `base` doubled each time, at most `most`."""
    return float(min(most, base * 2.0 ** min(max(count, 1) - 1, 32)))
