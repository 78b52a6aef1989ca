"""Workloads without a choice: every resource group that serves them has one flavor, which suits them.

What such a workload needs follows from its shape and the structure alone, so it is worked out once per class. If all
of it is available, flavor assignment could only say so; then the outcome is known at the cost of a few sums. In every
other case `flavors.assign` is asked. Neighbours: `nomination` asks first here, `classes` keeps the demand of a class.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_admission.demand.grants import Grant
from gatelift_admission.flavors.assignment import AssignedPodSet, Assignment, Mode, Trial
from gatelift_admission.flavors.matching import flavor_objection
from gatelift_admission.flavors.search import Market
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Cell, PodSetDemand, Usage, cell_of
from gatelift_kube.objects.core import POD_COUNT


@dataclass(frozen=True, slots=True)
class FlavorStep:
    """One resource group of one pod set: its flavor, and what has to be available, earlier pod sets included."""

    pod_set: int
    flavor: str
    resources: tuple[str, ...]
    needs: tuple[tuple[Cell, int], ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """What is granted where an assignment fits, and which flavors were considered for it, as people read it."""

    grant: Grant
    considered: str
    checks: tuple[str, ...]
    """AdmissionChecks that the granted flavors require."""


@dataclass(frozen=True, slots=True)
class Demand:
    """All that a workload without a choice needs, in the order in which flavors would be assigned."""

    pod_sets: tuple[tuple[str, int, Amounts], ...]
    """Name, count and requests."""
    steps: tuple[FlavorStep, ...]
    usage: Usage
    outcomes: dict[tuple[int, ...], Fit] = field(default_factory=dict)
    """What is granted, by borrowing levels: the same for all that are like it."""
    assignments: dict[tuple[int, ...], Assignment] = field(default_factory=dict)
    """The same of what is assigned; nobody changes them but `fill`."""

    def levels(self, tree: Tree, node: TreeNode) -> tuple[int, ...] | None:
        """Return the borrowing level of each step, None if anything is not available."""
        for cell, amount in self.usage.items():
            if amount > tree.free(node, cell):
                return None
        found = []
        for step in self.steps:
            highest = 0
            for cell, amount in step.needs:
                level, _ = tree.lowest_fit(node, cell, amount)
                highest = max(level, highest)
            found.append(highest)
        return tuple(found)

    def assignment(self, levels: tuple[int, ...]) -> Assignment:
        """Return the assignment; its pod sets are there once a reservation needed them (`fill`). Not to be changed."""
        found = self.assignments.get(levels)
        if found is None:
            found = self.assignments[levels] = Assignment(usage=self.usage, borrowing=max(levels, default=0))
        return found

    def fill(self, assignment: Assignment, levels: tuple[int, ...]) -> None:
        """Add the pod sets to an assignment, as `flavors.assign` would have."""
        found = [AssignedPodSet(name, count, requests) for name, count, requests in self.pod_sets]
        for step, level in zip(self.steps, levels, strict=True):
            one = found[step.pod_set]
            one.flavors.update(dict.fromkeys(step.resources, step.flavor))
            one.tried.update(dict.fromkeys(step.resources, -1))
            one.level = max(one.level, level)
            one.attempts.append(Trial(step.flavor, Mode.FIT, level, (), "", step.needs, level))
        assignment.pod_sets = found


def demand_of(market: Market, pod_sets: tuple[PodSetDemand, ...]) -> Demand | None:
    """Return what a workload needs in a queue, None if there is a choice, or nothing that suits it."""
    if len(pod_sets) > 1 and any(one.group for one in pod_sets):
        return None  # a flavor has to suit pod sets that ask nothing of it
    usage: Usage = {}
    steps: list[FlavorStep] = []
    listed = []
    for index, pod_set in enumerate(pod_sets):
        requests = pod_set.totals()
        if POD_COUNT in market.catalogue.by_resource:
            requests[POD_COUNT] = pod_set.count
        found = _steps(market, index, pod_set, requests, usage)
        if found is None:
            return None
        steps += found
        listed.append((pod_set.name, pod_set.count, requests))
    return Demand(tuple(listed), tuple(steps), usage)


def _steps(
    market: Market, index: int, pod_set: PodSetDemand, requests: Amounts, usage: Usage
) -> list[FlavorStep] | None:
    found: list[FlavorStep] = []
    served: set[str] = set()
    for resource in sorted(requests):
        if resource in served:
            continue
        group = market.catalogue.by_resource.get(resource)
        if group is None:
            if requests[resource] == 0 or market.ignore_undeclared:
                continue
            return None
        if len(group.flavors) != 1:
            return None
        flavor = market.flavors.get(group.flavors[0])
        if flavor is None or flavor_objection(flavor, pod_set) is not None:
            return None
        wanted = tuple(name for name in sorted(requests) if name in group.resources)
        served.update(wanted)
        needs = []
        for name in wanted:
            cell = cell_of(group.flavors[0], name)
            usage[cell] = amounts.add(usage.get(cell, 0), requests[name])
            needs.append((cell, usage[cell]))
        found.append(FlavorStep(index, group.flavors[0], wanted, tuple(needs)))
    return found
