"""From whom it is kept what came free of a queue's own quota a moment ago, and for how long."""

from __future__ import annotations

from gatelift_admission.engine import Engine
from gatelift_admission.quota.nodes import Quota, TreeNode
from gatelift_admission.values.model import EngineSettings
from gatelift_admission.waking.kept_quota import AMOUNTS_MAX, PARTS, KeptQuota
from support.twin.cohort_engine import arrive, cohort_engine, moves

CELL = ("default", "cpu")


def queue(name: str, nominal: int, used: int = 0) -> TreeNode:
    """Return a queue of a tree."""
    return TreeNode(name, is_queue=True, quotas={CELL: Quota(nominal=nominal)}, root="tree", usage={CELL: used})


def test_it_is_kept_from_lower_priorities_of_the_queue_and_from_borrowers_of_no_higher_one() -> None:
    found, mine, other = KeptQuota(), queue("mine", 10), queue("other", 10)
    found.released(mine, {CELL: 4}, 5, 1.0, 1.0)
    assert [found.own(mine, CELL, priority, 0.5) for priority in (4, 5, 6)] == [4, 0, 0]
    assert [found.all(other, CELL, priority, 0.5) for priority in (4, 5, 6)] == [4, 4, 0]
    assert [found.own(other, CELL, priority, 0.5) for priority in (4, 5, 6)] == [0, 0, 0]


def test_what_the_queue_has_in_use_again_is_not_kept_and_neither_is_what_was_borrowed() -> None:
    found, mine = KeptQuota(), queue("mine", 10, used=7)
    found.released(mine, {CELL: 4}, 5, 1.0, 1.0)
    assert found.own(mine, CELL, 1, 0.5) == 3
    found.charged(mine, {CELL: 2})
    assert found.own(mine, CELL, 1, 0.5) == 2
    found.charged(mine, {CELL: 9})
    assert found.own(mine, CELL, 1, 0.5) == 0
    borrower = queue("borrower", 10, used=12)
    found.released(borrower, {CELL: 4}, 5, 1.0, 1.0)
    assert found.own(borrower, CELL, 1, 0.5) == 0


def test_a_steady_exchange_of_workloads_keeps_no_idle_quota() -> None:
    found, mine = KeptQuota(), queue("mine", 1000, used=200)
    for number in range(100):
        found.released(mine, {CELL: 20}, 5, number * 0.01, 1.0)
        found.charged(mine, {CELL: 20})
    assert found.own(mine, CELL, 1, 0.0) == 0


def test_it_ends_a_period_later_however_much_comes_free_meanwhile() -> None:
    found, mine = KeptQuota(), queue("mine", 10_000)
    for number in range(200):
        found.released(mine, {CELL: 1}, 5, number * 0.01, 1.0)
    kept = found.own(mine, CELL, 1, 1.99 - 1.0)
    assert 100 - 100 / PARTS - 1 <= kept <= 100
    assert found.expire("tree", 0.99) is not None
    assert found.expire("tree", 1.99) is None
    assert not found.roots


def test_how_much_is_told_apart_is_limited() -> None:
    found, mine = KeptQuota(), queue("mine", 10_000)
    for number in range(1000):
        found.released(mine, {CELL: 1}, number, 0.0, 1.0)
    (amounts,) = found.roots["tree"].values()
    assert len(amounts) == AMOUNTS_MAX
    assert found.own(mine, CELL, 0, -1.0) == 999, "what is kept is as much as was given back by the others"


SETTINGS = EngineSettings(wake_period=0.2, wake_period_max=1.0)


def until(engine: Engine, begin: float, end: float) -> list[tuple[float, str]]:
    """Cycle whenever something is due; return who was let in or has to leave, and when."""
    found = []
    now = begin
    while now <= end:
        found += [(round(now, 3), one) for one in moves(engine, now)]
        due = engine.next_deadline()
        now = end + 1.0 if due is None else max(due, now + 0.001)
    return found


def test_an_idle_queue_lets_a_lone_workload_in_at_once_whatever_others_have_given_back() -> None:
    engine = cohort_engine(SETTINGS, "a", "b")
    arrive(engine, "a-high", 4, 0.0, 5)
    assert moves(engine, 0.0) == ["a-high"]
    engine.state.wakes.preempted_soon("cohort/all", engine.state.settings)
    engine.release("a-high")
    arrive(engine, "b-low", 4, 0.1)
    assert moves(engine, 0.1) == ["b-low"]


def test_each_end_is_kept_from_lower_ones_for_a_period_though_others_end_all_the_time() -> None:
    engine = cohort_engine(SETTINGS, "a", "b")
    arrive(engine, "a-high", 4, 0.0, 5)
    arrive(engine, "b-high", 4, 0.0, 5)
    assert moves(engine, 0.0) == ["a-high", "b-high"]
    arrive(engine, "a-low", 4, 0.0)
    arrive(engine, "b-low", 4, 0.0)
    assert moves(engine, 0.0) == []
    engine.release("a-high")
    assert until(engine, 0.0, 0.15) == []
    engine.release("b-high", 0.15)
    assert until(engine, 0.15, 0.3) == [(0.2, "a-low")], "what b has just given back is kept for b's next one"
    arrive(engine, "b-next", 4, 0.3, 5)
    assert moves(engine, 0.3) == ["b-next"], "nobody has to leave for it"
    engine.release("b-next", 0.3)
    assert until(engine, 0.3, 1.0) == [(0.5, "b-low")]


def test_who_gave_back_less_is_followed_by_its_equals_at_once_while_more_is_kept_elsewhere() -> None:
    engine = cohort_engine(SETTINGS, "a", "b")
    arrive(engine, "a-high", 4, 0.0, 5)
    arrive(engine, "b-low", 4, 0.0)
    assert moves(engine, 0.0) == ["a-high", "b-low"]
    arrive(engine, "a-later", 4, 0.0)
    arrive(engine, "b-later", 4, 0.0)
    assert moves(engine, 0.0) == []
    engine.release("a-high")
    engine.release("b-low")
    assert until(engine, 0.0, 0.1) == [(0.005, "b-later")]
    assert until(engine, 0.1, 1.0) == [(0.2, "a-later")]


def test_after_an_early_preemption_who_arrives_does_not_borrow_what_its_owner_has_just_given_back() -> None:
    engine = cohort_engine(SETTINGS, "a", "b")
    arrive(engine, "a-one", 4, 0.0, 5)
    arrive(engine, "b-one", 4, 0.0, 5)
    assert moves(engine, 0.0) == ["a-one", "b-one"]
    engine.state.wakes.preempted_soon("cohort/all", engine.state.settings)
    engine.release("a-one")
    arrive(engine, "b-two", 4, 0.1, 5)
    assert moves(engine, 0.1) == []
    arrive(engine, "a-two", 4, 0.15, 5)
    assert moves(engine, 0.15) == ["a-two"]
    assert until(engine, 0.15, 2.0) == []
    engine.release("a-two", 2.0)
    assert [one for _, one in until(engine, 2.0, 5.0)] == ["b-two"], "if nobody comes for it, it is lent"
