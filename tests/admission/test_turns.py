"""With the shipped turns nobody of a queue is let in before one of it who is worth more and fits as well.

GATELIFT_TURNS_RUNS: how many random instances (default 1000); GATELIFT_TURNS_SEED: the first seed.
"""

from __future__ import annotations

import os

import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import PREEMPTION_PATIENCE, WAKE_PERIOD, WAKE_PERIOD_MAX, EngineSettings
from support.twin.admission_objects import pod_set, workload
from support.twin.cohort_engine import arrive, cohort_engine, outcome
from support.twin.inversions import Turns, crowded, inversions

SHIPPED = EngineSettings(
    wake_period=WAKE_PERIOD, wake_period_max=WAKE_PERIOD_MAX, preemption_patience=PREEMPTION_PATIENCE
)

RUNS = int(os.environ.get("GATELIFT_TURNS_RUNS", "1000"))
FIRST = int(os.environ.get("GATELIFT_TURNS_SEED", "0"))
PASSED = (276, 77006457, 77008217, 77012003, 77012194, 77017170, 77026420, 77027587)
"""Seeds of instances in which who stood behind the head, or came back, was let in before a parked one worth more."""
HEADS = (77007801,)


def full() -> Engine:
    """Return an engine of two queues that are full, in one of which a wide workload waits that has to borrow."""
    engine = cohort_engine(SHIPPED, "a", "b")
    for name in ("a", "b"):
        arrive(engine, f"{name}-holds", 4, 0.0, priority=9)
    assert outcome(engine, 0.0) == ["a-holds", "b-holds"]
    arrive(engine, "a-high", 6, 10.0, priority=4)
    return engine


def let_in(engine: Engine, *holders: str) -> list[str]:
    """Return who is let in once all holders have ended, in order, until everything is at rest."""
    for name in holders or ("a-holds", "b-holds"):
        engine.release(name, 20.0)
    found, now = [], 20.0
    for _ in range(20):
        found += outcome(engine, now)
        due = engine.next_deadline()
        if due is None:
            break
        now = due
    return [one for one in found if not one.startswith("?")]


def test_is_38_who_is_worth_more_and_borrows_goes_before_who_stays_within_the_quota_of_the_same_queue() -> None:
    engine = full()
    arrive(engine, "a-low", 3, 10.0)
    outcome(engine, 10.0)
    outcome(engine, 12.0)
    assert let_in(engine) == ["a-high"]


def test_is_38_who_comes_just_after_something_came_free_waits_for_its_turn_behind_who_is_worth_more_and_fits() -> None:
    engine = full()
    outcome(engine, 10.0)
    outcome(engine, 12.0)
    arrive(engine, "a-low", 3, 20.0)
    assert let_in(engine) == ["a-high"]


def test_is_38_who_stood_behind_the_head_does_not_pass_a_parked_one_that_is_worth_more_and_fits() -> None:
    engine = cohort_engine(SHIPPED, "a", "b")
    arrive(engine, "b-holds", 8, 0.0, priority=9)
    assert outcome(engine, 0.0) == ["b-holds"]
    arrive(engine, "a-high", 6, 10.0, priority=4)
    arrive(engine, "a-head", 4, 10.0, priority=3)
    arrive(engine, "a-low", 3, 10.0)
    assert "!b-holds" in outcome(engine, 10.0)
    engine.workload_removed("a-head")
    assert let_in(engine, "b-holds") == ["a-high"]


@pytest.mark.parametrize("count", [3, 6])
def test_is_37_who_may_run_with_fewer_pods_is_not_let_in_before_who_is_worth_more(count: int) -> None:
    engine = full()
    asked = pod_set(count=count, requests={"cpu": 1}, min_count=1)
    engine.workload_changed(workload("a-low", asked, queue="a", priority=0), 10.0)
    outcome(engine, 10.0)
    outcome(engine, 12.0)
    assert let_in(engine) == ["a-high", "a-low"]
    assert sum(engine.charged("a-low").values()) == 2000


@pytest.mark.timeout(max(240, RUNS))
def test_is_37_and_is_38_at_rest_nobody_passes_who_is_worth_more_but_where_he_does_in_kueue() -> None:
    for seed in range(FIRST, FIRST + RUNS):
        found = inversions(crowded(seed))
        assert not found, f"seed {seed}: {sorted(found)} (came to rest, waits, was let in before it)"


@pytest.mark.parametrize("seed", PASSED)
def test_is_38_nobody_who_was_not_looked_at_passes_who_is_asleep_and_worth_more(seed: int) -> None:
    world = Turns(crowded(seed))
    world.play()
    assert not world.inversions


@pytest.mark.parametrize("seed", HEADS)
def test_is_38_for_whom_others_have_left_goes_first_as_in_kueue(seed: int) -> None:
    """A head of lower priority for which somebody was preempted passes a parked one that is worth more."""
    world = Turns(crowded(seed))
    world.play()
    assert world.inversions
    assert not inversions(crowded(seed))


def test_is_38_across_queues_who_was_not_looked_at_may_borrow_before_a_parked_one_that_is_worth_more() -> None:
    """The price that decision 12 names: w00 of another queue stood behind its head, and w04 has its turn after it."""
    case = crowded(88015404)
    assert inversions(case) == {(2, "w04", "w07")}
    case["workloads"].pop("w00")
    case["steps"] = [one for one in case["steps"] if not (isinstance(one, dict) and "w00" in one.values())]
    assert not inversions(case)
