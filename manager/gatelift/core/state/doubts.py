"""What is told of placements that no cache explains: remembered until it has been answered. Pure.

Neighbours: `strays` decides on it, `state` holds it. An agent tells an inventory or an end once in a session, so what
was told while nothing may be answered (dispatch is halted), or before a list of all Workloads came (R3), is told by
nobody a second time: it has to be kept here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import chain, islice

from gatelift.core.api.inflight import pause
from gatelift_wire.values.keys import PlacementKey

DOUBTS_MAX = 10_000
"""Placements of one cluster that are remembered, and as many of each other; above, they wait for its next inventory."""
NAMESPACES_MAX = 16
"""Namespaces that are listed by themselves; what is told of further ones waits for a list of all, which is one read."""
LISTS_APART_SECONDS = 5.0
LISTS_SHARE = 20.0
"""After a round of lists none begins for so long, nor for so many times as long as it took, `LISTS_APART_SECONDS_MAX`
at most: a small message about a placement that nobody knows makes us read every Workload there is, and whoever sends
twenty a second would have us read all the time."""
LISTS_APART_SECONDS_MAX = 60.0

Placed = tuple[str, PlacementKey]
"""Cluster, placement."""


@dataclass(slots=True)
class Doubts:
    """`over`: whether a placement was told to be over, which no later word takes back."""

    waiting: dict[str, dict[Placed, bool]] = field(default_factory=dict)
    """Namespace ("": unknown) -> what waits for its Workloads to be read."""
    _read: dict[Placed, bool] = field(default_factory=dict)
    """What waited for Workloads that have been read, and is answered next."""
    _of: Counter[str] = field(default_factory=Counter)
    """Cluster -> how many of them are its."""
    postponed: dict[Placed, tuple[bool, bool]] = field(default_factory=dict)
    """What was told while dispatch was halted: whether it was over, whether it had never been let go."""
    _postponed_of: Counter[str] = field(default_factory=Counter)
    asked: dict[int, str] = field(default_factory=dict)
    """Read id -> namespace that is being listed."""
    failures: int = 0
    """Lists in a row that failed."""
    asks_again_at: float = 0.0
    asked_at: float = 0.0
    """When the last round of lists began."""

    def doubt(self, cluster: str, key: PlacementKey, namespace: str, *, over: bool) -> None:
        """Remember a placement until the Workloads of a namespace have been read."""
        if namespace not in self.waiting and len(self.waiting) >= NAMESPACES_MAX:
            namespace = ""
        placed = (cluster, key)
        known = self.waiting.get(namespace, {})
        if placed in known:
            known[placed] = over or known[placed]
        elif self._of[cluster] < DOUBTS_MAX:
            self.waiting.setdefault(namespace, {})[placed] = over
            self._of[cluster] += 1

    def postpone(self, cluster: str, key: PlacementKey, *, over: bool, gated: bool) -> None:
        """Remember a placement until dispatch goes on."""
        placed = (cluster, key)
        if placed not in self.postponed and self._postponed_of[cluster] >= DOUBTS_MAX:
            return
        self._postponed_of[cluster] += placed not in self.postponed
        was_over, _ = self.postponed.get(placed, (False, False))
        self.postponed[placed] = over or was_over, gated

    def resume(self, most: int) -> dict[Placed, tuple[bool, bool]]:
        """Return, once, so many of what was told while dispatch was halted."""
        resumed = {placed: self.postponed.pop(placed) for placed in tuple(islice(self.postponed, most))}
        self._postponed_of.subtract(cluster for cluster, _ in resumed)
        self._postponed_of = +self._postponed_of
        return resumed

    def is_over(self, cluster: str, key: PlacementKey) -> bool:
        """Say whether a placement was told to be over, whatever an older inventory lists."""
        placed = (cluster, key)
        return self.postponed.get(placed, (False, False))[0] or any(
            each.get(placed, False) for each in chain(self.waiting.values(), (self._read,))
        )

    def unasked(self) -> list[str]:
        """Return the namespaces whose Workloads have to be read; none while a round of lists is under way."""
        return [] if self.asked else list(self.waiting)

    def ask(self, read_id: int, namespace: str, now: float) -> None:
        """Take that the Workloads of a namespace are asked for, which begins a round of lists or belongs to one."""
        self.asked[read_id] = namespace
        self.asked_at = now

    def take_asked(self, read_id: int) -> str | None:
        """Return, once, which namespace was asked for; None: something else was."""
        return self.asked.pop(read_id, None)

    def were_read(self, namespace: str) -> None:
        """Take that the Workloads of a namespace were read: what waited for that can be answered."""
        for placed, over in self.waiting.pop(namespace, {}).items():
            if placed in self._read:
                self._of[placed[0]] -= 1
            self._read[placed] = over or self._read.get(placed, False)

    def take(self, most: int) -> dict[Placed, bool]:
        """Return, once, so many of those that can be answered."""
        found = {placed: self._read.pop(placed) for placed in tuple(islice(self._read, most))}
        self._of.subtract(cluster for cluster, _ in found)
        self._of = +self._of
        return found

    @property
    def answerable(self) -> bool:
        """Say whether there is something to answer now."""
        return bool(self.postponed or self._read)

    def failed(self, namespace: str, now: float) -> None:
        """Take that a namespace could not be listed: what waits for it waits for a list of all, and for none else's.

        That is asked for after a pause, longer each time in a row.
        """
        self.failures += 1
        self.asks_again_at = now + pause(self.failures)
        for placed, over in self.waiting.pop(namespace, {}).items():
            of_all = self.waiting.setdefault("", {})
            if placed in of_all:
                self._of[placed[0]] -= 1
            of_all[placed] = over or of_all.get(placed, False)

    def answered(self, now: float) -> None:
        """Take that a list was read: the next round begins after a pause that follows from what this one cost."""
        self.failures = 0
        took = max(0.0, now - self.asked_at)
        self.asks_again_at = now + min(LISTS_APART_SECONDS_MAX, max(LISTS_APART_SECONDS, LISTS_SHARE * took))

    def forget(self, cluster: str) -> None:
        """Forget a cluster that nobody expects any more: who takes it in again starts with an inventory."""
        self.postponed = {placed: told for placed, told in self.postponed.items() if placed[0] != cluster}
        self._read = {placed: over for placed, over in self._read.items() if placed[0] != cluster}
        self._of.pop(cluster, None)
        self._postponed_of.pop(cluster, None)
        for namespace, found in list(self.waiting.items()):
            left = {placed: over for placed, over in found.items() if placed[0] != cluster}
            if left:
                self.waiting[namespace] = left
            else:
                del self.waiting[namespace]
