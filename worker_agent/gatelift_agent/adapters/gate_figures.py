"""Figures of elastic pods at their gate, read from what the agent knows when somebody scrapes. Decides nothing.

The histogram and its labels are Kueue's. To which ClusterQueue of its home a placement is charged no agent knows: that
label is empty here; the manager shows what its own agent counts by queue. Neighbour: `metrics` registers this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gatelift_agent.core.state.world import World
from gatelift_kinds.shared.markers import ELASTIC_JOB
from gatelift_kube.values.resources import ObjectKey
from gatelift_kube.values.waits import Waits

LEADER = "leader"
"""Value of Kueue's label `replica_role`: who does not lead lets nothing go."""


class GateFigures(Collector):
    """How long elastic pods waited that were let go, and how many wait."""

    def __init__(self) -> None:
        self._waits: Mapping[ObjectKey, Waits] = {}
        self._gated = 0

    def read(self, world: World) -> None:
        """Take what is so now."""
        self._waits = world.gate_waits.by_queue
        sizes = (one.sizing for one in world.placements.values() if one.sizing is not None)
        self._gated = sum(len(each.gated) for each in sizes)

    def collect(self) -> Iterator[Metric]:
        """Yield both."""
        text = "From when a pod was seen to wait while its size was known, until it was let go"
        labels = ["name", "cluster_queue", "is_group", "replica_role"]
        family = HistogramMetricFamily("kueue_pod_scheduling_gate_removal_seconds", text, labels=labels)
        total = Waits()
        for each in self._waits.values():
            total.take(each)
        if total.count:
            family.add_metric([ELASTIC_JOB, "", "false", LEADER], total.up_to(), total.total)
        yield family
        waiting = "Pods of elastic work that wait at their gate for a slot of their size"
        yield GaugeMetricFamily("gatelift_agent_elastic_pods_gated", waiting, value=self._gated)
