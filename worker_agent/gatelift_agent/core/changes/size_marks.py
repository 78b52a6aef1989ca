"""What is right of an object that has a size: what was made of it, at the size of the mark that is ours (`edits`).

A mark is ours that this process saw landed, asked for, or found at its start: what else stands there somebody wrote.
"""

from __future__ import annotations

from typing import Any

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.placement.sizes import Sizing
from gatelift_agent.core.state.world import World
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared.sizes import SizeError, SizeMark
from gatelift_kinds.shared.values import Charged
from gatelift_kube.deciding.writes import KubeObject


def learn(sizing: Sizing, mark: SizeMark | None) -> None:
    """Take the mark that the object bears, where it is ours."""
    if mark is not None:
        sizing.sees(mark)


def right(world: World, placement: Placement, tracked: Tracked, made: Charged) -> Charged:
    """Return from what the charge of an object is to follow: what was made of it, with the counts of its own mark."""
    sizing, obj = placement.sizing, tracked.object
    if sizing is None or obj is None:
        return made
    kind = world.kind(placement)
    learn(sizing, _mark(kind, obj))
    return made if sizing.landed is None else {**made, **_sized(kind, obj, tracked.raw, sizing.landed)}


def _mark(kind: Kind[Any], obj: KubeObject) -> SizeMark | None:
    """Return the mark; None also where somebody else wrote what is none: the one before is right."""
    try:
        return kind.mark(obj)
    except SizeError:
        return None


def _sized(kind: Kind[Any], obj: KubeObject, raw: bytes, mark: SizeMark) -> Charged:
    """Return those fields that follow from the counts: they are otherwise at other ones."""
    at = kind.charged_at(obj, raw, mark)
    more = {name: count + 1 for name, count in mark.counts.items()}
    other = kind.charged_at(obj, raw, SizeMark(number=mark.number, counts=more, tied=mark.tied))
    return {name: value for name, value in at.items() if other.get(name) != value}
