"""A placement as its objects carry it: its labels, and what the flavors of this cluster and the checks add to its pods.

Neighbours: `world` holds the flavors, `applying` makes objects with it, `lifting` lets the user's own go with it.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_kinds.shared.patches import merged_selector
from gatelift_kinds.shared.values import Placing, PodSetStart


def placing(world: World, placement: Placement) -> Placing:
    """Return the placement as its objects carry it, with what this cluster's flavors and the checks add.

    MergeConflictError: a flavor and a check contradict each other.
    """
    starts = []
    for pod_set in placement.pod_sets:
        names = dict.fromkeys(flavor for _, flavor in pod_set.flavors)
        found = [world.flavors[name].spec for name in names if name in world.flavors]
        wanted = shapes.additions(pod_set.additions)
        labels = {key: value for spec in found for key, value in spec.node_labels.items()}
        tolerations = tuple(toleration for spec in found for toleration in spec.tolerations)
        starts.append(
            PodSetStart(
                pod_set=pod_set.name,
                count=pod_set.count,
                needs=pod_set.needs,
                node_selector=merged_selector(labels, wanted.node_selector or {}, f"pod set {pod_set.name}"),
                tolerations=tolerations + (wanted.tolerations or ()),
                labels=wanted.labels or {},
                annotations=wanted.annotations or {},
            )
        )
    return Placing(
        key=placement.key,
        origin=world.standing.origin,
        namespace=placement.namespace,
        starts=tuple(starts),
        size=placement.sizing.number if placement.sizing is not None else None,
    )
