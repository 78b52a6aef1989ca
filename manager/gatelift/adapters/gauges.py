"""Gauges of the manager, set from what the machine knows when somebody scrapes. Reads only; decides nothing.

Names and labels are Kueue's where Kueue has them. Nothing is kept between scrapes, so a queue or cluster that is gone
is gone here too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gatelift.core import texts
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.machine import Machine
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.state import ghosts
from gatelift.core.state.core import Core
from gatelift_admission.queues.models import readable_quotas
from gatelift_admission.told.statuses import QueueFigures
from gatelift_admission.values import amounts
from gatelift_kube.objects.conditions import TRUE, find, is_true
from gatelift_kube.objects.kueue import ClusterQueue, FlavorUsage
from gatelift_kube.values.resources import ObjectKey

REPLICA_ROLE = "replica_role"
LEADER, FOLLOWER = "leader", "follower"
"""Label and values that Kueue puts on all its metrics."""
UNSATISFIED_CHECKS = "UnsatisfiedAdmissionChecks"
POD_STATES = ("active", "ready", "succeeded", "failed", "terminating", "remaining")
"""What a worker counts of a pod set."""
MILLI = 1000
"""Kueue's gauges count CPU in cores, the engine in thousandths."""


def fill(gauge: Gauge, queue: tuple[str, str], usage: tuple[FlavorUsage, ...], role: str) -> None:
    """Set usage per flavor and resource of a queue, by the labels that name it."""
    for flavor in usage:
        for resource in flavor.resources:
            amount = amounts.parse(resource.total, resource.name)
            gauge.labels(*queue, flavor.name, resource.name, role).set(_shown(amount, resource.name))


def _shown(amount: int, resource: str) -> float:
    return amount / MILLI if resource == "cpu" else amount


class FinishedWorkloads(Collector):
    """A gauge `..._finished_workloads` beside a counter `..._finished_workloads_total`, as Kueue has both.

    The library takes these for one name, unless a collector of one's own yields the one of them.
    """

    def __init__(self, name: str, queue: list[str]) -> None:
        self._name, self._labels = name, [*queue, REPLICA_ROLE]
        self.counts: dict[tuple[str, ...], int] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield what was counted last."""
        family = GaugeMetricFamily(self._name, "Finished Workloads that are still there", labels=self._labels)
        for labels, count in self.counts.items():
            family.add_metric(list(labels), count)
        yield family


class LocalGauges:
    """What is pending, reserved and admitted now in each LocalQueue."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *labels: str) -> Gauge:
            labelled = ["name", "namespace", *labels, REPLICA_ROLE]
            return Gauge(f"kueue_local_queue_{name}", text, labelled, registry=registry)

        self._pending = gauge("pending_workloads", "Workloads that wait for quota", "status")
        self._reserving = gauge("reserving_active_workloads", "Workloads that hold quota")
        self._admitted = gauge("admitted_active_workloads", "Workloads that are admitted")
        self._finished = FinishedWorkloads("kueue_local_queue_finished_workloads", ["name", "namespace"])
        registry.register(self._finished)
        self._status = gauge("status", "1 at what its condition Active is", "active")
        self._reservation = gauge("resource_reservation", "Quota reserved", "flavor", "resource")
        self._usage = gauge("resource_usage", "Quota used by admitted workloads", "flavor", "resource")

    def set(self, core: Core, finished: Mapping[ObjectKey, int], role: str) -> None:
        """Set all; `finished` counts Workloads."""
        for each in (self._pending, self._reserving, self._admitted, self._status, self._reservation, self._usage):
            each.clear()
        self._finished.counts = {(key.name, key.namespace, role): count for key, count in finished.items()}
        engine = core.ledger.engine
        idle = engine.idle_by_local_queue()
        for key in core.knowledge.local_queues:
            figures = engine.local_queue_status(key)
            if figures is None:
                continue
            queue = (key.name, key.namespace)
            waits = min(idle.get(key, 0), figures.pending_workloads)
            self._pending.labels(*queue, "active", role).set(figures.pending_workloads - waits)
            self._pending.labels(*queue, "inadmissible", role).set(waits)
            self._reserving.labels(*queue, role).set(figures.reserving_workloads)
            self._admitted.labels(*queue, role).set(figures.admitted_workloads)
            for active in ("True", "False", "Unknown"):
                self._status.labels(*queue, active, role).set(active == str(figures.active.status))
            fill(self._reservation, queue, figures.flavors_reservation, role)
            fill(self._usage, queue, figures.flavors_usage, role)


class Gauges:
    """What is pending, reserved, admitted and placed now."""

    def __init__(self, registry: CollectorRegistry, *, local_queues: bool = True) -> None:
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
        self._finished = FinishedWorkloads("kueue_finished_workloads", queue)
        registry.register(self._finished)
        self._quotas = tuple(
            gauge(f"kueue_cluster_queue_{name}", text, cell)
            for name, text in (
                ("nominal_quota", "Quota of its own"),
                ("borrowing_limit", "Most that it may borrow, where that is limited"),
                ("lending_limit", "Most that it lends, where that is limited"),
            )
        )
        self._locals = LocalGauges(registry) if local_queues else None
        self._share = gauge("kueue_cluster_queue_weighted_share", "What it borrows, weighed", [*queue, "cohort"])
        self._cohort_share = gauge("kueue_cohort_weighted_share", "What it borrows, weighed", ["cohort"])
        self._attempts = gauge("gatelift_attempts", "Admission cycles by state", ["state"])
        self._clusters = gauge("gatelift_cluster_state", "1 at the state a worker cluster is in", ["cluster", "state"])
        aside = "What raised an exception as it was handled, and rests; its log lines have the traceback"
        self._aside = gauge("gatelift_set_aside", aside, [])
        self._placements = gauge("gatelift_cluster_placements", "Placements on a worker cluster", ["cluster"])
        self._ghost = gauge(
            "gatelift_ghost_resource_usage",
            "What pods ask for that may still occupy nodes after their quota was freed",
            ["cluster", "cluster_queue", "flavor", "resource"],
        )
        self._held = gauge(
            "gatelift_draining_resource_reservation",
            "Quota that what is being stopped still holds",
            ["cluster", "cluster_queue", "flavor", "resource"],
        )
        self._draining = gauge("gatelift_draining_placements", "Placements that are being stopped", ["quota"])
        self._oldest = gauge("gatelift_oldest_drain_seconds", "For how long the first of them has been", [])
        self._credits = gauge("gatelift_cluster_credits", "Un-applied placements that it takes", ["cluster"])
        reclaimed = (
            "Pods that are done whose quota is free while the rest of their Workload runs (KEP-78), by ClusterQueue"
        )
        self._reclaimed = gauge("gatelift_reclaimed_pods", reclaimed, queue)
        waits = "Pods of groups that wait at their gate while their group is placed: for a slot that is taken yet"
        self._slots = gauge("gatelift_pods_waiting_for_slot", waits, queue)
        pods = "Pods of Jobs, as their cluster last counted them; `ready` are `active`, `remaining` hold resources"
        self._pods = gauge("gatelift_cluster_pods", pods, ["cluster", "state"])
        left_out = "1 while something that its agent says of itself cannot be written to its WorkerCluster"
        self._left_out = gauge("gatelift_cluster_information_left_out", left_out, ["cluster"])

    def set(self, machine: Machine) -> None:
        """Set all gauges; about 3 us a queue cell, 1 us a waiting Workload and 0.1 us an attempt."""
        core = machine.core
        self.role = LEADER if core.term else FOLLOWER
        self._queues(core)
        states = Counter(attempt.state for attempt in core.attempts.values())
        for state in AttemptState:
            self._attempts.labels(state.value).set(states[state])
        for each in (self._clusters, self._placements, self._credits, self._left_out, self._reclaimed, self._pods):
            each.clear()
        self._drains(core)
        for (name, counted), pods in _pods(core).items():
            self._pods.labels(name, counted).set(pods)
        self._slots.clear()
        for name, pods in _waiting(core).items():
            self._slots.labels(name).set(pods)
        for name, pods in _reclaimed(core).items():
            self._reclaimed.labels(name).set(pods)
        self._aside.set(len(core.contained.resting))
        for name in core.links.clusters():
            view = core.links.state(name)
            if view is None:
                continue
            for link_state in LinkState:
                self._clusters.labels(name, link_state.value).set(view.state is link_state)
            self._placements.labels(name).set(len(core.placements.at(name)))
            self._credits.labels(name).set(view.credits)
            self._left_out.labels(name).set(view.left_out)

    def _drains(self, core: Core) -> None:
        """Set what is being stopped, and what of it has given its quota back already (KEP-6143)."""
        self._ghost.clear()
        self._held.clear()
        total: Counter[tuple[str, str, str, str]] = Counter()
        for each in ghosts.all_of(core):
            for (flavor, resource), amount in each.usage.items():
                total[each.cluster, each.queue, flavor, resource] += amount
        for labels, amount in total.items():
            self._ghost.labels(*labels).set(_shown(amount, labels[3]))
        ending = [uid for uid, one in core.attempts.items() if one.state is AttemptState.ENDING]
        for held_by, amount in _held(core, ending).items():
            self._held.labels(*held_by).set(_shown(amount, held_by[3]))
        early = sum(core.ledger.is_early(uid) for uid in ending)
        self._draining.labels("held").set(len(ending) - early)
        self._draining.labels("released").set(early)
        since = [at for uid in ending if (at := core.ledger.draining_since(uid)) is not None]
        self._oldest.set(core.now - min(since) if since else 0)

    def _queues(self, core: Core) -> None:
        for each in (self._pending, self._reserving, self._admitted, self._status, self._reservation, self._usage):
            each.clear()
        for each in (self._unadmitted, self._share, self._cohort_share, *self._quotas):
            each.clear()
        engine = core.ledger.engine
        for name, queue in core.knowledge.cluster_queues.items():
            figures = engine.cluster_queue_status(name)
            if figures is not None:
                self._queue(name, queue.spec.cohort_name, figures)
                self._quota(queue)
                active, inadmissible = engine.pending_split(name)
                self._pending.labels(name, "active", self.role).set(active)
                self._pending.labels(name, "inadmissible", self.role).set(inadmissible)
        for cohort in core.knowledge.cohorts:
            share = engine.cohort_share(cohort)
            if share is not None:
                self._cohort_share.labels(cohort, self.role).set(share)
        unadmitted, finished = _standing(core)
        for (name, reason, cause), count in unadmitted.items():
            self._unadmitted.labels(name, reason, cause, self.role).set(count)
        self._finished.counts = {(name, self.role): count for name, count in finished[0].items()}
        if self._locals is not None:
            self._locals.set(core, finished[1], self.role)

    def _queue(self, name: str, cohort: str, figures: QueueFigures) -> None:
        if figures.weighted_share is not None:
            self._share.labels(name, cohort, self.role).set(figures.weighted_share)
        self._reserving.labels(name, self.role).set(figures.reserving_workloads)
        self._admitted.labels(name, self.role).set(figures.admitted_workloads)
        stands = "active" if figures.active.status else "terminating" if _terminates(figures) else "pending"
        for status in ("active", "pending", "terminating"):
            self._status.labels(name, status, self.role).set(status == stands)
        for gauge, usage in ((self._reservation, figures.flavors_reservation), (self._usage, figures.flavors_usage)):
            fill(gauge, (cohort, name), usage, self.role)

    def _quota(self, queue: ClusterQueue) -> None:
        for (flavor, resource), quota in readable_quotas(queue.spec.resource_groups).items():
            labels = (queue.spec.cohort_name, queue.metadata.name, flavor, resource, self.role)
            for gauge, amount in zip(self._quotas, (quota.nominal, quota.borrowing, quota.lending), strict=True):
                if amount is not None:
                    gauge.labels(*labels).set(_shown(amount, resource))


def _pods(core: Core) -> Counter[tuple[str, str]]:
    """Count the pods of what makes pods, by cluster and by what its agent counts of them."""
    pods: Counter[tuple[str, str]] = Counter()
    for attempt in core.attempts.values():
        if attempt.counts is not None and attempt.live:
            for one in attempt.counts.pod_sets:
                for state in POD_STATES:
                    pods[attempt.cluster, state] += getattr(one, state)
    return pods


def _waiting(core: Core) -> Counter[str]:
    """Count the pods of placed works of several that are at their gate, by ClusterQueue."""
    pods: Counter[str] = Counter()
    for attempt in core.attempts.values():
        known = core.knowledge.workloads.get(attempt.workload) if attempt.state is AttemptState.RUNNING else None
        gathered = core.knowledge.work_of(known).gathered if known is not None else None
        if known is not None and gathered is not None and known.status.admission is not None and gathered.waiting:
            pods[known.status.admission.cluster_queue] += gathered.waiting
    return pods


def _held(core: Core, ending: list[str]) -> Counter[tuple[str, str, str, str]]:
    """Count what these are charged, by cluster, ClusterQueue, flavor and resource."""
    total: Counter[tuple[str, str, str, str]] = Counter()
    for uid in ending:
        known, cluster = core.knowledge.workload_of(uid), core.attempts[uid].cluster
        queue = known.status.admission.cluster_queue if known is not None and known.status.admission else ""
        for (flavor, resource), amount in core.ledger.usage(uid).items():
            total[cluster, queue, flavor, resource] += amount
    return total


def _reclaimed(core: Core) -> Counter[str]:
    """Count the pods that count as over while their Workload is charged for others, by ClusterQueue."""
    pods: Counter[str] = Counter()
    for attempt in core.attempts.values():
        known = core.knowledge.workloads.get(attempt.workload) if attempt.given_back else None
        if known is not None and known.status.admission is not None and attempt.live:
            pods[known.status.admission.cluster_queue] += sum(attempt.given_back.values())
    return pods


def _standing(
    core: Core,
) -> tuple[Counter[tuple[str, str, str]], tuple[Counter[str], Counter[ObjectKey]]]:
    """Count Workloads that are not admitted by (ClusterQueue, reason, what is behind it), finished ones by queue."""
    counts: Counter[tuple[str, str, str]] = Counter()
    finished: Counter[str] = Counter()
    of_local: Counter[ObjectKey] = Counter()
    for known in core.knowledge.workloads.values():
        conditions = known.status.conditions
        if is_true(conditions, texts.FINISHED):
            admission = known.status.admission
            finished[admission.cluster_queue if admission else core.knowledge.cluster_queue_of(known)] += 1
            of_local[ObjectKey(known.metadata.namespace, known.spec.queue_name)] += 1
            continue
        if is_true(conditions, texts.ADMITTED):
            continue
        said = find(conditions, texts.QUOTA_RESERVED)
        reserved = said is not None and said.status == TRUE
        reason = UNSATISFIED_CHECKS if reserved else texts.NO_RESERVATION
        cause = said.reason if said is not None and not reserved else ""
        counts[core.knowledge.cluster_queue_of(known), reason, cause] += 1
    return counts, (finished, of_local)


def _terminates(figures: QueueFigures) -> bool:
    return figures.active.reason == "Terminating"
