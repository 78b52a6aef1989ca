"""What could be done for one head of a queue: which flavors it would get, and who would have to leave for that."""

from __future__ import annotations

from typing import NamedTuple

from gatelift_admission.flavors.assigner import Assignment, Mode
from gatelift_admission.flavors.plain import Demand
from gatelift_admission.preemption.candidates import Target


class Plan(NamedTuple):
    """An assignment and who has to leave for it; without targets it is possible only if its mode is FIT."""

    assignment: Assignment
    targets: tuple[Target, ...] = ()
    demand: Demand | None = None
    """Of a workload without a choice: the assignment has no pod sets yet."""
    levels: tuple[int, ...] = ()

    @property
    def possible(self) -> bool:
        """Return whether it can be had, at once or by preemption."""
        return self.assignment.mode is Mode.FIT or bool(self.targets)
