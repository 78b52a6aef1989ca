"""Figures of slices of elastic work (KEP-77, SL-70). Decides nothing.

Moments are notes of `core.told.slice_moments`, which who leads alone makes; what waits and drains is read when somebody
scrapes. What waits at its gate is counted where it waits: by the agents. Neighbour: `metrics`.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gatelift.adapters.gauges import LEADER, REPLICA_ROLE
from gatelift.core.api.commands import OfSlice, SliceMoment
from gatelift.core.records import record
from gatelift.core.records.chain import Chain
from gatelift.core.state.core import Core
from gatelift_admission.values import amounts
from gatelift_kinds.shared.sizes import counts_of
from gatelift_kube.objects.kueue import Workload

RESIZE_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)
"""Seconds: a growth waits for quota, a shrink for pods that stop."""
MILLI = 1000


class SliceFigures:
    """All of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        queue = ["cluster_queue"]
        self._replaced = Counter(
            "kueue_replaced_workload_slices_total",
            "Slices whose place a later one has taken",
            [*queue, REPLICA_ROLE],
            registry=registry,
        )
        self._moments = Counter(
            "gatelift_workload_slices_total",
            "What has become of slices of elastic work: made, edited, admitted, replaced, withdrawn, lowered, refused"
            " by a cluster, rolled_back, moved",
            [*queue, "moment"],
            registry=registry,
        )
        self._running = Histogram(
            "gatelift_slice_wish_to_running_seconds",
            "From more pods being wanted until as many were ready at once",
            queue,
            buckets=RESIZE_BUCKETS,
            registry=registry,
        )
        self._released = Histogram(
            "gatelift_slice_wish_to_released_seconds",
            "From fewer pods being wanted until the quota of the others was free",
            queue,
            buckets=RESIZE_BUCKETS,
            registry=registry,
        )
        self._waiting = Gauge(
            "gatelift_slice_pods_waiting",
            "Pods that running elastic work wants more, and has no quota for",
            queue,
            registry=registry,
        )
        self._draining = Gauge(
            "gatelift_slice_quota_draining",
            "Quota charged for pods of elastic work that are wanted no more and not known to be out of the way",
            [*queue, "flavor", "resource"],
            registry=registry,
        )

    def count(self, note: SliceMoment) -> None:
        """Count one moment."""
        queue = note.cluster_queue
        if note.moment is OfSlice.REPLACED:
            self._replaced.labels(queue, LEADER).inc()
        timed = {OfSlice.RUNNING: self._running, OfSlice.RELEASED: self._released}.get(note.moment)
        if timed is None:
            self._moments.labels(queue, note.moment.value).inc()
        elif note.seconds is not None:
            timed.labels(queue).observe(note.seconds)

    def set(self, core: Core) -> None:
        """Set what is so now."""
        self._waiting.clear()
        self._draining.clear()
        waiting: Tally[str] = Tally()
        draining: Tally[tuple[str, str, str]] = Tally()
        for chain in core.knowledge.slices.unfinished():
            known = core.knowledge.workloads.get(chain.record.key) if chain.record is not None else None
            if known is None or known.status.admission is None:
                continue
            queue = known.status.admission.cluster_queue
            waiting[queue] += _more(core, chain, known)
            for (flavor, resource), amount in _surplus(known):
                draining[queue, flavor, resource] += amount
        for queue, pods in waiting.items():
            self._waiting.labels(queue).set(pods)
        for of, amount in draining.items():
            self._draining.labels(*of).set(amount / MILLI if of[2] == "cpu" else amount)


def _more(core: Core, chain: Chain, known: Workload) -> int:
    target = core.knowledge.workloads.get(chain.target.key) if chain.target is not None else None
    before = counts_of(known)
    return sum(max(0, count - before.get(name, 0)) for name, count in counts_of(target).items()) if target else 0


def _surplus(known: Workload) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield what a record is charged above what it asks for, by flavor and resource."""
    wanted, granted = counts_of(known), record.granted(known)
    assignments = known.status.admission.pod_set_assignments if known.status.admission is not None else ()
    for one in assignments:
        count = granted.get(one.name, 0)
        over = max(0, count - wanted.get(one.name, count))
        for resource, quantity in one.resource_usage.items() if over else ():
            yield (one.flavors.get(resource, ""), resource), amounts.parse(quantity, resource) // count * over
