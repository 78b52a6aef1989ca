"""When a release is offered to whom: pure timing, without queues."""

from __future__ import annotations

import pytest

from gatelift_admission.quota.nodes import Quota, TreeNode
from gatelift_admission.values.amounts import parse
from gatelift_admission.values.model import EngineSettings, Usage
from gatelift_admission.waking.timing import BANDS_MAX, SOON, Band, Wakes

CELL = ("default", "cpu")
TEN: Usage = {CELL: parse("10", "cpu")}
SETTINGS = EngineSettings(wake_period=0.2, wake_period_max=1.0)


def turns(wakes: Wakes, *waiting: int) -> list[Band]:
    """Return all turns of the tree, in order."""
    found = []
    while (turn := wakes.turn("tree", waiting)) is not None:
        found.append(turn[0])
    return found


def queue(name: str = "cq", root: str = "tree") -> TreeNode:
    """Return a queue of ten CPUs, all of them idle."""
    return TreeNode(name, is_queue=True, quotas={CELL: Quota(nominal=TEN[CELL])}, root=root)


def release(wakes: Wakes, node: TreeNode, level: int, now: float) -> None:
    period = wakes.period(node.root, SETTINGS)
    wakes.kept_quota.released(node, TEN, level, now, period)
    wakes.released(node.root, (CELL,), level, now, period)


def test_equals_and_better_come_soon_and_the_rest_a_period_later() -> None:
    wakes = Wakes()
    release(wakes, queue(), 5, 0.0)
    assert wakes.next_time() == SOON
    wakes.expire(SOON, SETTINGS)
    assert turns(wakes, 1, 5, 9) == [Band(9, None, within=True), Band(5, 9, within=True)]
    assert wakes.next_time() == 0.2
    wakes.expire(0.2, SETTINGS)
    assert turns(wakes, 1, 5) == [
        Band(5, None, within=True),
        Band(1, 5, within=True),
        Band(5, None, within=False),
        Band(1, 5, within=False),
    ]
    assert wakes.next_time() is None


def test_those_who_gave_back_the_least_say_who_is_looked_at_soon() -> None:
    wakes = Wakes()
    release(wakes, queue("a"), 5, 0.0)
    release(wakes, queue("b"), 1, 0.001)
    wakes.expire(SOON, SETTINGS)
    assert turns(wakes, 0, 1, 5) == [Band(5, None, within=True), Band(1, 5, within=True)]


def test_what_is_kept_when_all_have_their_turn_is_offered_again_once_it_is_not() -> None:
    wakes = Wakes()
    release(wakes, queue("a"), 5, 0.0)
    release(wakes, queue("b"), 5, 0.15)
    wakes.expire(0.2, SETTINGS)
    assert wakes.next_time() == 0.15 + 0.2
    wakes.expire(0.15 + 0.2, SETTINGS)
    assert wakes.next_time() is None


def test_many_priorities_share_the_last_turn() -> None:
    wakes = Wakes()
    release(wakes, queue(), 0, 0.0)
    wakes.expire(SOON, SETTINGS)
    found = turns(wakes, *range(100))
    assert len(found) == BANDS_MAX + 1
    assert found[-1].lowest == 0, "nobody is left out"


def test_who_arrives_waits_only_while_the_period_has_grown_and_something_is_kept() -> None:
    wakes = Wakes()
    release(wakes, queue(), 5, 0.0)
    assert not wakes.careful("tree", SETTINGS)
    wakes.preempted_soon("tree", SETTINGS)
    assert wakes.careful("tree", SETTINGS)
    assert not wakes.careful("other", SETTINGS)
    wakes.expire(1.0, SETTINGS)
    assert not wakes.careful("tree", SETTINGS)


def test_the_period_shrinks_by_time_not_by_turns() -> None:
    often, seldom = Wakes(), Wakes()
    for wakes, step in ((often, 0.05), (seldom, 0.5)):
        for _ in range(4):
            wakes.preempted_soon("tree", SETTINGS)
        for number in range(int(10 / step)):
            release(wakes, queue(), 5, number * step)
            wakes.expire(number * step + step / 2, SETTINGS)
        assert SETTINGS.wake_period < wakes.period("tree", SETTINGS) < 1.0
    assert abs(often.period("tree", SETTINGS) - seldom.period("tree", SETTINGS)) < 0.1


@pytest.mark.parametrize(("queues", "period"), [(1, 0.2), (100, 0.2), (300, 0.6), (10_000, 1.0)])
def test_the_period_is_longer_in_a_tree_of_many_queues_up_to_the_longest(queues: int, period: float) -> None:
    wakes = Wakes(queues={"tree": queues})
    assert wakes.period("tree", SETTINGS) == pytest.approx(period)


def test_the_number_of_queues_makes_no_period_where_there_is_to_be_none() -> None:
    assert Wakes(queues={"tree": 100}).period("tree", EngineSettings()) == 0.0
