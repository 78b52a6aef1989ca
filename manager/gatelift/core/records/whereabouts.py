"""Where placements are: by cluster, which attempts, and in which of its namespaces. Pure.

A cluster is asked for what it has with the names of the namespaces in which the record says that something is: its
agent looks into those whatever it remembers itself (HD-141). Neighbours: `state` (owns it).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Whereabouts:
    """Namespaces of placements, counted; `changed` names clusters whose set is another one than the links know."""

    changed: set[str] = field(default_factory=set)
    _at: dict[str, dict[str, str]] = field(default_factory=dict)  # cluster -> UID -> namespace
    _counts: dict[str, Counter[str]] = field(default_factory=dict)

    def put(self, cluster: str, uid: str, namespace: str) -> None:
        """Take that something is placed there."""
        here = self._at.setdefault(cluster, {})
        if uid in here:
            return
        here[uid] = namespace
        counts = self._counts.setdefault(cluster, Counter())
        counts[namespace] += 1
        if counts[namespace] == 1:
            self.changed.add(cluster)

    def drop(self, cluster: str, uid: str) -> None:
        """Take that it is there no more, if it was."""
        here = self._at.get(cluster, {})
        namespace = here.pop(uid, None)
        if namespace is None:
            return
        counts = self._counts[cluster]
        counts[namespace] -= 1
        if not counts[namespace]:
            del counts[namespace]
            self.changed.add(cluster)
        if not here:
            del self._at[cluster], self._counts[cluster]

    def take_changed(self) -> list[str]:
        """Return, once, the clusters whose set is another one."""
        changed, self.changed = sorted(self.changed), set()
        return changed

    def namespaces(self, cluster: str) -> frozenset[str]:
        """Return the namespaces in which something is placed."""
        return frozenset(self._counts.get(cluster, ()))
