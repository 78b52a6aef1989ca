"""Slices of elastic workloads come and go, and take each other's place (KEP-77).

Neighbours: `chains` knows who is the record of a chain, `charging` moves its charge, `engine` and `intake` call.
"""

from __future__ import annotations

from collections.abc import Container

from gatelift_admission import texts
from gatelift_admission.charges.chains import Chains
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.reading import Reading
from gatelift_admission.state import charging
from gatelift_admission.state.known import State
from gatelift_admission.values.model import ElasticSlice


def set_slice(state: State, uid: str, said: ElasticSlice | None) -> None:
    """Note which slice a workload is, and let the chains that it leaves and joins be charged for one."""
    chains: Chains = state.chains
    if chains.said.get(uid) == said:
        return
    if said is None:
        del chains.said[uid]
    else:
        chains.said[uid] = said
    entry = state.entries.get(uid)
    if entry is None:
        return
    before = entry.of_chain
    chains.join(entry, said)
    if before is not None and (said is None or before.chain != said.chain):
        charging.settle_chain(state, before.chain)
    charging.settle(state, entry)
    state.review[uid] = entry


def found(state: State, entry: Entry) -> None:
    """Let a workload that comes in be the slice that was said of it; its charge is settled next."""
    said = state.chains.said.get(entry.uid)
    if said is not None:
        state.chains.join(entry, said)


def forget(state: State, uid: str, entry: Entry) -> None:
    """Forget the slice of a workload that is gone, and whose charge is settled."""
    state.chains.said.pop(uid, None)
    if entry.of_chain is not None:
        state.chains.join(entry, None)


def as_slice(state: State, entry: Entry, reading: Reading) -> Reading:
    """Return how a slice waits: for what its chain is not charged already, as long as it is the same but for counts."""
    shape, obstacle = state.chains.shape(entry, reading.shape), reading.obstacle
    if not obstacle and not state.chains.fits_shape(entry, [one.name for one in reading.pod_sets]):
        obstacle = texts.OTHER_POD_SETS
    return reading._replace(shape=shape, obstacle=obstacle)


def is_late(state: State, entry: Entry, victims: Container[str]) -> bool:
    """Return whether the chain of a head leaves for another one of the same round, or has grown otherwise."""
    if entry.of_chain is None:
        return False
    record = state.chains.record(entry.of_chain.chain)
    return (record is not None and record.uid in victims) or state.chains.behind(entry, entry.queue)


def takes_place(state: State, entry: Entry, record: Entry) -> None:
    """Let a slice that is reserved now stand where the record of its chain stands.

    It holds since then, and cannot be stopped if that cannot: as a victim a chain is no younger for having grown.
    """
    hold = state.holders.holds.get(record.uid)
    if hold is not None:
        entry.reserved_at = -hold.key[1]
    if record.uid in state.unreachable:
        state.unreachable.add(entry.uid)


def look_again(state: State, entry: Entry) -> None:
    """Review the slices that wait in the chain of one that has just been told to leave."""
    if entry.of_chain is not None:
        for one in state.chains.of(entry.of_chain.chain):
            if one.phase is Phase.PENDING:
                state.review[one.uid] = one
