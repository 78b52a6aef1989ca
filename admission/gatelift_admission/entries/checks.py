"""Admission checks: which a ClusterQueue requires for the flavors that were assigned. Neighbour: `reservation`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gatelift_kube.objects.kueue import ClusterQueueSpec

MULTIKUEUE_CONTROLLER: Final = "kueue.x-k8s.io/multikueue"
PROVISIONING_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"


def rules(spec: ClusterQueueSpec) -> dict[str, frozenset[str]]:
    """Return the flavors per check name; an empty set means all flavors of the queue."""
    strategy = spec.admission_checks_strategy
    if strategy is None:
        return {}
    return {rule.name: frozenset(rule.on_flavors) for rule in strategy.admission_checks}


def required(spec: ClusterQueueSpec, flavors: Iterable[str]) -> tuple[str, ...]:
    """Return the checks that a workload with these flavors has to pass, in name order."""
    ruled = rules(spec)
    if not ruled:
        return ()
    assigned = frozenset(flavors)
    return tuple(sorted(name for name, only in ruled.items() if not only or only & assigned))
