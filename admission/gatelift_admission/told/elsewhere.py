"""Whether a chain of slices could be as large as is wanted in other flavors, and in its own never (SL-36).

A growth keeps the flavors of its chain. Looks, never changes. Neighbours: `answers` offers it; `flavors` is asked as a
cycle would ask it, for all pods of the slice and not for what it lacks.
"""

from __future__ import annotations

from gatelift_admission.demand.growth import Held
from gatelift_admission.entries.entry import Entry
from gatelift_admission.flavors.assigner import assign
from gatelift_admission.flavors.assignment import Mode
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Cell, cell_of


def fits_elsewhere_alone(state: State, uid: str) -> bool:
    """Return whether a slice can never grow its chain in the flavors of that, and all of it fits into others now."""
    entry = state.entries.get(uid)
    queue = state.queues.get(entry.queue) if entry is not None else None
    if entry is None or queue is None or not queue.admits or entry.obstacle:
        return False
    held = state.chains.held(entry)
    if not held or not _is_too_much(state, entry, held):
        return False
    return assign(state.market(queue), entry.pod_sets).mode is Mode.FIT


def _is_too_much(state: State, entry: Entry, held: Held) -> bool:
    """Return whether all pods ask for more of a flavor of their chain than there could ever be, with all else idle."""
    asked: dict[Cell, int] = {}
    for one in entry.pod_sets:
        known = held.get(one.name)
        for name, amount in one.totals().items():
            if known is not None and name in known.flavors:
                cell = cell_of(known.flavors[name], name)
                asked[cell] = asked.get(cell, 0) + amount
    tree = state.ensure()
    node = tree.queues[entry.queue]
    return any(amount > tree.potential(node, cell) for cell, amount in asked.items())
