"""What there is of every placement, for the manager's resync. Absence is a statement (R7), so nothing may be left out.

Listed is everything from the commit on. Holds are not: nothing of them exists, and they expire by themselves. Nor is
what is kept to be looked at: the manager has had its end, and nothing of it can run (`kept`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from gatelift_agent.core.placement.placements import Placement, PlacementState, Tracked
from gatelift_agent.core.seeing import doubts, let_go
from gatelift_agent.core.state import containment, unknowns
from gatelift_agent.core.state.world import World
from gatelift_kinds.kind import Kind
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import ANNOTATION_GIVEN, PlacementKey, objects_digest
from gatelift_wire.values.rules import measure
from gatelift_wire.values.violations import WireViolation

_MARK = re.compile(r"[0-9a-f]{32}")
"""What a mark looks like to us, who cannot make one: people edit annotations."""
_UNLISTED = frozenset(
    {
        PlacementState.OFFERED,
        PlacementState.HELD,
        PlacementState.REFUSED,
        PlacementState.EXPIRED,
        PlacementState.KEPT,
        PlacementState.GONE,
    }
)


def entries(world: World, now: float) -> tuple[InventoryEntry, ...]:
    """Return all placements, sorted by key, and what may be of others."""
    listed = [each for each in world.placements.values() if each.state not in _UNLISTED]
    entries = [_sayable(world, placement, now) for placement in listed]
    return tuple(sorted([*entries, *_unread(world)], key=lambda each: each.key))


def _unread(world: World) -> list[InventoryEntry]:
    """Return what may run of placements that are not known, since it could not be read; else their stop never comes."""
    found = {unknowns.key_of(world, obj): ref for ref, obj in unknowns.objects(world)}
    return [
        _careful(key, ref.key.namespace, ref.key.name, PlacementState.RUNNING)
        for key, ref in found.items()
        if key is not None and key not in world.placements
    ]


def _sayable(world: World, placement: Placement, now: float) -> InventoryEntry:
    """Return an entry that the wire takes: what it does not take is left out, never the entry (R7).

    An entry that cannot be said would keep all others from being said, and the cluster from every session.
    """
    try:
        entry = _entry(world, placement, now)
        measure(entry)
    except WireViolation as error:
        world.note("warning", f"said without its counts and its mark: {error}", placement)
        return replace(entry, counts=(), given="")
    except Exception as error:  # noqa: BLE001 (containment: one placement keeps no inventory from being told)
        containment.placement_failed(world, placement, error, now)
        return _careful(placement.key, placement.namespace, placement.name, placement.state)
    return entry


def _careful(key: PlacementKey, namespace: str, name: str, state: PlacementState) -> InventoryEntry:
    """Return the entry of a placement that nothing can be said of but that it may run."""
    return InventoryEntry(key=key, namespace=namespace, name=name, state=state.value, lifted=True)


def _lifted(world: World, kind: Kind[Any], tracked: Tracked, now: float) -> bool:
    """Say whether an object was let go; one that cannot be read may have been: nothing may be left out."""
    try:
        return tracked.object is not None and world.runs_as_placed(kind, tracked.object)
    except Exception as error:  # noqa: BLE001 (containment: one object keeps no inventory from being told)
        containment.object_failed(world, tracked.ref, error, now)
        return True


def _given(existing: list[Tracked]) -> str:
    """Return the manager's mark as the objects carry it; "" where somebody has made it into something else."""
    for tracked in existing:
        said = tracked.object.metadata.annotations.get(ANNOTATION_GIVEN, "") if tracked.object is not None else ""
        if _MARK.fullmatch(said):
            return said
    return ""


def _entry(world: World, placement: Placement, now: float) -> InventoryEntry:
    kind = world.kind(placement)
    existing = [tracked for tracked in placement.objects.values() if tracked.object is not None]
    lifted = any(_lifted(world, kind, tracked, now) for tracked in existing)
    begun = lifted or any(tracked.is_gone for tracked in placement.objects.values())
    counts: dict[str, int] = {}
    for tracked in existing:
        counts[tracked.pod_set] = counts.get(tracked.pod_set, 0) + 1
    return InventoryEntry(
        key=placement.key,
        namespace=placement.namespace,
        name=placement.name,
        state=placement.state.value,
        lifted=lifted,
        counts=tuple(sorted(counts.items())),
        digest=objects_digest((tracked.name, tracked.uid) for tracked in placement.objects.values()),
        given=_given(existing),
        all_over=begun and _all_over(world, placement, now),
        **_size(world, placement, now),
    )


def _size(world: World, placement: Placement, now: float) -> dict[str, Any]:
    """Return the size that it has here and what of it was let go; nothing of what has none, or ends."""
    sizing = placement.sizing
    if sizing is None:
        return {}
    running = let_go.count(world, placement, now).holding
    return {
        "size": sizing.number,
        "granted": tuple(sorted(sizing.counts.items())),
        "running": tuple(sorted(running.items())),
    }


def _all_over(world: World, placement: Placement, now: float) -> bool:
    """Say whether nothing runs of what was let go, where that is no end: who is over may be replaced.

    It is the manager's to know whether anything explains it; nothing of it is let go before he has confirmed it (R1).
    """
    unsure = placement.hidden or (placement.unsure and world.unheard) or unknowns.may_be_of(world, placement.key)
    if unsure or not world.kind(placement).gathers:
        return False
    return not any(_may_run(world, placement, tracked, now) for tracked in placement.objects.values())


def _may_run(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    kind, obj = world.kind(placement), tracked.object
    if tracked.asked or tracked.missing or tracked.unproven or tracked.doubt_until is not None:
        return True
    if obj is None:
        return doubts.may_run(world, placement, tracked.doubt or tracked.uid, now)
    return kind.outcome(obj) is None and (tracked.lift_asked or kind.lifted(obj))
