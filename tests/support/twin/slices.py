"""Slices of elastic workloads, as Kueue schedules them (pods-and-slices.md 4.5), but for the rules of decision 106.

* by name: what is charged already is taken off by name of pod set, not by place, and never below nothing;
* the higher: of a pod set that shrinks stays charged what was, until the ledger says otherwise;
* one record: of several slices that hold quota only that of the highest number is charged, at once, and keeps the time
  of the reservation; Kueue charges both until the old one is seen to be finished;
* behind: a slice is looked at only while the one that it replaces holds quota of the same queue and is not evicted,
  and is the last of those that wait; Kueue takes it for an ordinary workload, which asks for everything;
* written first: a slice is nobody's victim before its reservation is written, and nothing grows it before;
* by parts: as far as each pod set can grow, one after the other.

Neighbours: `world` links, `flavors` asks for what is lacking, `engine` lets in.
"""

from __future__ import annotations

from typing import Any

from support.twin.records import Granted, Work

BEHIND = (
    "PendingEvaluation",
    "Waits for another slice of the same workload: a later one, or the one that holds the quota",
)


def family(world: Any, work: Work) -> list[Work]:
    """Return the slices of a chain that are there, by number."""
    found = [one for one in world.works.values() if one.chain and one.chain == work.chain and not one.finished]
    return sorted(found, key=lambda one: (one.number, one.uid))


def record_of(world: Any, work: Work) -> Work | None:
    """Return the slice that holds the quota of a chain."""
    return next((one for one in reversed(family(world, work)) if one.reserved), None)


def superseded(world: Any, work: Work) -> bool:
    """Return whether a later slice holds the quota."""
    record = record_of(world, work)
    return record is not None and record.number > work.number


def behind(world: Any, work: Work, queue: str) -> bool:
    """Return whether a waiting slice has to wait for others of its chain."""
    waiting = [one for one in family(world, work) if not one.reserved]
    record = record_of(world, work)
    if not waiting or work not in waiting:
        return False
    if record is None:
        return work is not waiting[0]
    leaves = record.evicted or record.unwritten or record.queue != queue
    return leaves or work.number <= record.number or work is not waiting[-1]


def link(world: Any) -> None:
    """Note for each waiting slice what its chain holds."""
    for work in world.works.values():
        record = record_of(world, work) if work.chain and not work.reserved else None
        work.record, work.held = record, None
        if record is not None:
            work.held = {one.name: _in_use(one) for one in record.granted}


def _in_use(one: Granted) -> Granted:
    usage = {name: one.charge()[flavor, name] for name, flavor in one.flavors.items()}
    return Granted(one.name, one.flavors, usage, one.in_use, one.in_use)


def merged(held: Granted | None, more: Granted) -> Granted:
    """Return what a pod set is charged that has grown."""
    if held is None:
        return more
    usage = {name: held.usage.get(name, 0) + more.usage.get(name, 0) for name in {**held.usage, **more.usage}}
    count = max(held.count, more.count)
    return Granted(more.name, {**held.flavors, **more.flavors}, usage, count, count)
