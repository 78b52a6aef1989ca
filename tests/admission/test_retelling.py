"""What a waiting Workload says is true at rest, and bringing it up to date costs a bounded number of looks (IS-33).

GATELIFT_RETELLING_RUNS: how many random instances (default 150); GATELIFT_RETELLING_SEED: the first seed. A failure
names its seed.
"""

from __future__ import annotations

import os

import pytest

from gatelift_admission import texts
from gatelift_admission.engine import Engine
from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.queues.stale import STALE_MAX
from gatelift_admission.rounds.nomination import nominate
from gatelift_admission.told.retelling import BATCH, PAUSE
from gatelift_admission.values.model import TEXT_REFRESH, EngineSettings, Inadmissible
from support.twin.admission_objects import cluster_queue, engine_with, flavor, group, local_queue
from support.twin.cohort_engine import arrive
from support.twin.instances import instance
from support.twin.settling import Settling

RUNS = int(os.environ.get("GATELIFT_RETELLING_RUNS", "150"))
FIRST = int(os.environ.get("GATELIFT_RETELLING_SEED", "9000"))
PASSING = (texts.LOST_TO_ANOTHER, texts.OVERLAPPING, texts.DEFERRED)
SETTINGS = EngineSettings(text_refresh=TEXT_REFRESH)


def queues(*, strategy: str = "BestEffortFIFO", settings: EngineSettings = SETTINGS) -> Engine:
    """Return an engine with one queue of ten that preempts nobody."""
    made = cluster_queue("a", group(default={"cpu": "10"}), queueing_strategy=strategy)
    return engine_with(flavor("default"), made, local_queue("a", "a"), settings=settings)


def told(engine: Engine, now: float) -> dict[str, str]:
    """Return what is said once nothing is left to do at `now`."""
    found: dict[str, str] = {}
    for _ in range(100):
        result = engine.cycle(now)
        found.update((one.uid, one.message) for one in result.decisions if isinstance(one, Inadmissible))
        if not result.more:
            return found
    raise AssertionError("always more")


def two_hold(engine: Engine) -> None:
    """Let two hold nine of ten."""
    arrive(engine, "a-four", 4, 0.0, priority=9)
    arrive(engine, "a-five", 5, 0.0, priority=9)
    told(engine, 0.0)


def test_is_33_a_release_that_is_too_small_to_wake_is_seen_in_the_figures_once_the_tree_rests() -> None:
    engine = queues()
    two_hold(engine)
    arrive(engine, "a-waits", 10, 1.0)
    assert "9 more needed" in told(engine, 1.0)["a-waits"]
    engine.release("a-four", 10.0)
    assert told(engine, 10.0) == {}
    assert engine.next_deadline() == 10.0 + TEXT_REFRESH
    assert "5 more needed" in told(engine, 10.0 + TEXT_REFRESH)["a-waits"]
    assert engine.next_deadline() is None


def test_is_33_who_is_let_in_elsewhere_is_seen_in_the_figures() -> None:
    engine = queues()
    two_hold(engine)
    arrive(engine, "a-waits", 10, 1.0)
    told(engine, 1.0)
    arrive(engine, "a-one", 1, 2.0)
    told(engine, 2.0)
    assert "10 more needed" in told(engine, 2.0 + TEXT_REFRESH)["a-waits"]


def test_is_33_a_tree_that_never_rests_is_gone_through_once_a_minute() -> None:
    engine = queues()
    two_hold(engine)
    arrive(engine, "a-waits", 10, 1.0)
    told(engine, 1.0)
    told(engine, 1.0 + TEXT_REFRESH)
    engine.release("a-four", 10.0)
    for number in range(int(STALE_MAX)):
        arrive(engine, f"a-{number}", 20 + number, 10.0 + number)
        assert "a-waits" not in told(engine, 10.0 + number)
    assert "5 more needed" in told(engine, 10.0 + STALE_MAX)["a-waits"]


def test_is_33_who_would_fit_behind_a_strict_head_waits_for_its_turn_and_says_so() -> None:
    engine = queues(strategy="StrictFIFO")
    two_hold(engine)
    arrive(engine, "a-small", 4, 1.0)
    assert "3 more needed" in told(engine, 1.0)["a-small"]
    arrive(engine, "a-large", 10, 2.0, priority=5)
    told(engine, 2.0)
    engine.release("a-four", 10.0)
    assert told(engine, 10.0 + TEXT_REFRESH)["a-small"] == texts.WAITING


def test_is_33_without_the_setting_no_moment_is_waited_for() -> None:
    engine = queues(settings=EngineSettings())
    two_hold(engine)
    arrive(engine, "a-waits", 10, 1.0)
    told(engine, 1.0)
    engine.flavor_changed(flavor("other"))
    told(engine, 2.0)
    assert engine.next_deadline() is None


def test_is_33_many_texts_are_brought_up_to_date_in_batches() -> None:
    engine, many = queues(), 5 * BATCH
    two_hold(engine)
    for number in range(many):
        arrive(engine, f"a-{number:03}", f"{8000 + number}m", 1.0)
    told(engine, 1.0)
    told(engine, 1.0 + TEXT_REFRESH)
    for second in range(4, 20):
        told(engine, float(second))
    engine.release("a-five", 20.0)
    now: float = 20.0 + TEXT_REFRESH
    sizes = []
    told(engine, 20.0)
    while True:
        sizes.append(len(told(engine, now)))
        due = engine.next_deadline()
        if due is None:
            break
        assert due == pytest.approx(now + PAUSE)
        now = due
    assert max(sizes) <= BATCH
    assert sum(sizes) == many


def test_is_33_after_a_restart_what_the_object_says_behind_a_strict_head_is_brought_up_to_date() -> None:
    engine = queues(strategy="StrictFIFO")
    two_hold(engine)
    arrive(engine, "a-small", 4, 1.0)
    arrive(engine, "a-large", 10, 1.0, priority=5)
    entry = engine.state.entries["a-small"]
    entry.told = texts.WAITING_FOR_QUOTA, "9 more needed"
    told(engine, 1.0)
    assert "3 more needed" in told(engine, 1.0 + TEXT_REFRESH)["a-small"]


@pytest.mark.timeout(max(240, RUNS))
def test_is_33_at_rest_every_waiting_workload_says_what_a_fresh_evaluation_would_say() -> None:
    for seed in range(FIRST, FIRST + RUNS):
        world = Settling(instance(seed), text_refresh=TEXT_REFRESH)
        world.play()
        state = world.fast.state
        waiting = [one for one in state.entries.values() if one.phase is Phase.PENDING and one.queue]
        found = [text for one in waiting for text in untrue(world, one)]
        assert not found, f"seed {seed}: {found}"


def untrue(world: Settling, entry: Entry) -> list[str]:
    """Return what a workload that waits says, with what a fresh evaluation would say, if that is something else."""
    state, said = world.fast.state, world.told.get(entry.uid)
    queue = state.queues[entry.queue]
    aside = entry.uid in queue.pending.aside or queue.pending.bars(entry) or not queue.admits
    if said is None or said[0] == texts.PENDING_EVALUATION or said[1] == texts.BYPASSED or aside:
        return []
    plan = nominate(state, entry, queue)
    fresh = plan.assignment.reason, plan.assignment.message
    if plan.possible and said[1] in PASSING:
        return []
    if plan.targets and queue.pending.blocked is entry:
        fresh = texts.WAITING_FOR_PREEMPTED, texts.pending_preemption(fresh[1], len(plan.targets))
    return [] if said == fresh else [f"{entry.uid} says {said}, {fresh} is true"]
