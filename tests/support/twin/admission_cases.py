"""Reads table cases of the admission engine (tests/admission/cases/*.yaml) and plays them.

A case is one sentence about behaviour, the objects it needs in short form, steps, and what must be true afterwards.
Fields of a case (all but `sentence`, `workloads` and `expect` optional):

    sentence    what the case shows; `origin` names where the fact comes from
    queues      name -> {flavors: {flavor: {resource: nominal}}, borrow, lend (same form), cohort, strategy, stop,
                selector, checks: {check: [flavors]},
                preempt: {within, reclaim, borrow: policy or [policy, threshold]}, reclaim (short for one of these),
                fungibility: [whenCanBorrow, whenCanPreempt, preference]};
                weight;
                `groups` instead of `flavors` for several resource groups. Each queue has a LocalQueue of its name.
    cohorts     name -> {parent, flavors, borrow, lend, weight}
    fair        strategies of fair sharing (`both`, `final`, `initial`), absent: classical
    flavors     name -> {labels, taints: [[key, value, effect]], tolerations: [[key, operator, value, effect]]};
                flavors that queues name exist without an entry, unless `missing_flavors` lists them
    namespaces  name -> labels; `ns` exists
    workloads   name -> {queue, priority, created, namespace, sets: {pod set: {count, min_count, requests, selector,
                tolerations, affinity, group}}} or, for one pod set `main`, its fields at once;
                `held: {pod set: {resource: flavor}}` makes it admitted from the start, at second `reserved_at`;
                `evicted: true` says that it was told to stop;
                `slice: {chain, number, by_parts}` makes it a slice of an elastic workload
    steps       default [cycle]; `cycle`, {finish: w}, {release: w}, {forget: w}, {submit: w} (then it is not fed at
                the start), {stop: [queue, policy]}, {label: [namespace, labels]}, {count: [w, {pod set: count}]},
                {stopped: w} (its eviction ends: it waits again), {priority: [w, value]},
                {check: [w, state]} (of a check of a waiting one), {slice: [w, fields]} (which slice it is by now)
    expect      reserved: {w: {pod set: {resource: flavor}}} (all that hold a decision or `held`),
                conditions, evicted, unreserved: {w: [reason, message]}, pending: {queue: [w in order]},
                usage: {queue: {flavor: {resource: [total, borrowed]}}}, checks: {w: [check]},
                counts: {w: {pod set: count}} (of reservations made),
                preempted: {w: [reason, preemptor]} (absent: nobody), messages: {w: message of its preemption},
                active: {queue: [reason, message]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gatelift_admission.engine import Engine
from gatelift_admission.preemption.fair import FINAL_SHARE, INITIAL_SHARE
from gatelift_admission.values.amounts import multiply, parse, to_text
from gatelift_admission.values.model import (
    ElasticSlice,
    EngineSettings,
    Evict,
    Inadmissible,
    Preempt,
    Reserve,
    Unreserve,
)
from gatelift_kube.objects.core import Taint, Toleration
from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheck,
    AdmissionCheckRule,
    AdmissionCheckSpec,
    AdmissionChecksStrategy,
    AdmissionCheckState,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    CohortSpec,
    ConditionsStatus,
    FairSharing,
    FlavorFungibility,
    FlavorQuotas,
    FlavorResource,
    PodSetAssignment,
    Preemption,
    ResourceGroup,
    Workload,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition, LabelSelector, ObjectMeta
from support.twin.admission_objects import cluster_queue, flavor, local_queue, pod_set, rest, workload

CASES = Path(__file__).parents[2] / "admission" / "cases"
Case = dict[str, Any]
STRATEGIES = {
    "both": (FINAL_SHARE, INITIAL_SHARE),
    "final": (FINAL_SHARE,),
    "initial": (INITIAL_SHARE,),
}


def all_cases() -> Iterator[Case]:
    """Yield the cases of all files, in file and line order."""
    for path in sorted(CASES.glob("*.yaml")):
        yield from yaml.safe_load(path.read_text())


def _groups(spec: Mapping[str, Any]) -> tuple[ResourceGroup, ...]:
    listed = spec.get("groups") or ([spec["flavors"]] if spec.get("flavors") else [])
    borrow, lend = spec.get("borrow", {}), spec.get("lend", {})
    return tuple(
        ResourceGroup(
            tuple(next(iter(flavors.values()))),
            tuple(
                FlavorQuotas(
                    name,
                    tuple(
                        FlavorResource(one, nominal, borrow.get(name, {}).get(one), lend.get(name, {}).get(one))
                        for one, nominal in quotas.items()
                    ),
                )
                for name, quotas in flavors.items()
            ),
        )
        for flavors in listed
    )


def _preemption(spec: Mapping[str, Any]) -> Preemption:
    fields = spec.get("preempt", {})
    borrow = fields.get("borrow", "Never")
    return Preemption(
        within_cluster_queue=fields.get("within", "Never"),
        reclaim_within_cohort=spec.get("reclaim", fields.get("reclaim", "Never")),
        borrow_within_cohort=BorrowWithinCohort(*([borrow] if isinstance(borrow, str) else borrow)),
    )


def _queue(name: str, spec: Mapping[str, Any]) -> ClusterQueue:
    rules = tuple(AdmissionCheckRule(check, tuple(only)) for check, only in spec.get("checks", {}).items())
    selector = spec.get("selector", {})
    return cluster_queue(
        name,
        *_groups(spec),
        cohort_name=spec.get("cohort", ""),
        queueing_strategy=spec.get("strategy", "BestEffortFIFO"),
        stop_policy=spec.get("stop"),
        namespace_selector=None if selector is None else LabelSelector(match_labels=selector),
        flavor_fungibility=FlavorFungibility(*spec.get("fungibility", ())),
        preemption=_preemption(spec),
        fair_sharing=FairSharing(spec["weight"]) if "weight" in spec else None,
        admission_checks_strategy=AdmissionChecksStrategy(rules) if rules else None,
    )


@dataclass(slots=True)
class Player:
    """One case under way."""

    case: Case
    engine: Engine = field(default_factory=Engine)
    version: int = 1
    reserved: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    conditions: dict[str, list[str]] = field(default_factory=dict)
    evicted: dict[str, list[str]] = field(default_factory=dict)
    unreserved: dict[str, list[str]] = field(default_factory=dict)
    checks: dict[str, list[str]] = field(default_factory=dict)
    preempted: dict[str, list[str]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    counts: dict[str, dict[str, int | None]] = field(default_factory=dict)

    def play(self) -> None:
        """Feed all objects and take all steps."""
        if "fair" in self.case:
            self.engine = Engine(EngineSettings(fair_sharing=STRATEGIES[self.case["fair"]]))
        self._feed_structure()
        steps = self.case.get("steps", ["cycle"])
        later = {step["submit"] for step in steps if isinstance(step, dict) and "submit" in step}
        for name in self.case["workloads"]:
            if name not in later:
                self.engine.workload_changed(self.workload(name), 0.0)
        for step in steps:
            self._step(step)

    def _feed_structure(self) -> None:
        case, engine = self.case, self.engine
        for name, labels in {"ns": {}, **case.get("namespaces", {})}.items():
            engine.namespace_changed(name, labels)
        queues = {name: _queue(name, spec) for name, spec in case.get("queues", {}).items()}
        named = {one.name for queue in queues.values() for group in queue.spec.resource_groups for one in group.flavors}
        known: dict[str, Any] = {**{name: {} for name in sorted(named)}, **case.get("flavors", {})}
        for name, spec in known.items():
            if name not in case.get("missing_flavors", ()):
                engine.flavor_changed(_flavor(name, spec or {}))
        for check in sorted({check for spec in case.get("queues", {}).values() for check in spec.get("checks", {})}):
            active = ConditionsStatus((Condition("Active", "True"),))
            engine.admission_check_changed(
                AdmissionCheck(ObjectMeta(name=check), AdmissionCheckSpec("example.com/check"), active)
            )
        for name, spec in case.get("cohorts", {}).items():
            groups = _groups(spec)
            fair = FairSharing(spec["weight"]) if "weight" in spec else None
            engine.cohort_changed(Cohort(ObjectMeta(name=name), CohortSpec(spec.get("parent", ""), groups, fair)))
        for name, queue in queues.items():
            engine.cluster_queue_changed(queue)
            engine.local_queue_changed(local_queue(name, name))

    def workload(self, name: str) -> Workload:
        """Return the object of a workload as its short form says."""
        spec = self.case["workloads"][name]
        sets = spec.get("sets") or {"main": spec}
        made = tuple(_pod_set(one, fields) for one, fields in sets.items())
        self.version += 1
        status = _status(spec, sets) if "held" in spec else None
        if status is not None:
            self.reserved[name] = spec["held"]
        elif name in self.states:
            status = WorkloadStatus(admission_checks=(AdmissionCheckState("x", self.states[name]),))
        if "slice" in spec:
            self.engine.set_slice(name, ElasticSlice(**spec["slice"]))
        return workload(
            name,
            *made,
            queue=spec.get("queue", "cq"),
            namespace=spec.get("namespace", "ns"),
            priority=self.priorities.get(name, spec.get("priority")),
            created=spec.get("created", 0),
            active=spec.get("active", True),
            version=self.version,
            status=status,
        )

    def _step(self, step: Any) -> None:
        if step == "cycle":
            self._cycle()
            return
        ((what, value),) = step.items()
        if what == "submit":
            self.engine.workload_changed(self.workload(value), 0.0)
        elif what == "finish":
            self.engine.workload_removed(value)
            self.reserved.pop(value, None)
        elif what == "release":
            self.engine.release(value)
            self.reserved.pop(value, None)
        elif what == "forget":
            self.engine.forget(value)
            self.reserved.pop(value, None)
        elif what == "count":
            self.engine.set_usage(*value)
        elif what == "stop":
            name, policy = value
            self.engine.cluster_queue_changed(_queue(name, {**self.case["queues"][name], "stop": policy}))
        elif what == "stopped":
            self.engine.release(value)
            self.reserved.pop(value, None)
            self.case["workloads"][value].pop("held", None)
            self.engine.workload_changed(self.workload(value), 0.0)
        elif what == "priority":
            name, self.priorities[name] = value
            self.engine.workload_changed(self.workload(name), 0.0)
        elif what == "check":
            name, self.states[name] = value
            self.engine.workload_changed(self.workload(name), 0.0)
        elif what in ("label", "slice"):
            self._say(what, *value)
        else:
            raise ValueError(f"no step is called {what!r}")

    def _say(self, what: str, name: str, value: dict[str, Any]) -> None:
        if what == "slice":
            self.engine.set_slice(name, ElasticSlice(**value))
        else:
            self.engine.namespace_changed(name, value)

    def _cycle(self) -> None:
        for one in rest(self.engine):
            if isinstance(one, Reserve):
                self.reserved[one.uid] = {ps.name: ps.flavors for ps in one.admission.pod_set_assignments}
                self.counts[one.uid] = {ps.name: ps.count for ps in one.admission.pod_set_assignments}
                self.conditions.pop(one.uid, None)
                self.reserved.pop(one.replaces, None)
                if one.checks:
                    self.checks[one.uid] = list(one.checks)
            elif isinstance(one, Inadmissible):
                self.conditions[one.uid] = [one.reason, one.message]
            elif isinstance(one, Preempt):
                assert one.uid not in self.preempted, f"{one.uid} is asked to leave twice"
                self.preempted[one.uid] = [one.reason, one.preemptor_uid]
                self.messages[one.uid] = one.message
            elif isinstance(one, Evict):
                self.evicted[one.uid] = [one.reason, one.message]
            elif isinstance(one, Unreserve):
                self.unreserved[one.uid] = [one.reason, one.message]

    def outcome(self) -> Case:
        """Return what has become true, in the form of `expect`."""
        found: Case = {"pending": {}, "usage": {}, "active": {}}
        for name in self.case.get("queues", {}):
            found["pending"][name] = [one.uid for one in self.engine.pending_positions(name)]
            figures = self.engine.cluster_queue_status(name)
            if figures is None:
                continue
            found["active"][name] = [figures.active.reason, figures.active.message]
            found["usage"][name] = {
                one.name: {cell.name: [str(cell.total), str(cell.borrowed)] for cell in one.resources}
                for one in figures.flavors_reservation
            }
        for what in ("reserved", "conditions", "evicted", "unreserved", "checks", "preempted", "messages", "counts"):
            found[what] = getattr(self, what)
        return found


def _flavor(name: str, spec: Mapping[str, Any]) -> Any:
    return flavor(
        name,
        node_labels=spec.get("labels", {}),
        node_taints=tuple(Taint(key, effect, value) for key, value, effect in spec.get("taints", ())),
        tolerations=tuple(Toleration(*one) for one in spec.get("tolerations", ())),
    )


def _pod_set(name: str, fields: Mapping[str, Any]) -> Any:
    return pod_set(
        name,
        fields.get("count", 1),
        fields.get("requests", {}),
        fields.get("min_count"),
        fields.get("group", ""),
        node_selector=fields.get("selector", {}),
        affinity=fields.get("affinity"),
        tolerations=tuple(Toleration(*one) for one in fields.get("tolerations", ())),
    )


def _status(spec: Mapping[str, Any], sets: Mapping[str, Any]) -> WorkloadStatus:
    seconds = spec.get("reserved_at", 0)
    at = f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
    conditions = [
        Condition("QuotaReserved", "True", "QuotaReserved", last_transition_time=at),
        Condition("Admitted", "True", "Admitted"),
    ]
    if spec.get("evicted"):
        conditions.append(Condition("Evicted", "True", "Preempted"))
    return WorkloadStatus(conditions=tuple(conditions), admission=_held(spec, sets))


def _held(spec: Mapping[str, Any], sets: Mapping[str, Any]) -> Admission:
    assignments = []
    for name, flavors in spec["held"].items():
        count = sets[name].get("count", 1)
        requests = sets[name].get("requests", {})
        usage = {one: to_text(multiply(parse(requests[one], one), count), one) for one in flavors}
        assignments.append(PodSetAssignment(name, flavors, dict(usage), count))
    return Admission(spec.get("queue", "cq"), tuple(assignments))
