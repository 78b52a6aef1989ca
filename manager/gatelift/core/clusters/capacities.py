"""How much room a worker cluster says that it has, by resource: what dispatch compares clusters by. Pure.

Summed once when the worker says it, not for each workload that looks for a cluster. Neighbour: `cluster_views`
(sums it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gatelift_wire.values.messages import CapacityEntry


class ResourceRoom(NamedTuple):
    """One resource over all flavors of a cluster, in Kueue's internal units; `largest_fit` is that of one flavor."""

    nominal: int
    used: int
    largest_fit: int


def by_resource(entries: Iterable[CapacityEntry]) -> Mapping[str, ResourceRoom]:
    """Return what a worker says of its flavors, by resource; nothing of one without quota of its own."""
    found: dict[str, ResourceRoom] = {}
    for entry in entries:
        have = found.get(entry.resource, ResourceRoom(0, 0, 0))
        found[entry.resource] = ResourceRoom(
            have.nominal + entry.nominal, have.used + entry.used, max(have.largest_fit, entry.largest_fit)
        )
    return found
