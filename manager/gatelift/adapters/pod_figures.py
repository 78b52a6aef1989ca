"""Figures of pods at our gate under Kueue's names (KEP-976), read from what who leads has counted. Decides nothing.

Neighbours: `core.state.pod_counts` has them, `metrics` registers this.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE
from gatelift.core.state.pod_counts import BOUNDS, PodCounts
from gatelift_kinds.shared.markers import ADMISSION_GATE

_BOUNDS = (*(repr(each) for each in BOUNDS), "+Inf")


class PodFigures(Collector):
    """`counts`: of the process that serves, None before there is a core."""

    def __init__(self) -> None:
        self.counts: PodCounts | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield all of them."""
        counts, queue = self.counts or PodCounts(), ["cluster_queue"]
        for name, text, found in (
            ("kueue_pods_gated", "Pods that came with our scheduling gate", counts.gated),
            ("kueue_pods_ungated", "Pods that were let go, each once", counts.ungated),
        ):
            family = CounterMetricFamily(name, text, labels=[*queue, REPLICA_ROLE])
            for of, count in found.items():
                family.add_metric([of, LEADER], count)
            yield family
        text = "Pods that were deleted: beyond the count of their group, or of another shape"
        family = CounterMetricFamily("kueue_pods_rejected", text, labels=[*queue, "reason", REPLICA_ROLE])
        for (of, reason), count in counts.rejected.items():
            family.add_metric([of, reason, LEADER], count)
        yield family
        yield _removal(counts)


def _removal(counts: PodCounts) -> Metric:
    labels = ["name", "cluster_queue", "is_group", REPLICA_ROLE]
    text = "From a Workload's admission until a pod of it was let go; from its creation, of a pod that came later"
    family = HistogramMetricFamily("kueue_pod_scheduling_gate_removal_seconds", text, labels=labels)
    for (queue, of_group), waits in counts.removal.items():
        up_to = zip(_BOUNDS, map(float, accumulate(waits.buckets)), strict=True)
        family.add_metric([ADMISSION_GATE, queue, "true" if of_group else "false", LEADER], list(up_to), waits.total)
    return family
