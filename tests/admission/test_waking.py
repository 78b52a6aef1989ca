"""When a release is offered to whom: pure timing, without queues."""

from __future__ import annotations

from gatelift_admission.model import Settings
from gatelift_admission.waking import BANDS_MAX, SOON, Band, Wakes

CELL = ("default", "cpu")
SETTINGS = Settings(wake_period=0.2, wake_period_max=1.0)


def turns(wakes: Wakes, *waiting: int) -> list[Band]:
    """Return all turns of the tree, in order."""
    found = []
    while (turn := wakes.turn("tree", waiting)) is not None:
        found.append(turn[0])
    return found


def test_equals_and_better_come_soon_and_the_rest_a_period_later() -> None:
    wakes = Wakes()
    wakes.released("tree", (CELL,), 5, 0.0, SETTINGS)
    assert wakes.next_time() == SOON
    wakes.expire(SOON)
    assert turns(wakes, 1, 5, 9) == [Band(9, None, within=True), Band(5, 9, within=True)]
    assert wakes.next_time() == 0.2
    wakes.expire(0.2)
    assert turns(wakes, 1, 5) == [
        Band(5, None, within=True),
        Band(1, 5, within=True),
        Band(5, None, within=False),
        Band(1, 5, within=False),
    ]
    assert wakes.next_time() is None


def test_a_higher_release_defers_the_lower_ones_up_to_the_longest_period_after_the_first() -> None:
    wakes = Wakes()
    wakes.released("tree", (CELL,), 1, 0.0, SETTINGS)
    for number in range(2, 12):
        wakes.released("tree", (CELL,), number, number * 0.15, SETTINGS)
    assert wakes.freed["tree"].due == 1.0
    assert wakes.freed["tree"].level == 11


def test_many_priorities_share_the_last_turn() -> None:
    wakes = Wakes()
    wakes.released("tree", (CELL,), 0, 0.0, SETTINGS)
    wakes.expire(SOON)
    found = turns(wakes, *range(100))
    assert len(found) == BANDS_MAX + 1
    assert found[-1].lowest == 0, "nobody is left out"


def test_who_arrives_waits_only_while_the_period_has_grown_and_for_somebody_higher() -> None:
    wakes = Wakes()
    wakes.released("tree", (CELL,), 5, 0.0, SETTINGS)
    assert not wakes.keeps_from("tree", 1, SETTINGS)
    wakes.preempted_soon("tree", 5, 0.0, SETTINGS)
    assert wakes.keeps_from("tree", 1, SETTINGS)
    assert not wakes.keeps_from("tree", 5, SETTINGS)
    assert not wakes.keeps_from("other", 1, SETTINGS)
    wakes.expire(1.0)
    assert not wakes.keeps_from("tree", 1, SETTINGS)
