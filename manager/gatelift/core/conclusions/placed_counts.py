"""How much of ours is where, for the status of the clusters: counted anew for each of which that has changed.

Neighbours: `machine` asks behind each event, `held` and `unexplained` say what keeps new work from a cluster.
"""

from __future__ import annotations

from gatelift.core.clusters.link_values import PlaceCounts
from gatelift.core.conclusions import held
from gatelift.core.dispatching import unexplained
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import forgetting
from gatelift.core.state.core import Core


def tell(core: Core) -> None:
    """Tell the links how much is where, for the status of the clusters."""
    if core.placements.changed or core.caution.to_tell:  # rarely, at one event of many
        _count(core, core.placements.take_changed() | core.caution.take_to_tell())
    for cluster, namespaces in core.placements.namespaces_told():
        core.links.placed_in(cluster, namespaces)


def _count(core: Core, clusters: set[str]) -> None:
    for cluster in sorted(clusters):
        with Boundary(containment.not_counted, core, cluster, now=core.now):
            _count_one(core, cluster)


def _count_one(core: Core, cluster: str) -> None:
    placed, offered = core.placements.at(cluster), core.placements.unapplied(cluster)
    placements = len(placed) + core.predecessors.count(cluster)
    counts = PlaceCounts(
        placements=placements,
        offers=len(offered - placed),
        unexplained=unexplained.count(core, cluster),
        undecided=unexplained.undecided(core, cluster),
        no_new_work=held.of_cluster(core, cluster),
    )
    core.links.place_counts(cluster, counts)
    forgetting.tidy(core, cluster)
    if core.contained.resting:
        core.contained.well(containment.counts_of(cluster))
