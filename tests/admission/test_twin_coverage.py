"""What the random instances of the twin contain: each feature of admission often enough among those of `make test`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import support.twin.targets
from gatelift_admission.entries.entry import Entry
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.values.model import Preempt
from support.twin.admission_cases import Case
from support.twin.instances import instance
from support.twin.play import Both, Seen

INSTANCES = 500
PLAYED = 150
LEAST = 10
"""Instances in which a feature has to occur."""
CHANGES = ("priority", "reclaim", "check", "stop_local")


def _of_queue(spec: Case, case: Case) -> Iterator[str]:
    groups = spec["groups"]
    yield spec["strategy"]
    yield "several flavors" if any(len(one) > 1 for one in groups) else "one flavor"
    yield from ["several groups"] * (len(groups) > 1)
    yield from (f"limit: {one}" for one in ("borrow", "lend") if spec.get(one))
    if "fungibility" in spec:
        yield from (
            f"{kind}: {one}" for kind, one in zip(("borrow", "preempt", "prefer"), spec["fungibility"], strict=False)
        )
    policy = spec.get("preempt", {})
    yield from (f"{kind}: {policy.get(kind, 'Never')}" for kind in ("within", "reclaim"))
    borrow = policy.get("borrow", "Never")
    yield "borrowWithinCohort with threshold" if isinstance(borrow, list) else f"borrowWithinCohort: {borrow}"
    cohort, above = spec.get("cohort", ""), []
    while cohort:
        above.append(cohort)
        cohort = case["cohorts"].get(cohort, {}).get("parent", "")
    yield f"cohorts above a queue: {len(above)}"
    yield from ["admission checks"] * ("checks" in spec)


def features(case: Case) -> set[str]:
    """Return what occurs in an instance."""
    found = {one for spec in case["queues"].values() for one in _of_queue(spec, case)}
    weights = [one.get("weight", 1) for one in [*case["queues"].values(), *case["cohorts"].values()]]
    if "fair" in case:
        found |= {f"fair sharing: {case['fair']}", *(["weight 0"] if 0 in weights else [])}
    sets = [one for job in case["workloads"].values() for one in job["sets"].values()]
    found |= {"partial admission"} if any(one.get("min_count", 9) < one["count"] for one in sets) else set()
    found |= {"several pod sets"} if any(len(job["sets"]) > 1 for job in case["workloads"].values()) else set()
    found |= {name for one in sets for name in ("selector", "affinity", "tolerations") if name in one}
    for step in case["steps"]:
        if isinstance(step, dict):
            ((what, value),) = step.items()
            found.add(f"{what}: {value[1]}" if what in ("stop", "stop_local", "check") else what)
    return found


WANTED = {
    "StrictFIFO", "BestEffortFIFO", "several flavors", "several groups", "limit: borrow", "limit: lend",
    "borrow: MayStopSearch", "borrow: TryNextFlavor", "preempt: MayStopSearch", "preempt: TryNextFlavor",
    "prefer: BorrowingOverPreemption", "prefer: PreemptionOverBorrowing",
    "within: Never", "within: LowerPriority", "within: LowerOrNewerEqualPriority",
    "reclaim: Never", "reclaim: LowerPriority", "reclaim: Any",
    "borrowWithinCohort: Never", "borrowWithinCohort: LowerPriority", "borrowWithinCohort with threshold",
    "cohorts above a queue: 0", "cohorts above a queue: 1", "cohorts above a queue: 2", "cohorts above a queue: 3",
    "fair sharing: both", "fair sharing: final", "fair sharing: initial", "weight 0",
    "partial admission", "several pod sets", "selector", "affinity", "tolerations", "admission checks",
    "stop: Hold", "stop: HoldAndDrain", "stop_local: Hold", "check: Retry", "check: Rejected",
    "priority", "reclaim", "submit", "finish", "confirm", "stopped", "change",
}  # fmt: skip


def test_every_feature_occurs_among_the_instances() -> None:
    found: Counter[str] = Counter()
    for seed in range(1, INSTANCES + 1):
        found.update(features(instance(seed)))
    assert {name: found[name] for name in WANTED if found[name] < LEAST} == {}


@pytest.mark.interpreted
def test_every_way_to_preempt_is_taken_and_strict_queues_wait_behind_failed_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: Counter[str] = Counter()
    same, variant, bar = Both._same_decisions, support.twin.targets._variant, PendingQueue.bar

    def counted(both: Both, seen: Seen, outcome: Any) -> None:
        found.update(one.reason for one in seen.decisions if isinstance(one, Preempt))
        same(both, seen, outcome)

    def advantage(*arguments: Any) -> Any:
        found["hierarchical advantage"] += arguments[4]
        return variant(*arguments)

    def barred(pending: PendingQueue, entry: Entry) -> None:
        found["barred"] += 1
        bar(pending, entry)

    monkeypatch.setattr(PendingQueue, "bar", barred)
    monkeypatch.setattr(Both, "_same_decisions", counted)
    monkeypatch.setattr(support.twin.targets, "_variant", advantage)
    for seed in range(1, PLAYED + 1):
        Both(instance(seed)).play()
    reasons = ("InClusterQueue", "InCohortReclamation", "InCohortReclaimWhileBorrowing", "InCohortFairSharing")
    assert min(found[one] for one in (*reasons, "hierarchical advantage", "barred")) > 0
