"""Feeds the fast engine and the twin the objects and events of one case, as an API server would hold them.

The steps are those of `admission_cases`, and: {confirm: w} (its reservation is written), {drain} (all that have
to stop have stopped), {change: [queue, fields]}, {stop_local: [queue, policy]}, {priority: [w, value]} (set to it),
{reclaim: [w, n]} (n pods of each pod set need no quota any more), {check: [w, state]} (of a check of a waiting one),
{reach: [w, true]} (it cannot be stopped from now on; false: it can again).
Neighbour: `play` plays the steps and compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import ElasticSlice, EngineSettings, Reserve
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    AdmissionCheckSpec,
    AdmissionCheckState,
    ClusterQueue,
    Cohort,
    CohortSpec,
    ConditionsStatus,
    FairSharing,
    ReclaimablePod,
    Workload,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition, ObjectMeta
from support.twin.admission_cases import STRATEGIES, Case, _flavor, _groups, _pod_set, _queue
from support.twin.admission_objects import local_queue, workload
from support.twin.engine import Twin
from support.twin.records import Fair

START = 1767225600.0
"""Unix time of 2026-01-01T00:00:00Z, from which the creation times of workloads count."""


@dataclass(slots=True)
class Fed:
    """Both engines and the objects that they were fed."""

    case: Case
    fast: Engine = field(default_factory=Engine)
    twin: Twin = field(default_factory=Twin)
    objects: dict[str, Workload] = field(default_factory=dict)
    reserves: dict[str, Reserve] = field(default_factory=dict)
    queues: dict[str, Any] = field(default_factory=dict)
    priorities: dict[str, int] = field(default_factory=dict)
    reclaimed: dict[str, int] = field(default_factory=dict)
    """Pods of each pod set of a workload that need no quota any more."""
    clock: float = START
    version: int = 1

    def __post_init__(self) -> None:
        """Let both share as the case says, by the same clock."""
        if "fair" in self.case:
            self.fast = Engine(EngineSettings(fair_sharing=STRATEGIES[self.case["fair"]]))
            self.twin.world.fair = Fair(strategies=STRATEGIES[self.case["fair"]])
        self.fast.wall_clock(START, START)

    def steps(self) -> Iterator[bool]:
        """Feed what is there from the beginning, then let one step after the other happen.

        Yields after each whether it is for the caller to let the engines decide.
        """
        self.feed_structure()
        later = {step["submit"] for step in self.case["steps"] if isinstance(step, dict) and "submit" in step}
        for name in self.case["workloads"]:
            if name not in later:
                self.feed(name)
        for step in self.case["steps"]:
            self.clock += 1
            if step == "drain":
                for uid in [uid for uid in sorted(self.reserves) if self.twin.world.works[uid].evicted]:
                    self.happen("stopped", uid)
            elif step != "cycle":
                ((what, value),) = step.items()
                self.happen(what, value)
            yield step == "cycle"

    def feed_structure(self) -> None:
        """Feed all but the workloads."""
        case = self.case
        self._namespace("ns", {})
        for name, labels in case.get("namespaces", {}).items():
            self._namespace(name, labels)
        for name, spec in case["flavors"].items():
            flavor = _flavor(name, spec or {})
            self.fast.flavor_changed(flavor)
            self.twin.feed(flavor, self.clock)
        active = ConditionsStatus((Condition("Active", "True"),))
        for name in sorted({name for spec in case["queues"].values() for name in spec.get("checks", {})}):
            check = AdmissionCheck(ObjectMeta(name=name), AdmissionCheckSpec("example.com/check"), active)
            self.fast.admission_check_changed(check)
            self.twin.feed(check, self.clock)
        for name, spec in case.get("cohorts", {}).items():
            share = FairSharing(spec["weight"]) if "weight" in spec else None
            cohort = Cohort(ObjectMeta(name=name), CohortSpec(spec.get("parent", ""), _groups(spec), share))
            self.fast.cohort_changed(cohort)
            self.twin.feed(cohort, self.clock)
        for name, spec in case["queues"].items():
            self.queues[name] = spec
            self._queue(name)
            local = local_queue(name, name)
            self.fast.local_queue_changed(local)
            self.twin.feed(local, self.clock)

    def _namespace(self, name: str, labels: dict[str, str]) -> None:
        self.fast.namespace_changed(name, labels)
        self.twin.world.namespaces[name] = labels

    def _queue(self, name: str) -> None:
        made: ClusterQueue = _queue(name, self.queues[name])
        self.fast.cluster_queue_changed(made)
        self.twin.feed(made, self.clock)

    def feed(self, uid: str, status: WorkloadStatus | None = None) -> None:
        """Feed a workload as it is written now; without `status` it waits."""
        self.version += 1
        spec = self.case["workloads"][uid]
        if "slice" in spec:
            said = ElasticSlice(**spec["slice"])
            self.fast.set_slice(uid, said)
            self.twin.world.slices[uid] = (said.chain, said.number, said.by_parts)
        self.objects[uid] = workload(
            uid,
            *(_pod_set(one, fields) for one, fields in (spec.get("sets") or {"main": spec}).items()),
            queue=spec.get("queue", "cq"),
            namespace=spec.get("namespace", "ns"),
            priority=self.priorities.get(uid, spec.get("priority")),
            created=spec.get("created", 0),
            version=self.version,
            status=replace(status or WorkloadStatus(), reclaimable_pods=self._reclaimable(uid)),
        )
        self.fast.workload_changed(self.objects[uid], self.clock)
        self.twin.feed(self.objects[uid], self.clock)

    def happen(self, what: str, value: Any) -> None:
        """Let one event come in."""
        if what == "submit":
            self.feed(value)
        elif what == "stop":
            self.queues[value[0]] = {**self.queues[value[0]], "stop": value[1]}
            self._queue(value[0])
        elif what == "change":
            self.queues[value[0]] = {**self.queues[value[0]], **value[1]}
            self._queue(value[0])
        elif what == "stop_local":
            local = local_queue(value[0], value[0], stop=value[1])
            self.fast.local_queue_changed(local)
            self.twin.feed(local, self.clock)
        elif what == "finish":
            if value in self.objects:
                self.fast.workload_removed(value)
                self.twin.remove(value, self.clock)
                del self.objects[value]
                self.reserves.pop(value, None)
        elif what in ("confirm", "stopped"):
            self._reserved(what, value)
        elif what == "reach":
            if value[0] in self.objects:
                self.fast.set_unreachable(value[0], unreachable=value[1])
                self.twin.reach(value[0], self.clock, unreachable=value[1])
        else:
            self._changed(what, *value)

    def _reserved(self, what: str, uid: str) -> None:
        if uid not in self.reserves:
            return
        self.feed(uid, self._written(uid))
        if what == "stopped":
            self.reclaimed.pop(uid, None)
            self.feed(uid)
            del self.reserves[uid]

    def _changed(self, what: str, uid: str, value: Any) -> None:
        """Change something of a workload that was submitted."""
        if uid not in self.objects:
            return
        status = self._written(uid) if uid in self.reserves else None
        if what == "priority":
            self.priorities[uid] = value
        elif what == "reclaim":
            self.reclaimed[uid] = max(value, self.reclaimed.get(uid, 0))
        elif what == "check":
            if status is not None:
                return
            status = WorkloadStatus(admission_checks=(AdmissionCheckState("x", value),))
        else:
            raise ValueError(f"no step is called {what!r}")
        self.feed(uid, status)

    def _reclaimable(self, uid: str) -> tuple[ReclaimablePod, ...]:
        number = self.reclaimed.get(uid, 0)
        sets = self.case["workloads"][uid].get("sets") or {"main": {}}
        return tuple(ReclaimablePod(one, number) for one in sets) if number else ()

    def _written(self, uid: str) -> WorkloadStatus:
        """Return the status of a reservation as it was written: when it was made, and whether it has to end."""
        work = self.twin.world.works[uid]
        minutes, seconds = divmod(int(work.reserved_at - START), 60)
        at = f"2026-01-01T00:{minutes:02}:{seconds:02}Z"
        told = [("QuotaReserved", "QuotaReserved"), ("Admitted", "Admitted")] + [
            ("Evicted", "Preempted")
        ] * work.evicted
        conditions = tuple(Condition(kind, "True", reason, "", at) for kind, reason in told)
        return WorkloadStatus(conditions=conditions, admission=self.reserves[uid].admission)
