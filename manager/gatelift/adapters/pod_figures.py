"""Figures of pods at our gate under Kueue's names (KEP-976), read from what who leads has counted. Decides nothing.

Neighbours: `core.state.pod_counts` has them, `metrics` registers this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE
from gatelift.core.state.core import Core
from gatelift.core.state.pod_counts import PodCounts
from gatelift_kinds.shared.markers import ADMISSION_GATE, ELASTIC_JOB
from gatelift_kube.values.resources import ObjectKey
from gatelift_kube.values.waits import Waits


class PodFigures(Collector):
    """`counts`: of the process that serves, None before there is a core."""

    def __init__(self) -> None:
        self.counts: PodCounts | None = None
        self._elastic: dict[str, Waits] = {}

    def take_home(self, core: Core, waits: Mapping[ObjectKey, Waits]) -> None:
        """Take how long pods of elastic work waited that the agent of this cluster let go, by LocalQueue (SL-70)."""
        self._elastic = {}
        for key, each in waits.items():
            local = core.knowledge.local_queues.get(key)
            queue = local.spec.cluster_queue if local is not None else ""
            self._elastic.setdefault(queue, Waits()).take(each)

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
        yield _removal(counts, self._elastic)


def _removal(counts: PodCounts, elastic: Mapping[str, Waits]) -> Metric:
    labels = ["name", "cluster_queue", "is_group", REPLICA_ROLE]
    text = "From a Workload's admission, or the creation of a pod that came later, until that was let go"
    family = HistogramMetricFamily("kueue_pod_scheduling_gate_removal_seconds", text, labels=labels)
    for (queue, of_group), waits in counts.removal.items():
        of = [ADMISSION_GATE, queue, "true" if of_group else "false", LEADER]
        family.add_metric(of, waits.up_to(), waits.total)
    for queue, waits in elastic.items():
        family.add_metric([ELASTIC_JOB, queue, "false", LEADER], waits.up_to(), waits.total)
    return family
