"""How long pods of elastic work waited at their gate that were let go, by the LocalQueue of their placement.

Counted by who leads, as the answer to a lift comes in. Neighbour: `advancing.gates`.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement
from gatelift_kube.values.resources import ObjectKey
from gatelift_kube.values.waits import Waits


class GateWaits:
    """`by_queue`: of a placement whose queue is not known, since it was found at a start, the name is ""."""

    def __init__(self) -> None:
        self.by_queue: dict[ObjectKey, Waits] = {}

    def add(self, placement: Placement, seconds: float) -> None:
        """Count a pod."""
        queue = ObjectKey(placement.namespace, placement.queue)
        self.by_queue.setdefault(queue, Waits()).add(max(0.0, seconds))
