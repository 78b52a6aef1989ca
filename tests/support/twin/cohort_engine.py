"""An engine with queues of one cohort that preempt each other, and short words for what it decides."""

from __future__ import annotations

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import EngineSettings, Inadmissible, Preempt, Reserve
from gatelift_kube.objects.kueue import Preemption
from support.twin.admission_objects import (
    cluster_queue,
    engine_with,
    flavor,
    group,
    local_queue,
    pod_set,
    rest,
    workload,
)

POLICY = Preemption(within_cluster_queue="LowerPriority", reclaim_within_cohort="Any")
COHORT = "all"
_WORDS = {Reserve: "", Preempt: "!", Inadmissible: "?"}


def cohort_engine(settings: EngineSettings, *names: str, cpu: str = "4") -> Engine:
    """Return an engine with queues of `cpu` in one cohort, that preempt lower priorities and reclaim from anybody."""
    queues = [cluster_queue(name, group(default={"cpu": cpu}), cohort_name=COHORT, preemption=POLICY) for name in names]
    return engine_with(flavor("default"), *queues, *(local_queue(name, name) for name in names), settings=settings)


def arrive(engine: Engine, name: str, cpu: str | int, now: float, priority: int = 0, created: int = 0) -> None:
    """Let a workload arrive in the queue that its name begins with."""
    asked, queue = pod_set(requests={"cpu": cpu}), name.split("-", maxsplit=1)[0]
    engine.workload_changed(workload(name, asked, queue=queue, priority=priority, created=created), now)


def outcome(engine: Engine, now: float, budget: int = 100) -> list[str]:
    """Cycle until nothing is left to decide at `now`; return who was let in, with ! who has to leave, ? who is told."""
    found = rest(engine, now, budget)
    return sorted(_WORDS[type(one)] + one.uid for one in found if type(one) in _WORDS)


def moves(engine: Engine, now: float) -> list[str]:
    """Cycle like `outcome`; return only who was let in, and with ! who has to leave."""
    return [one for one in outcome(engine, now) if not one.startswith("?")]
