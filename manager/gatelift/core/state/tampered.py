"""Workloads that somebody else than a leader has changed: their records, and the objects that they are for. Pure.

Only this module writes it. Neighbours: `kept_record` and `kept_owner` decide, and have it written back.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TamperedWorkloads:
    """UIDs of what is known as it was, and is to be written back."""

    former_writes_until: float = 0.0
    """Until when a write of a leader before may land."""
    _records: dict[str, bool] = field(default_factory=dict)  # whether a leader before may have done it
    _other_clusters: dict[str, str] = field(default_factory=dict)  # version of a changed record that names another one
    _owners: dict[str, bool] = field(default_factory=dict)  # whether people are told

    def began_to_lead(self, former_writes_until: float) -> None:
        """Take that who led before asks for no write any more, and that the last one has landed by then."""
        self.former_writes_until = former_writes_until

    # --- records ------------------------------------------------------------------------------------------------

    def record_changed(self, uid: str, *, other_cluster_in: str, maybe_former: bool) -> None:
        """Take that a record was changed.

        `other_cluster_in`: the version in which it names another cluster, which can only be cleared, first. With
        `maybe_former` a leader before may have done it: it is left alone until its cluster was heard, or is lost.
        """
        self._records[uid] = maybe_former
        self._other_clusters.pop(uid, None)
        if other_cluster_in:
            self._other_clusters[uid] = other_cluster_in

    def record_stands(self, uid: str) -> None:
        """Take that a record is as it was written."""
        self._records.pop(uid, None)
        self._other_clusters.pop(uid, None)

    def blame(self, uid: str) -> None:
        """Take that no leader before has changed a record."""
        self._records[uid] = False

    def is_record_changed(self, uid: str) -> bool:
        """Say whether a record was changed."""
        return uid in self._records

    def is_blamed(self, uid: str) -> bool:
        """Say whether it was, and by no leader."""
        return self._records.get(uid) is False

    def is_maybe_former(self, uid: str) -> bool:
        """Say whether it was, and a leader before may have done it."""
        return self._records.get(uid, False)

    def names_other_cluster(self, uid: str, version: str) -> bool:
        """Say whether the record of a version names another cluster than the one that was chosen."""
        return self._other_clusters.get(uid) == version

    # --- owners -------------------------------------------------------------------------------------------------

    def owner_changed(self, uid: str) -> None:
        """Take that a Workload was given to another object, or none."""
        self._owners.setdefault(uid, False)

    def owner_stands(self, uid: str) -> None:
        """Take that a Workload names its object."""
        self._owners.pop(uid, None)

    def is_owner_changed(self, uid: str) -> bool:
        """Say whether a Workload was given to another object, or none."""
        return uid in self._owners

    def tells_owner(self, uid: str) -> bool:
        """Say whether people are to be told of that, who then count as told: once, however often a write is refused."""
        told, self._owners[uid] = self._owners[uid], True
        return not told

    def forget(self, uid: str) -> None:
        """Keep nothing of a Workload that is gone."""
        self.record_stands(uid)
        self.owner_stands(uid)
