"""Which attempts are at which cluster: placed there, or offered or committed and not applied yet. Pure.

Only this module writes it. Neighbours: `core` (owns it), `machine` (tells the links what has changed).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from gatelift.core.records.whereabouts import Whereabouts

_NOBODY: frozenset[str] = frozenset()


@dataclass(slots=True)
class Placements:
    """UIDs of attempts by cluster. `changed`: clusters whose counts the links have not been told since."""

    changed: set[str] = field(default_factory=set)
    _placed: dict[str, set[str]] = field(default_factory=dict)
    _unapplied: dict[str, set[str]] = field(default_factory=dict)
    _whereabouts: Whereabouts = field(default_factory=Whereabouts)

    def note(self, cluster: str) -> None:
        """Have the links told anew of a cluster: its counts, or what is shown beside them."""
        self.changed.add(cluster)

    def take_changed(self) -> set[str]:
        """Return, once, the clusters of which the links are to be told anew."""
        changed, self.changed = self.changed, set()
        return changed

    def put(self, cluster: str, uid: str, namespace: str) -> None:
        """Take that an attempt is placed at a cluster, which has not applied it yet."""
        self._placed.setdefault(cluster, set()).add(uid)
        self._whereabouts.put(cluster, uid, namespace)
        self.offered(cluster, uid)

    def offered(self, cluster: str, uid: str) -> None:
        """Take that an attempt was offered to a cluster."""
        self._unapplied.setdefault(cluster, set()).add(uid)
        self.changed.add(cluster)

    def applied(self, cluster: str, uid: str) -> bool:
        """Take that a cluster has applied what it was sent, or need not; False: it had nothing of it to apply."""
        waiting = self._unapplied.get(cluster)
        if waiting is None or uid not in waiting:
            return False
        waiting.discard(uid)
        self.changed.add(cluster)
        return True

    def leave(self, cluster: str, uid: str) -> None:
        """Take that an attempt is placed there no more."""
        self._placed.get(cluster, set()).discard(uid)
        self._whereabouts.drop(cluster, uid)
        self.changed.add(cluster)

    def forget(self, cluster: str, uid: str) -> None:
        """Keep nothing of an attempt at a cluster."""
        self.leave(cluster, uid)
        self._unapplied.get(cluster, set()).discard(uid)

    def at(self, cluster: str) -> AbstractSet[str]:
        """Return which attempts are placed at a cluster."""
        return self._placed.get(cluster, _NOBODY)

    def unapplied(self, cluster: str) -> AbstractSet[str]:
        """Return which attempts were sent to a cluster that has not applied them."""
        return self._unapplied.get(cluster, _NOBODY)

    def clusters(self) -> AbstractSet[str]:
        """Return the clusters of which lists are kept."""
        return self._placed.keys() | self._unapplied.keys()

    def namespaces_told(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the clusters whose set of namespaces is another one than the links know, with that set; once."""
        for cluster in self._whereabouts.take_changed() if self._whereabouts.changed else ():
            yield cluster, self._whereabouts.namespaces(cluster)

    def tidy(self, cluster: str) -> bool:
        """Keep no empty lists of a cluster; return whether anything is left of it."""
        for index in (self._placed, self._unapplied):
            if not index.get(cluster, True):
                del index[cluster]
        return cluster in self._placed or cluster in self._unapplied
