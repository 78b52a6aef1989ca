"""What could be done for one head: flavors, whom it would preempt, and with how many pods. Changes nothing.

Neighbours: `cycle` nominates and decides; `flavors` assigns; `preemption.oracle` finds targets.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from gatelift_admission.entries.entry import Entry
from gatelift_admission.flavors.assigner import assign
from gatelift_admission.flavors.assignment import Cursor, Mode, Pins
from gatelift_admission.flavors.plain import Demand, demand_of
from gatelift_admission.flavors.search import Market
from gatelift_admission.preemption.oracle import Oracle
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.state.known import State
from gatelift_admission.values.model import PodSetDemand


def demand(state: State, entry: Entry, queue: QueueModel) -> Demand | None:
    """Return what a workload needs that has no choice of flavors, None for all others, as for slices."""
    if entry.of_chain is not None:
        return None
    return queue.pending.demand(entry, state.built, lambda: demand_of(state.market(queue), entry.pod_sets))


def fitting(state: State, entry: Entry, queue: QueueModel) -> Plan | None:
    """Return the plan of a workload without a choice of flavors that fits as things stand, None for all others."""
    known = demand(state, entry, queue)
    if known is None or entry.cursor:
        return None
    tree = state.ensure()
    levels = known.levels(tree, tree.queues[queue.name])
    return None if levels is None else Plan(known.assignment(levels), (), known, levels)


class Given(NamedTuple):
    """What a nomination starts from beside the tree."""

    claimed: frozenset[str] = frozenset()
    """Victims that count as gone: their usage is not in the tree."""
    pins: Pins | None = None
    """The only flavors to consider."""


_NOTHING_GIVEN: Final = Given()


def nominate(state: State, entry: Entry, queue: QueueModel, cursor: Cursor = (), given: Given = _NOTHING_GIVEN) -> Plan:
    """Return what could be done for `entry` in `queue` with the tree as it stands.

    A workload that may run with fewer pods (minCount, KEP-420) gets as many as are possible if all are not; so does a
    slice that may grow its chain by parts.
    """
    oracle = state.oracle(entry, queue, given.claimed)
    held = state.chains.held(entry)
    market = state.market(queue, oracle, given.pins, held)
    full = _plan(market, oracle, entry.pod_sets, cursor)
    if full.possible:
        return full
    if held is not None and entry.of_chain is not None:
        if not entry.of_chain.by_parts:
            return full
        full.assignment.lacks_anything = True
        return _in_part(market, oracle, entry.pod_sets, cursor) or full
    if not any(_spare(one) for one in entry.pod_sets):
        return full
    full.assignment.lacks_anything = True  # less than it lacks now may be enough
    return _fewer(market, oracle, entry.pod_sets, cursor) or full


def _plan(market: Market, oracle: Oracle | None, pod_sets: tuple[PodSetDemand, ...], cursor: Cursor) -> Plan:
    assignment = assign(market, pod_sets, cursor)
    if assignment.mode is Mode.FIT or assignment.mode is Mode.NO_FIT or oracle is None:
        return Plan(assignment)
    targets = oracle.targets(assignment.usage, assignment.needs)
    if not targets:
        assignment.out_of_reach = oracle.out_of_reach(assignment.usage, assignment.needs)
    return Plan(assignment, targets)


def _spare(one: PodSetDemand) -> int:
    """Return how many pods may be missing."""
    return max(0, one.count - one.min_count) if one.min_count is not None else 0


def _fewer(market: Market, oracle: Oracle | None, pod_sets: tuple[PodSetDemand, ...], cursor: Cursor) -> Plan | None:
    """Return the plan with the fewest missing pods that is possible, None if none is; found by bisection.

    Each step takes from every pod set its share of what may be missing, rounded down.
    """
    total = sum(_spare(one) for one in pod_sets)

    def with_missing(missing: int) -> Plan:
        reduced = tuple(one.reduced(one.count - _spare(one) * missing // total) for one in pod_sets)
        return _plan(market, oracle, reduced, cursor)

    missing = bisect_left(range(total + 1), True, key=lambda number: with_missing(number).possible)
    return with_missing(missing) if missing <= total else None


def _in_part(market: Market, oracle: Oracle | None, pod_sets: tuple[PodSetDemand, ...], cursor: Cursor) -> Plan | None:
    """Return the plan in which one pod set after the other grows as far as is possible, None if none can.

    What is charged already is the least that each has: no pod of it is asked for.
    """
    held = market.held or {}
    reached = [one.reduced(min(one.count, held[one.name].count if one.name in held else 0)) for one in pod_sets]
    best: Plan | None = None
    for index, one in enumerate(pod_sets):
        more = one.count - reached[index].count
        plan = _most_of(_Growing(market, oracle, cursor), reached, one, index) if more > 0 else None
        if plan is not None:
            best, reached[index] = plan, one.reduced(plan.assignment.pod_sets[index].count)
    return best


class _Growing(NamedTuple):
    """Where a slice grows by parts."""

    market: Market
    oracle: Oracle | None
    cursor: Cursor


def _most_of(where: _Growing, reached: list[PodSetDemand], one: PodSetDemand, index: int) -> Plan | None:
    """Return the plan with as many more pods of one pod set as are possible, None if none is; found by bisection."""
    before = tuple(reached)

    def with_missing(missing: int) -> Plan:
        listed = (*before[:index], one.reduced(one.count - missing), *before[index + 1 :])
        return _plan(where.market, where.oracle, listed, where.cursor)

    more = one.count - reached[index].count
    missing = bisect_left(range(more), True, key=lambda number: with_missing(number).possible)
    return with_missing(missing) if missing < more else None
