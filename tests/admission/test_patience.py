"""Preemptors that wait for a moment where others end by themselves all the time, before anybody is asked to leave."""

from __future__ import annotations

from gatelift_admission.engine import Engine
from gatelift_admission.model import Inadmissible, Preempt, Reserve, Settings
from gatelift_kube.objects.kueue import Preemption
from support.admission_objects import cluster_queue, flavor, group, local_queue, pod_set, workload

MOMENT = 1.0
POLICY = Preemption(within_cluster_queue="LowerPriority", reclaim_within_cohort="Any")


def engine_of(*names: str, moment: float = MOMENT) -> Engine:
    """Return an engine with queues of 4 cpu in one cohort, that preempt lower priorities and reclaim from anybody."""
    engine = Engine(Settings(preemption_patience=moment))
    engine.namespace_changed("ns", {})
    engine.flavor_changed(flavor("default"))
    for name in names:
        made = cluster_queue(name, group(default={"cpu": "4"}), cohort_name="all", preemption=POLICY)
        engine.cluster_queue_changed(made)
        engine.local_queue_changed(local_queue(name, name))
    return engine


def add(engine: Engine, name: str, cpu: int, now: float, priority: int = 0) -> None:
    """Let a workload arrive in the queue that its name begins with."""
    asked = pod_set(requests={"cpu": str(cpu)})
    engine.workload_changed(workload(name, asked, queue=name.split("-", maxsplit=1)[0], priority=priority), now)


def rest(engine: Engine, now: float) -> list[str]:
    """Cycle until nothing is left to decide at `now`; return who was let in, with ! who has to leave, ? who is told."""
    found: list[str] = []
    while True:
        result = engine.cycle(now)
        for one in result.decisions:
            if isinstance(one, Reserve):
                found.append(one.uid)
            elif isinstance(one, Preempt):
                found.append("!" + one.uid)
            elif isinstance(one, Inadmissible):
                found.append("?" + one.uid)
        if not result.more:
            return sorted(found)


def busy(*names: str, moment: float = MOMENT) -> Engine:
    """Return an engine whose first queue is full of four low ones; another one of it has ended at 10.0 s."""
    engine = engine_of(*names, moment=moment)
    for number in range(5):
        add(engine, f"{names[0]}-low{number}", 1, 0.0)
    rest(engine, 0.0)
    rest(engine, 5.0)
    engine.release(f"{names[0]}-low0", 10.0)
    rest(engine, 10.0)
    return engine


def test_a_preemptor_takes_what_comes_free_by_itself_within_a_moment_and_nobody_has_to_leave() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 2, 10.5, priority=1)
    assert rest(engine, 10.5) == []
    engine.release("cq-low1", 10.7)
    assert rest(engine, 10.7) == []
    engine.release("cq-low2", 10.9)
    assert rest(engine, 10.9) == ["cq-high"]


def test_it_preempts_a_moment_after_it_was_found_that_somebody_has_to_leave() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 2, 10.5, priority=1)
    rest(engine, 10.5)
    engine.release("cq-low1", 11.0)
    assert rest(engine, 11.0) == []
    assert engine.next_deadline() == 11.5
    assert rest(engine, 11.5) == ["!cq-low4", "?cq-high"]


def test_it_preempts_at_once_where_nothing_has_ended_for_a_moment() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 1, 11.0, priority=1)
    assert rest(engine, 11.0) == ["!cq-low4", "?cq-high"]


def test_it_preempts_at_once_where_nobody_is_to_wait() -> None:
    engine = busy("cq", moment=0.0)
    add(engine, "cq-high", 1, 10.1, priority=1)
    assert rest(engine, 10.1) == ["!cq-low4", "?cq-high"]


def test_that_somebody_had_to_leave_is_no_reason_to_wait() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 1, 20.0, priority=1)
    assert rest(engine, 20.0) == ["!cq-low4", "?cq-high"]
    engine.release("cq-low4", 20.1)
    assert rest(engine, 20.1) == ["cq-high"]
    add(engine, "cq-next", 1, 20.2, priority=1)
    assert rest(engine, 20.2) == ["!cq-low1", "?cq-next"]


def test_while_it_waits_nobody_of_less_priority_takes_what_comes_free() -> None:
    engine = busy("cq", "other")
    add(engine, "other-all", 4, 10.1)
    assert rest(engine, 10.1) == ["other-all"]
    add(engine, "cq-wide", 2, 10.2, priority=1)
    assert rest(engine, 10.2) == []
    for name in ("cq-small", "other-small"):
        add(engine, name, 1, 10.3)
    assert set(rest(engine, 10.3)) <= {"?other-small"}, "told at most that it does not fit"
    engine.release("cq-low1", 10.4)
    assert set(rest(engine, 10.4)) <= {"?other-small"}
    engine.release("cq-low2", 10.5)
    assert "cq-wide" in rest(engine, 10.5)
    assert not engine.charged("cq-small")
    assert not engine.charged("other-small")


def test_a_moment_does_not_begin_again_when_the_structure_changes() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 2, 10.5, priority=1)
    rest(engine, 10.5)
    engine.flavor_changed(flavor("another"))
    engine.release("cq-low1", 11.2)
    assert rest(engine, 11.2) == []
    assert rest(engine, 11.5) == ["!cq-low4", "?cq-high"]


def test_who_leaves_the_queue_and_comes_back_waits_for_a_moment_of_its_own() -> None:
    engine = busy("cq")
    add(engine, "cq-high", 2, 10.5, priority=1)
    rest(engine, 10.5)
    engine.workload_removed("cq-high")
    engine.release("cq-low1", 11.0)
    rest(engine, 11.0)
    add(engine, "cq-high", 2, 11.1, priority=1)
    assert rest(engine, 11.1) == []
    assert rest(engine, 11.5) == [], "the moment of the first one is over"
    assert rest(engine, 12.1) == ["!cq-low4", "?cq-high"]


def test_whom_it_would_preempt_is_not_searched_for_again_while_it_waits() -> None:
    engine = busy("cq", "other")
    add(engine, "other-all", 4, 10.1)
    rest(engine, 10.1)
    add(engine, "cq-high", 4, 10.5, priority=1)
    assert rest(engine, 10.5) == []
    before = engine.state.ensure().simulated
    for number in (1, 2, 3):
        engine.release(f"cq-low{number}", 10.5 + number / 10)
        rest(engine, 10.5 + number / 10)
    assert engine.state.ensure().simulated == before
    engine.release("cq-low4", 10.9)
    assert rest(engine, 10.9) == ["cq-high"]


def test_one_with_a_choice_of_flavors_takes_the_one_that_comes_free() -> None:
    engine = engine_of()
    engine.flavor_changed(flavor("spot"))
    both = group(default={"cpu": "2"}, spot={"cpu": "1"})
    engine.cluster_queue_changed(cluster_queue("cq", both, cohort_name="all", preemption=POLICY))
    engine.local_queue_changed(local_queue("cq", "cq"))
    for number in range(3):
        add(engine, f"cq-low{number}", 1, 0.0)
        rest(engine, 0.0)
    assert engine.charged("cq-low2") == {("spot", "cpu"): 1000}
    engine.release("cq-low0", 10.0)
    add(engine, "cq-again", 1, 10.0)
    assert rest(engine, 10.0) == ["cq-again"]
    add(engine, "cq-high", 1, 10.2, priority=1)
    assert rest(engine, 10.2) == []
    engine.release("cq-low2", 10.3)
    assert rest(engine, 10.3) == ["cq-high"]
    assert engine.charged("cq-high") == {("spot", "cpu"): 1000}


def test_two_that_would_have_the_same_ones_leave_wait_at_the_same_time() -> None:
    engine = busy("cq", "other")
    add(engine, "other-one", 3, 10.1)
    rest(engine, 10.1)
    for number in (5, 6):  # one more for cq's workloads, borrowed
        add(engine, f"cq-low{number}", 1, 10.1)
        rest(engine, 10.1)
    add(engine, "cq-high", 2, 10.2, priority=1)
    add(engine, "other-high", 2, 10.2, priority=1)
    assert not {"cq-high", "other-high"} & set(rest(engine, 10.2))
    assert not any("!" in one for one in rest(engine, 10.9))
    assert {one for one in rest(engine, 11.2) if one.startswith("?")} >= {"?cq-high", "?other-high"}
