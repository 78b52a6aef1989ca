"""What is charged: one charge and one release per (workload, epoch). Wraps the admission engine's charges.

Three facts are kept apart: reserved, draining (since when), released. The engine charges what the Workload object says;
the ledger speaks up where it knows better (a deleted owner's pods have stopped, though the object is still there), and
holds that nothing is released twice. Neighbours: `following` tells it what happened, `invariants` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_admission.engine import Engine
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Usage


class LedgerError(Exception):
    """A charge or release that contradicts what is on the books. Our mistake; nothing was changed."""


@dataclass(slots=True)
class Charge:
    """The life of one attempt's quota, in monotonic seconds."""

    epoch: int
    reserved_at: float
    draining_since: float | None = None
    leaving_since: float | None = None
    released_at: float | None = None
    early: bool = False
    """It was released before all of it had stopped; not any more once it has."""


@dataclass(slots=True)
class AttemptLedger:
    """The books. `engine` counts; here is when and why."""

    engine: Engine = field(default_factory=Engine)
    charges: dict[str, Charge] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    early: dict[str, str] = field(default_factory=dict)
    """UIDs of those that were released and may still occupy nodes, and the ClusterQueue that was charged."""
    early_changes: int = 0
    """How often one has come, said that fewer of its pods are left, or gone."""
    _occupied: dict[str, tuple[str, Usage]] = field(default_factory=dict)
    """Of those, and of those that are to be: the ClusterQueue, and what they may still occupy."""
    _occupied_of: dict[str, Usage] = field(default_factory=dict)
    _haunts: set[str] = field(default_factory=set)
    reserved: int = 0
    released: int = 0

    def charge(self, uid: str, epoch: int, now: float) -> None:
        """Book a reservation; once is enough. Raises LedgerError where an older charge stands or the epoch is used."""
        known = self.charges.get(uid)
        if known is not None:
            if known.released_at is None and known.epoch == epoch:
                return
            if known.released_at is None:
                raise LedgerError(f"workload {uid} is charged for epoch {known.epoch}, not yet released; not {epoch}")
            if epoch <= known.epoch:
                raise LedgerError(f"workload {uid} was charged for epoch {known.epoch} already; not {epoch}")
        self.charges[uid] = Charge(epoch, now)
        self.reserved += 1

    def moves(self, before: str, after: str) -> None:
        """Take that the charge of one slice is another one's: as one charge, which begins and ends no attempt.

        The engine has taken it over with the reservation (`Reserve.replaces`); what is drained or blocked goes along.
        """
        known = self.charges.pop(before, None)
        if known is None:
            return
        there = self.charges.get(after)
        if there is not None and there.released_at is None:
            self.released += 1  # it was booked by itself, by a leader that did not know of the chain yet
        self.charges[after] = known

    def undo(self, uid: str) -> None:
        """Strike a reservation of which nothing was written: as if it had not been."""
        known = self.charges.get(uid)
        if known is not None and known.released_at is None:
            del self.charges[uid]
            self.reserved -= 1
        self.engine.forget(uid)

    def drain(self, uid: str, now: float) -> None:
        """Note that the pods are being stopped; the charge stays."""
        known = self.charges.get(uid)
        if known is not None and known.draining_since is None:
            known.draining_since = now

    def all_leave(self, uid: str, now: float) -> None:
        """Note that all of it is on its way out."""
        known = self.charges.get(uid)
        if known is not None and known.leaving_since is None:
            known.leaving_since = now

    def holds(self, uid: str) -> bool:
        """Say whether a charge stands."""
        known = self.charges.get(uid)
        return known is not None and known.released_at is None

    def draining_since(self, uid: str) -> float | None:
        """Return when the pods of the present charge were told to stop, None when they were not."""
        known = self.charges.get(uid)
        return known.draining_since if known is not None else None

    def release_early(self, uid: str, queue: str, now: float) -> bool:
        """Let the quota go of what has not stopped yet; False when it was gone before. Nobody undoes it."""
        if uid in self.early or not self.release(uid, now):
            return False
        self.charges[uid].early = True
        self.early[uid] = queue
        self._early_changed(queue)
        return True

    def occupies(self, uid: str, queue: str, usage: Usage) -> None:
        """Note what may still be occupied by what was released early, or is about to be."""
        self._occupies_nothing(uid)
        self._occupied[uid] = (queue, usage)
        total = self._occupied_of.setdefault(queue, {})
        for cell, amount in usage.items():
            total[cell] = amounts.add(total.get(cell, 0), amount)

    def occupied_of(self, queue: str) -> Usage:
        """Return what of a ClusterQueue may still be occupied so, decided ones among it."""
        return self._occupied_of.get(queue, {})

    def _occupies_nothing(self, uid: str) -> None:
        queue, usage = self._occupied.pop(uid, ("", {}))
        total = self._occupied_of.get(queue, {})
        for cell, amount in usage.items():
            total[cell] = amounts.sub(total.get(cell, 0), amount)

    def fewer_left(self, uid: str) -> None:
        """Note that what may still occupy nodes may be another amount than before."""
        if uid in self.early:
            self._early_changed(self.early[uid])

    def _early_changed(self, queue: str) -> None:
        self.early_changes += 1
        self._haunts.add(queue)

    def take_haunted(self) -> set[str]:
        """Return the ClusterQueues of which another amount may still be occupied than at the last call."""
        taken, self._haunts = self._haunts, set()
        return taken

    def is_early(self, uid: str) -> bool:
        """Say whether the quota is gone of what may still occupy nodes."""
        return uid in self.early

    def release(self, uid: str, now: float) -> bool:
        """Let the quota go; False when it was gone before (releasing twice is releasing once): it has stopped."""
        known = self.charges.get(uid)
        self._has_stopped(uid)
        if known is None or known.released_at is not None:
            return False
        known.released_at = now
        self.released += 1
        self.engine.release(uid, now)
        return True

    def _has_stopped(self, uid: str) -> None:
        self._occupies_nothing(uid)
        if uid in self.early:
            self._early_changed(self.early.pop(uid))

    def forget(self, uid: str) -> None:
        """Close the books of a Workload whose object is gone."""
        self.blocked.discard(uid)
        self._has_stopped(uid)
        known = self.charges.pop(uid, None)
        if known is not None and known.released_at is None:
            self.released += 1

    def block(self, uid: str) -> None:
        """Keep a workload out of the queues; its charge stays."""
        self.blocked.add(uid)
        self.engine.block(uid)  # also of one that the engine has come to know since

    def unblock(self, uid: str) -> None:
        """Let a workload queue again."""
        if uid in self.blocked:
            self.blocked.discard(uid)
            self.engine.unblock(uid)

    def usage(self, uid: str) -> Mapping[tuple[str, str], int]:
        """Return what a workload is charged now."""
        return self.engine.charged(uid)
