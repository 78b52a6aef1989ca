"""What a ClusterQueue offers: its resource groups with their flavors in order, prepared once per change of its spec.

Neighbours: `search` goes through a group, `structure` prepares the catalogue when a ClusterQueue changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gatelift_kube.objects.kueue import ClusterQueueSpec, FlavorFungibility


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group: its resources and its flavors in the order in which they are tried."""

    resources: frozenset[str]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What a ClusterQueue offers, prepared once per change of its spec."""

    groups: tuple[Group, ...]
    by_resource: Mapping[str, Group]
    fungibility: FlavorFungibility
    can_preempt_while_borrowing: bool
    has_choice: bool

    @classmethod
    def of(cls, spec: ClusterQueueSpec, *, fair_sharing: bool = False) -> Catalogue:
        """Prepare the catalogue of a ClusterQueue; the first group that names a resource serves it."""
        groups = tuple(
            Group(frozenset(group.covered_resources), tuple(flavor.name for flavor in group.flavors))
            for group in spec.resource_groups
        )
        by_resource = {name: group for group in reversed(groups) for name in group.resources}
        borrows = spec.preemption.borrow_within_cohort.policy != "Never"
        borrows = borrows or (fair_sharing and spec.preemption.reclaim_within_cohort != "Never")
        return cls(
            groups, by_resource, spec.flavor_fungibility, borrows, any(len(group.flavors) > 1 for group in groups)
        )
