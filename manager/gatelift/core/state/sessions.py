"""What has been said in the session of each cluster, what is owed to it, and whose inventory is being compared. Pure.

Only this module writes it. Neighbours: `core` (owns it), `blobs` (templates on the wire).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.state import blobs, hearing
from gatelift.core.state.hearing import Hearing
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Message, TemplateBlob

OWED_MAX = 10_000
"""Messages owed to one cluster; above, the oldest waits for the next resync."""

STRAYS_MAX = 10_000
"""Placements per session of which we remember that we have told it to drop them; above, they are told again."""


@dataclass(slots=True)
class Sessions:
    """By cluster, and where a session is named by that as well."""

    _heard: dict[str, Hearing] = field(default_factory=dict)
    _resynced: dict[str, int] = field(default_factory=dict)
    _blobs: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    _strays: dict[tuple[str, int], dict[PlacementKey, bool]] = field(default_factory=dict)
    _owed: dict[str, dict[PlacementKey, Message]] = field(default_factory=dict)
    _compared: set[str] = field(default_factory=set)
    _unproved: set[str] = field(default_factory=set)

    # --- a session ----------------------------------------------------------------------------------------------

    def opened(self, cluster: str, now: float) -> None:
        """Take that a cluster's stream is open."""
        if cluster in self._heard:
            self._heard[cluster].opened(now)
        else:
            self._heard[cluster] = hearing.begins(now)

    def broken(self, cluster: str, session: int, now: float) -> None:
        """Forget what was remembered of a session that is over."""
        if cluster in self._heard:
            self._heard[cluster].broken(now)
        self._blobs.pop((cluster, session), None)
        self._strays.pop((cluster, session), None)

    def heard(self, cluster: str) -> Hearing | None:
        """Return what is known of a cluster's stream that is open, None where it is not."""
        found = self._heard.get(cluster)
        return found if found is not None and found.ended_at is None else None

    def resync(self, cluster: str, session: int) -> None:
        """Take that a cluster has listed in this session all that it has."""
        self._resynced[cluster] = session

    def resynced(self, cluster: str) -> int | None:
        """Return the session of a cluster's last resync, None where there was none."""
        return self._resynced.get(cluster)

    def keeps(self, cluster: str, session: int) -> bool:
        """Say whether what was sent in a session still stands: no resync has emptied the outboxes since (R6)."""
        return session > 0 and session >= self._resynced.get(cluster, 0)

    def ask_anew(self, cluster: str) -> None:
        """Ask a cluster in a new session for all that it has: what it said now does not prove itself."""
        self._unproved.add(cluster)

    def take_unproved(self) -> set[str]:
        """Return, once, the clusters whose session is to begin anew."""
        unproved, self._unproved = self._unproved, set()
        return unproved

    def forget(self, cluster: str) -> None:
        """Keep nothing of a cluster."""
        self._resynced.pop(cluster, None)
        self._heard.pop(cluster, None)
        self._owed.pop(cluster, None)
        self.forget_blobs(cluster)

    # --- templates ----------------------------------------------------------------------------------------------

    def new_blobs(self, cluster: str, session: int, contents: tuple[bytes, ...]) -> tuple[TemplateBlob, ...]:
        """Return the templates that have not travelled yet in this session, each once; they count as sent."""
        return blobs.fresh(self._blobs.setdefault((cluster, session), set()), contents)

    def blobs_unsent(self, cluster: str, session: int) -> None:
        """Take that what was last returned was not sent: all of this session's travel again."""
        self._blobs.pop((cluster, session), None)

    def forget_blobs(self, cluster: str) -> None:
        """Send templates anew: the cluster does not have them any more."""
        for key in [key for key in self._blobs if key[0] == cluster]:
            del self._blobs[key]

    # --- what is told and owed ----------------------------------------------------------------------------------

    def tells_stray(self, cluster: str, session: int, key: PlacementKey, *, over: bool) -> bool:
        """Say whether a cluster is to be told to drop a placement, which then counts as told; once for each way."""
        told = self._strays.setdefault((cluster, session), {})
        if told.get(key) == over:
            return False
        if len(told) >= STRAYS_MAX:
            told.clear()
        told[key] = over
        return True

    def told_stray(self, cluster: str, session: int, key: PlacementKey) -> bool:
        """Say whether a cluster was told in this session to drop a placement."""
        return key in self._strays.get((cluster, session), {})

    def owe(self, cluster: str, key: PlacementKey, message: Message) -> None:
        """Remember a Stop or Forget that could not be said when due; a resync, which lists all, ends the debt."""
        owed = self._owed.setdefault(cluster, {})
        if len(owed) >= OWED_MAX:
            del owed[next(iter(owed))]
        owed[key] = message

    def take_owed(self, cluster: str) -> dict[PlacementKey, Message]:
        """Return what is owed to a cluster, which then is not any more."""
        return self._owed.pop(cluster, {})

    def owed_to(self) -> list[str]:
        """Return the clusters to which something is owed, by name."""
        return sorted(self._owed)

    # --- inventories --------------------------------------------------------------------------------------------

    def compare(self, cluster: str) -> None:
        """Take that a cluster's inventory is to be compared: until it is, the cluster is told nothing."""
        self._compared.add(cluster)

    def compared(self, cluster: str) -> None:
        """Take that a cluster may be told something, as far as its inventory goes."""
        self._compared.discard(cluster)

    def compares(self, cluster: str) -> bool:
        """Say whether a cluster's inventory is being compared, or is to be."""
        return cluster in self._compared

    def compares_any(self) -> bool:
        """Say whether any cluster's inventory is."""
        return bool(self._compared)
