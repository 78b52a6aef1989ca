"""Preemptors that wait for a moment where others end by themselves all the time, before anybody is asked to leave."""

from __future__ import annotations

import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import EngineSettings
from support.twin.admission_objects import cluster_queue, flavor, group, local_queue, pod_set, reserved_status, workload
from support.twin.cohort_engine import COHORT, POLICY, arrive, cohort_engine, outcome

MOMENT = 1.0


def busy(*names: str, moment: float = MOMENT) -> Engine:
    """Return an engine whose first queue is full of four low ones; another one of it has ended at 10.0 s."""
    engine = cohort_engine(EngineSettings(preemption_patience=moment), *names)
    for number in range(5):
        arrive(engine, f"{names[0]}-low{number}", 1, 0.0)
    outcome(engine, 0.0)
    outcome(engine, 5.0)
    engine.release(f"{names[0]}-low0", 10.0)
    outcome(engine, 10.0)
    return engine


def test_a_preemptor_takes_what_comes_free_by_itself_within_a_moment_and_nobody_has_to_leave() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 2, 10.5, priority=1)
    assert outcome(engine, 10.5) == []
    engine.release("cq-low1", 10.7)
    assert outcome(engine, 10.7) == []
    engine.release("cq-low2", 10.9)
    assert outcome(engine, 10.9) == ["cq-high"]


def test_it_preempts_a_moment_after_it_was_found_that_somebody_has_to_leave() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 2, 10.5, priority=1)
    outcome(engine, 10.5)
    engine.release("cq-low1", 11.0)
    assert outcome(engine, 11.0) == []
    assert engine.next_deadline() == 11.5
    assert outcome(engine, 11.5) == ["!cq-low4", "?cq-high"]


def test_it_preempts_at_once_where_nothing_has_ended_for_a_moment() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 1, 11.0, priority=1)
    assert outcome(engine, 11.0) == ["!cq-low4", "?cq-high"]


def test_it_preempts_at_once_where_nobody_is_to_wait() -> None:
    engine = busy("cq", moment=0.0)
    arrive(engine, "cq-high", 1, 10.1, priority=1)
    assert outcome(engine, 10.1) == ["!cq-low4", "?cq-high"]


def test_that_somebody_had_to_leave_is_no_reason_to_wait() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 1, 20.0, priority=1)
    assert outcome(engine, 20.0) == ["!cq-low4", "?cq-high"]
    engine.release("cq-low4", 20.1)
    assert outcome(engine, 20.1) == ["cq-high"]
    arrive(engine, "cq-next", 1, 20.2, priority=1)
    assert outcome(engine, 20.2) == ["!cq-low1", "?cq-next"]


def test_while_it_waits_nobody_of_less_priority_takes_what_comes_free() -> None:
    engine = busy("cq", "other")
    arrive(engine, "other-all", 4, 10.1)
    assert outcome(engine, 10.1) == ["other-all"]
    arrive(engine, "cq-wide", 2, 10.2, priority=1)
    assert outcome(engine, 10.2) == []
    for name in ("cq-small", "other-small"):
        arrive(engine, name, 1, 10.3)
    assert set(outcome(engine, 10.3)) <= {"?other-small"}, "told at most that it does not fit"
    engine.release("cq-low1", 10.4)
    assert set(outcome(engine, 10.4)) <= {"?other-small"}
    engine.release("cq-low2", 10.5)
    assert "cq-wide" in outcome(engine, 10.5)
    assert not engine.charged("cq-small")
    assert not engine.charged("other-small")


def test_a_moment_does_not_begin_again_when_the_structure_changes() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 2, 10.5, priority=1)
    outcome(engine, 10.5)
    engine.flavor_changed(flavor("another"))
    engine.release("cq-low1", 11.2)
    assert outcome(engine, 11.2) == []
    assert outcome(engine, 11.5) == ["!cq-low4", "?cq-high"]


def test_who_leaves_the_queue_and_comes_back_waits_for_a_moment_of_its_own() -> None:
    engine = busy("cq")
    arrive(engine, "cq-high", 2, 10.5, priority=1)
    outcome(engine, 10.5)
    engine.workload_removed("cq-high")
    engine.release("cq-low1", 11.0)
    outcome(engine, 11.0)
    arrive(engine, "cq-high", 2, 11.1, priority=1)
    assert outcome(engine, 11.1) == []
    assert outcome(engine, 11.5) == [], "the moment of the first one is over"
    assert outcome(engine, 12.1) == ["!cq-low4", "?cq-high"]


def test_whom_it_would_preempt_is_not_searched_for_again_while_it_waits() -> None:
    engine = busy("cq", "other")
    arrive(engine, "other-all", 4, 10.1)
    outcome(engine, 10.1)
    arrive(engine, "cq-high", 4, 10.5, priority=1)
    assert outcome(engine, 10.5) == []
    before = engine.state.ensure().simulated
    for number in (1, 2, 3):
        engine.release(f"cq-low{number}", 10.5 + number / 10)
        outcome(engine, 10.5 + number / 10)
    assert engine.state.ensure().simulated == before
    engine.release("cq-low4", 10.9)
    assert outcome(engine, 10.9) == ["cq-high"]


def test_one_with_a_choice_of_flavors_takes_the_one_that_comes_free() -> None:
    engine = cohort_engine(EngineSettings(preemption_patience=MOMENT))
    engine.flavor_changed(flavor("spot"))
    both = group(default={"cpu": "2"}, spot={"cpu": "1"})
    engine.cluster_queue_changed(cluster_queue("cq", both, cohort_name="all", preemption=POLICY))
    engine.local_queue_changed(local_queue("cq", "cq"))
    for number in range(3):
        arrive(engine, f"cq-low{number}", 1, 0.0)
        outcome(engine, 0.0)
    assert engine.charged("cq-low2") == {("spot", "cpu"): 1000}
    engine.release("cq-low0", 10.0)
    arrive(engine, "cq-again", 1, 10.0)
    assert outcome(engine, 10.0) == ["cq-again"]
    arrive(engine, "cq-high", 1, 10.2, priority=1)
    assert outcome(engine, 10.2) == []
    engine.release("cq-low2", 10.3)
    assert outcome(engine, 10.3) == ["cq-high"]
    assert engine.charged("cq-high") == {("spot", "cpu"): 1000}


def test_two_that_would_have_the_same_ones_leave_wait_at_the_same_time() -> None:
    engine = busy("cq", "other")
    arrive(engine, "other-one", 3, 10.1)
    outcome(engine, 10.1)
    for number in (5, 6):  # one more for cq's workloads, borrowed
        arrive(engine, f"cq-low{number}", 1, 10.1)
        outcome(engine, 10.1)
    arrive(engine, "cq-high", 2, 10.2, priority=1)
    arrive(engine, "other-high", 2, 10.2, priority=1)
    assert not {"cq-high", "other-high"} & set(outcome(engine, 10.2))
    assert not any("!" in one for one in outcome(engine, 10.9))
    assert outcome(engine, 11.2) == ["!cq-low1", "!cq-low5", "!other-one", "?cq-high", "?other-high"]


def test_a_round_that_was_cut_while_its_moment_ended_does_not_let_it_wait_for_ever() -> None:
    engine = busy("cq", "other")
    arrive(engine, "other-all", 4, 10.1)
    outcome(engine, 10.1)
    arrive(engine, "cq-high", 3, 10.2, priority=1)
    assert outcome(engine, 10.2) == []
    engine.release("cq-low1", 11.1)
    cut = engine.cycle(11.1, 1)
    assert cut.more
    assert cut.nominations == 1
    assert outcome(engine, 11.3) == ["!cq-low2", "!cq-low3", "?cq-high"]


@pytest.mark.parametrize("flavors", [("default",), ("default", "spare")])
def test_who_lost_to_the_room_of_one_that_waits_has_it_once_that_one_finds_nobody_to_preempt(
    flavors: tuple[str, ...],
) -> None:
    engine = busy("cq", "other")
    engine.flavor_changed(flavor("spare"))
    quotas = group(**{name: {"cpu": "4" if name == "default" else "0"} for name in flavors})
    engine.cluster_queue_changed(cluster_queue("other", quotas, cohort_name=COHORT, preemption=POLICY))
    arrive(engine, "other-all", 4, 10.1)
    outcome(engine, 10.1)
    engine.release("cq-low4", 10.15)
    arrive(engine, "cq-wide", 2, 10.2, priority=1)
    arrive(engine, "other-small", 1, 10.3)
    assert outcome(engine, 10.3) == ["?other-small"], "the room that is there is kept"
    for uid in ("cq-low1", "cq-low2", "cq-low3"):
        granted = reserved_status(engine.state.entries[uid].grant.written)
        asked = pod_set(requests={"cpu": 1})
        engine.workload_changed(workload(uid, asked, queue="cq", priority=5, version=2, status=granted), 10.4)
    assert outcome(engine, 10.4) == []
    assert outcome(engine, 11.3) == ["?cq-wide", "other-small"]
