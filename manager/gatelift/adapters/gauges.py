"""Gauges of the manager, set from what the machine knows when somebody scrapes. Reads only; decides nothing.

Names and labels are Kueue's where Kueue has them. Nothing is kept between scrapes, so a queue or cluster that is gone
is gone here too.
"""

from __future__ import annotations

from collections import Counter

from prometheus_client import CollectorRegistry, Gauge

from gatelift.core import texts
from gatelift.core.attempts import AttemptState
from gatelift.core.link_values import LinkState
from gatelift.core.machine import Machine
from gatelift.core.state import Core
from gatelift_admission import amounts
from gatelift_admission.statuses import QueueFigures
from gatelift_kube.conditions import TRUE, find, is_true
from gatelift_kube.objects.kueue import FlavorUsage

REPLICA_ROLE = "replica_role"
LEADER, FOLLOWER = "leader", "follower"
"""Label and values that Kueue puts on all its metrics."""
UNSATISFIED_CHECKS = "UnsatisfiedAdmissionChecks"
MILLI = 1000
"""Kueue's gauges count CPU in cores, the engine in thousandths."""


class Gauges:
    """What is pending, reserved, admitted and placed now."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, labels: list[str]) -> Gauge:
            kueues = [REPLICA_ROLE] if name.startswith("kueue_") else []
            return Gauge(name, text, [*labels, *kueues], registry=registry)

        self.role = FOLLOWER
        queue = ["cluster_queue"]
        cell = ["cohort", "cluster_queue", "flavor", "resource"]
        self._pending = gauge(
            "kueue_pending_workloads",
            "Workloads that wait for quota: `active` for their turn, `inadmissible` until something changes",
            [*queue, "status"],
        )
        self._reserving = gauge("kueue_reserving_active_workloads", "Workloads that hold quota", queue)
        self._admitted = gauge("kueue_admitted_active_workloads", "Workloads that are admitted", queue)
        self._status = gauge("kueue_cluster_queue_status", "1 at what the queue is", [*queue, "status"])
        self._reservation = gauge("kueue_cluster_queue_resource_reservation", "Quota reserved", cell)
        self._usage = gauge("kueue_cluster_queue_resource_usage", "Quota used by admitted workloads", cell)
        self._unadmitted = gauge(
            "kueue_unadmitted_workloads",
            "Workloads that are not admitted, by the reason of QuotaReserved=False or Admitted=False",
            [*queue, "reason", "underlying_cause"],
        )
        self._share = gauge("kueue_cluster_queue_weighted_share", "What it borrows, weighed", [*queue, "cohort"])
        self._cohort_share = gauge("kueue_cohort_weighted_share", "What it borrows, weighed", ["cohort"])
        self._attempts = gauge("gatelift_attempts", "Admission cycles by state", ["state"])
        self._clusters = gauge("gatelift_cluster_state", "1 at the state a worker cluster is in", ["cluster", "state"])
        self._placements = gauge("gatelift_cluster_placements", "Placements on a worker cluster", ["cluster"])
        self._credits = gauge("gatelift_cluster_credits", "Un-applied placements that it takes", ["cluster"])

    def set(self, machine: Machine) -> None:
        """Set all gauges; about 3 us a queue cell, 1 us a waiting Workload and 0.1 us an attempt."""
        core = machine.core
        self.role = LEADER if core.term else FOLLOWER
        self._queues(core)
        states = Counter(attempt.state for attempt in core.attempts.values())
        for state in AttemptState:
            self._attempts.labels(state.value).set(states[state])
        for each in (self._clusters, self._placements, self._credits):
            each.clear()
        for name in core.links.clusters():
            view = core.links.state(name)
            if view is None:
                continue
            for link_state in LinkState:
                self._clusters.labels(name, link_state.value).set(view.state is link_state)
            self._placements.labels(name).set(len(core.on_cluster.get(name, ())))
            self._credits.labels(name).set(view.credits)

    def _queues(self, core: Core) -> None:
        for each in (self._pending, self._reserving, self._admitted, self._status, self._reservation, self._usage):
            each.clear()
        for each in (self._unadmitted, self._share, self._cohort_share):
            each.clear()
        engine = core.ledger.engine
        for name, queue in core.knowledge.cluster_queues.items():
            figures = engine.cluster_queue_status(name)
            if figures is not None:
                self._queue(name, queue.spec.cohort_name, figures)
                active, inadmissible = engine.pending_split(name)
                self._pending.labels(name, "active", self.role).set(active)
                self._pending.labels(name, "inadmissible", self.role).set(inadmissible)
        for cohort in core.knowledge.cohorts:
            share = engine.cohort_share(cohort)
            if share is not None:
                self._cohort_share.labels(cohort, self.role).set(share)
        for (name, reason, cause), count in _unadmitted(core).items():
            self._unadmitted.labels(name, reason, cause, self.role).set(count)

    def _queue(self, name: str, cohort: str, figures: QueueFigures) -> None:
        if figures.weighted_share is not None:
            self._share.labels(name, cohort, self.role).set(figures.weighted_share)
        self._reserving.labels(name, self.role).set(figures.reserving_workloads)
        self._admitted.labels(name, self.role).set(figures.admitted_workloads)
        stands = "active" if figures.active.status else "terminating" if _terminates(figures) else "pending"
        for status in ("active", "pending", "terminating"):
            self._status.labels(name, status, self.role).set(status == stands)
        for gauge, usage in ((self._reservation, figures.flavors_reservation), (self._usage, figures.flavors_usage)):
            _fill(gauge, (cohort, name), usage, self.role)


def _unadmitted(core: Core) -> Counter[tuple[str, str, str]]:
    """Count Workloads that are not admitted by (ClusterQueue, reason, what is behind it)."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for known in core.knowledge.workloads.values():
        conditions = known.status.conditions
        if is_true(conditions, texts.ADMITTED) or is_true(conditions, texts.FINISHED):
            continue
        said = find(conditions, texts.QUOTA_RESERVED)
        reserved = said is not None and said.status == TRUE
        reason = UNSATISFIED_CHECKS if reserved else texts.NO_RESERVATION
        cause = said.reason if said is not None and not reserved else ""
        counts[core.knowledge.cluster_queue_of(known), reason, cause] += 1
    return counts


def _terminates(figures: QueueFigures) -> bool:
    return figures.active.reason == "Terminating"


def _fill(gauge: Gauge, queue: tuple[str, str], usage: tuple[FlavorUsage, ...], role: str) -> None:
    for flavor in usage:
        for resource in flavor.resources:
            amount = amounts.parse(resource.total, resource.name)
            value = amount / MILLI if resource.name == "cpu" else amount
            gauge.labels(*queue, flavor.name, resource.name, role).set(value)
