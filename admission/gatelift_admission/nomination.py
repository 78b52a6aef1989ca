"""What could be done for one head: flavors, and whom it would preempt. Changes nothing.

Neighbours: `cycle` nominates and decides; `flavors` assigns; `preemption.oracle` finds targets.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_admission.entry import Entry
from gatelift_admission.flavors import Assignment, Cursor, Mode, Pins, assign
from gatelift_admission.preemption.candidates import Target
from gatelift_admission.queues import QueueModel
from gatelift_admission.state import State


@dataclass(frozen=True, slots=True)
class Plan:
    """An assignment and who has to leave for it; without targets it is possible only if its mode is FIT."""

    assignment: Assignment
    targets: tuple[Target, ...] = ()


def nominate(
    state: State,
    entry: Entry,
    queue: QueueModel,
    *,
    cursor: Cursor = (),
    claimed: frozenset[str] = frozenset(),
    pins: Pins | None = None,
) -> Plan:
    """Return what could be done for `entry` in `queue` with the tree as it stands.

    `claimed`: victims that count as gone (their usage is not in the tree); `pins`: the only flavors to consider.
    """
    oracle = state.oracle(entry, queue, claimed)
    assignment = assign(state.market(queue, oracle, pins), entry.pod_sets, cursor)
    if assignment.mode in {Mode.FIT, Mode.NO_FIT} or oracle is None:
        return Plan(assignment)
    return Plan(assignment, oracle.targets(assignment.usage, assignment.needs))
