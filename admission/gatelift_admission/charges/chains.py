"""The slices of elastic workloads (KEP-77): which of a chain holds its charge, which waits to grow it, which is past.

A chain is one holder of quota. Of its slices that have a reservation the one of the highest number is the *record*: it
is charged, and the others are superseded. A slice of a higher number that waits is the *target*: it asks for what the
record is not charged yet. Where no slice has a reservation the lowest goes first, as any workload. Whose slice a
workload is says the caller, who knows which marks can be believed. Neighbours: `charging` settles a chain as a whole,
`places` keeps out who stands behind another one, `nomination` asks for the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gatelift_admission.charges.ledger import due_of
from gatelift_admission.demand.growth import Held
from gatelift_admission.entries.entry import RESERVING, Entry, Phase, Shape
from gatelift_admission.entries.standings import FAULTY
from gatelift_admission.values.model import ElasticSlice


@dataclass(slots=True)
class Chains:
    """All chains. Nothing is here where no workload is elastic."""

    said: dict[str, ElasticSlice] = field(default_factory=dict)
    """By UID, also of workloads that were not fed yet."""
    members: dict[str, dict[str, Entry]] = field(default_factory=dict)
    """The slices that are known, by chain and UID."""

    def join(self, entry: Entry, said: ElasticSlice | None) -> None:
        """Let a workload be this slice from now on, None for none."""
        known = entry.of_chain
        if known is not None and (said is None or said.chain != known.chain):
            left = self.members[known.chain]
            left.pop(entry.uid, None)
            if not left:
                del self.members[known.chain]
            entry.superseded = False
        entry.of_chain = said
        if said is not None:
            self.members.setdefault(said.chain, {})[entry.uid] = entry

    def of(self, chain: str) -> list[Entry]:
        """Return the slices of a chain that are known."""
        return list(self.members.get(chain, {}).values())

    def record(self, chain: str) -> Entry | None:
        """Return the slice whose reservation is the chain's, None where none has one."""
        found: Entry | None = None
        for one in self.of(chain):
            if one.phase in RESERVING and (found is None or _place(found) < _place(one)):
                found = one
        return found

    def review(self, chain: str) -> list[Entry]:
        """Find out anew which slices of a chain are superseded; return all.

        Two of one number are both charged: nobody can tell which of them is right.
        """
        found, record = self.of(chain), self.record(chain)
        highest = _number(record) if record is not None else 0
        for one in found:
            one.superseded = one.phase in RESERVING and _number(one) < highest
        return found

    def recharge(self) -> None:
        """Let each slice have what is due to it: an exception may have cut it while a charge went over."""
        for chain in self.members:
            for one in self.review(chain):
                if one.standing is FAULTY and one.phase in RESERVING:
                    continue  # it is charged what its object says, whatever else is known of it
                one.charged = due_of(one)
                one.counted = one.phase if one.phase in RESERVING and not one.superseded else None
                one.charged_queue = one.grant.queue if one.charged or one.counted is not None else ""
                one.charged_local = one.local_queue

    def behind(self, entry: Entry, queue: str) -> bool:
        """Return whether a waiting slice has to wait for others of its chain: it is past, or none that can grow it now.

        Growth waits while the record leaves, is not written yet, cannot be read or is of another ClusterQueue; and for
        ever where its quota was given back (`Engine.release`), which is the end of what ran.
        """
        if entry.of_chain is None:
            return False
        record, own = self.record(entry.of_chain.chain), _place(entry)
        waiting = [one for one in self.of(entry.of_chain.chain) if one.phase is Phase.PENDING and one is not entry]
        if record is None:
            return any(_place(one) < own for one in waiting)
        if _number(entry) <= _number(record) or any(own < _place(one) for one in waiting):
            return True
        leaves = record.evicted or record.ghost or record.phase is Phase.ASSUMED
        released = record.held_counts is not None and not record.held_counts
        return leaves or released or record.standing is FAULTY or record.grant.queue != queue

    def held(self, entry: Entry) -> Held | None:
        """Return what the chain of a waiting slice is charged already; None where nothing is, or it is in no chain."""
        if entry.of_chain is None:
            return None
        record = self.record(entry.of_chain.chain)
        if record is None or record is entry:
            return None
        counts = record.held_counts
        if counts is None:
            counts = record.grant.counts_due(record.workload)
        return {one.name: one.reduced(counts.get(one.name, 0)) for one in record.grant.pod_sets}

    def shape(self, entry: Entry, known: Shape) -> Shape:
        """Return the shape of a waiting slice: it has no equals, and changes with what its chain is charged."""
        if entry.of_chain is None:
            return known
        held = self.held(entry) or {}
        charged = tuple(
            (name, one.count, tuple(sorted(one.usage.items())), tuple(sorted(one.flavors.items())))
            for name, one in held.items()
        )
        return (*known, entry.of_chain.chain, entry.of_chain.number, entry.of_chain.by_parts, charged)

    def fits_shape(self, entry: Entry, names: Iterable[str]) -> bool:
        """Return whether a slice has just the pod sets that its chain is charged for."""
        held = self.held(entry)
        return held is None or held.keys() == set(names)


def _number(entry: Entry) -> int:
    return entry.of_chain.number if entry.of_chain is not None else 0


def _place(entry: Entry) -> tuple[int, str]:
    return _number(entry), entry.uid
