"""All objects the twin knows, and what follows from them alone: works, activity, the tree (1.1-1.4, 2.1, 2.4, 3.3).

Neighbour: `engine`, which adds queues and cycles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gatelift_admission.demand.requests import CountingRules, pod_set_requests
from gatelift_admission.values.amounts import nano, parse
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    ResourceGroup,
    Workload,
)
from gatelift_kube.objects.meta import Condition
from gatelift_kube.objects.selectors import matches
from support.twin.quota import Node, Usage, add_usage
from support.twin.records import Fair, Granted, QueueView, Snapshot, Work, cohort_spec_weight
from support.twin.slices import link, superseded

EVICTIONS_THAT_COUNT_AS_QUEUED = ("PodsReadyTimeout", "AdmissionCheck")


def seconds(timestamp: str) -> float:
    """Return Unix seconds of an API timestamp."""
    return datetime.fromisoformat(timestamp).timestamp()


def condition(workload: Workload, kind: str) -> Condition | None:
    """Return a condition of a workload."""
    return next((one for one in workload.status.conditions if one.type == kind), None)


def holds(workload: Workload, kind: str) -> bool:
    """Return whether a condition is True."""
    found = condition(workload, kind)
    return found is not None and found.status == "True"


def queue_timestamp(workload: Workload) -> float:
    """Return the queue timestamp (2.3): the eviction by time-out or check, otherwise the creation."""
    evicted = condition(workload, "Evicted")
    if evicted is not None and evicted.status == "True" and evicted.reason in EVICTIONS_THAT_COUNT_AS_QUEUED:
        return seconds(evicted.last_transition_time or "1970-01-01T00:00:00Z")
    return seconds(workload.metadata.creation_timestamp or "1970-01-01T00:00:00Z")


def read_work(workload: Workload, excluded: tuple[str, ...] = (), *, as_kueue: bool = False) -> Work:
    """Return the record of a workload as its object says (1.4, 2.1, 2.3); charged as here, or as in Kueue."""
    pod_sets = pod_set_requests(workload, rules=CountingRules(excluded=excluded))
    meta, status = workload.metadata, workload.status
    requeued = condition(workload, "Requeued")
    work = Work(
        uid=meta.uid,
        name=meta.name,
        namespace=meta.namespace,
        local_queue=workload.spec.queue_name,
        priority=workload.spec.priority or 0,
        timestamp=queue_timestamp(workload),
        pod_sets=pod_sets,
        shape=repr(
            (
                workload.spec.priority or 0,
                [(ps, ps_object.template.spec) for ps, ps_object in zip(pod_sets, workload.spec.pod_sets, strict=True)],
            )
        ),
        active=workload.spec.active,
        failed_checks=any(check.state in ("Retry", "Rejected") for check in status.admission_checks),
        withheld=requeued is not None and requeued.status == "False",
        finished=holds(workload, "Finished"),
    )
    if status.requeue_state is not None and status.requeue_state.requeue_at is not None:
        work.requeue_at = seconds(status.requeue_state.requeue_at)
    if holds(workload, "QuotaReserved") and status.admission is not None and not work.finished:
        _read_grant(workload, work, as_kueue=as_kueue)
    return work


def _read_grant(workload: Workload, work: Work, *, as_kueue: bool) -> None:
    """Take the reservation of a workload from its object; pods in use are the granted less the reclaimable (2.1)."""
    admission = workload.status.admission
    assert admission is not None
    in_use = {ps.name: ps.count for ps in work.pod_sets}
    done = {one.name: one.count for one in workload.status.reclaimable_pods}
    asked = {ps.name: ps.count for ps in workload.spec.pod_sets}
    for one in admission.pod_set_assignments:
        usage = {name: parse(quantity, name) for name, quantity in one.resource_usage.items()}
        count = one.count if one.count is not None else in_use[one.name]
        # A count that was lowered frees nothing, where Kueue frees it at once (KEP-77 here, rule Size 2).
        lowered = count > asked[one.name] and not as_kueue
        left = max(0, count - done.get(one.name, 0)) if lowered else min(count, in_use[one.name])
        work.granted.append(Granted(one.name, dict(one.flavors), usage, count, left))
    work.queue, work.reserved = admission.cluster_queue, True
    work.admitted, work.evicted = holds(workload, "Admitted"), holds(workload, "Evicted")
    reserved = condition(workload, "QuotaReserved")
    if reserved is not None and reserved.last_transition_time:
        work.reserved_at = seconds(reserved.last_transition_time)


@dataclass(slots=True)
class World:
    """Objects by name, and the workloads."""

    cluster_queues: dict[str, ClusterQueue] = field(default_factory=dict)
    local_queues: dict[tuple[str, str], LocalQueue] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    checks: dict[str, AdmissionCheck] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    works: dict[str, Work] = field(default_factory=dict)
    fair: Fair | None = None
    as_kueue: bool = False
    """Flavors are searched as Kueue does, where decision 14 has chosen otherwise."""
    slices: dict[str, tuple[str, int, bool]] = field(default_factory=dict)
    """Chain, number and whether it may grow by parts, by the UID of a slice."""

    def selects(self, queue: str, work: Work) -> bool:
        """Return whether the queue's selector takes the workload's namespace; null selects nothing (1.1)."""
        labels = self.namespaces.get(work.namespace)
        return labels is not None and matches(self.cluster_queues[queue].spec.namespace_selector, labels)

    def active(self, queue: str) -> bool:
        """Return whether a ClusterQueue may admit (3.3, 1.2): not stopped, nothing missing, no cycle above."""
        spec = self.cluster_queues[queue].spec
        if spec.stop_policy in ("Hold", "HoldAndDrain"):
            return False
        if any(one.name not in self.flavors for group in spec.resource_groups for one in group.flavors):
            return False
        for rule in spec.admission_checks_strategy.admission_checks if spec.admission_checks_strategy else ():
            check = self.checks.get(rule.name)
            if check is None or not any(c.type == "Active" and c.status == "True" for c in check.status.conditions):
                return False
        return not self.in_cycle(spec.cohort_name)

    def in_cycle(self, cohort: str) -> bool:
        """Return whether the ancestors of a cohort never end (1.2)."""
        seen: set[str] = set()
        while cohort:
            if cohort in seen:
                return True
            seen.add(cohort)
            known = self.cohorts.get(cohort)
            cohort = known.spec.parent_name if known is not None else ""
        return False

    def root_name(self, queue: str) -> str:
        """Return the name of the tree of a queue: its topmost cohort, or itself if it has none."""
        cohort = self.cluster_queues[queue].spec.cohort_name
        if not cohort or self.in_cycle(cohort):
            return f"queue {queue}"
        while cohort in self.cohorts and self.cohorts[cohort].spec.parent_name:
            cohort = self.cohorts[cohort].spec.parent_name
        return f"cohort {cohort}"

    def snapshot(self, now: float) -> Snapshot:
        """Return a fresh tree of all acyclic nodes with what all holders are charged (2.4 step 2).

        Inactive queues keep their place and charge in the tree; they are in no list of queues to serve or to take from.
        """
        cohorts: dict[str, Node] = {}
        result = Snapshot({}, cohorts, dict(self.flavors), now, self.fair, as_kueue=self.as_kueue)
        nodes: dict[str, Node] = {}
        for name, queue in sorted(self.cluster_queues.items()):
            spec = queue.spec
            if self.in_cycle(spec.cohort_name):
                continue
            node = Node(name, True)
            node.weight = _weight(1 if spec.fair_sharing is None else spec.fair_sharing.weight)
            _quota(node, spec.resource_groups)
            self._hang(node, spec.cohort_name, cohorts)
            nodes[name] = node
            if self.active(name):
                result.queues[name] = QueueView(name, spec, node)
        for name, cohort in sorted(self.cohorts.items()):
            if not self.in_cycle(name):
                self._cohort(name, cohorts)
                _quota(cohorts[name], cohort.spec.resource_groups)
        link(self)
        for work in self.works.values():
            if work.reserved and work.queue in nodes and not superseded(self, work):
                add_usage(nodes[work.queue], work.charge())
                if work.queue in result.queues:
                    result.queues[work.queue].holders[work.uid] = work
        return result

    def _cohort(self, name: str, cohorts: dict[str, Node]) -> Node:
        if name not in cohorts:
            cohorts[name] = Node(name, False)
            known = self.cohorts.get(name)
            cohorts[name].weight = _weight(cohort_spec_weight(known))
            if known is not None:
                self._hang(cohorts[name], known.spec.parent_name, cohorts)
        return cohorts[name]

    def _hang(self, node: Node, parent: str, cohorts: dict[str, Node]) -> None:
        if parent:
            node.parent = self._cohort(parent, cohorts)
            node.parent.children.append(node)


def _weight(quantity: Any) -> int:
    return nano(quantity)


def _quota(node: Node, groups: tuple[ResourceGroup, ...]) -> None:
    """Fill the cells of a node (1.1); limits that are absent have no entry."""
    tables: list[tuple[Usage, str]] = [(node.borrowing, "borrowing_limit"), (node.lending, "lending_limit")]
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                cell = (flavor.name, resource.name)
                node.nominal[cell] = parse(resource.nominal_quota, resource.name)
                for table, name in tables:
                    limit = getattr(resource, name)
                    if limit is not None:
                        table[cell] = parse(limit, resource.name)
