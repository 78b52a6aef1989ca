"""What could be done for one head of a queue: which flavors it would get, and who would have to leave for that."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from gatelift_admission.flavors.assignment import Assignment, Mode
from gatelift_admission.flavors.plain import Demand
from gatelift_admission.preemption.candidates import Target


@dataclass(slots=True, eq=False, init=False)
class Plan:
    """An assignment and who has to leave for it; without targets it is possible only if its mode is FIT.

    Nobody changes it.
    """

    assignment: Assignment
    targets: tuple[Target, ...]
    demand: Demand | None
    """Of a workload without a choice: the assignment has no pod sets yet."""
    levels: tuple[int, ...]

    def __init__(
        self,
        assignment: Assignment,
        targets: tuple[Target, ...] = (),
        demand: Demand | None = None,
        levels: tuple[int, ...] = (),
    ) -> None:
        """Take what was found."""
        self.assignment, self.targets, self.demand, self.levels = assignment, targets, demand, levels

    @property
    def possible(self) -> bool:
        """Return whether it can be had, at once or by preemption."""
        return self.assignment.mode is Mode.FIT or bool(self.targets)

    def of_those_left(self, holds: Container[str]) -> Plan:
        """Return the same for those of its targets who hold quota still, by UID."""
        targets = tuple([one for one in self.targets if one.entry.uid in holds])
        return self if len(targets) == len(self.targets) else Plan(self.assignment, targets, self.demand, self.levels)
