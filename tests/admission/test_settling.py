"""With the shipped settings everything comes to rest after the last event, and nobody is preempted again and again.

GATELIFT_SETTLING_RUNS: how many random instances (default 200); GATELIFT_SETTLING_SEED: the first seed. A failure names
its seed. Thousands of them, with the figures: `make simulate`, or `support.twin.settle_many`.
"""

from __future__ import annotations

import os

import pytest

from support.twin.admission_cases import Case
from support.twin.as_kueue import Kueue
from support.twin.instances import instance
from support.twin.settle_many import settle
from support.twin.settling import Settling

RUNS = int(os.environ.get("GATELIFT_SETTLING_RUNS", "200"))
FIRST = int(os.environ.get("GATELIFT_SETTLING_SEED", "6000"))
KNOWN = (304, 1013, 1138, 1251, 1942, 2593, 3394, 3800, 4407, 5245)
"""Seeds whose instances preempted somebody twice, or for ever."""
RECLAIMS = {"cohort": "all", "preempt": {"reclaim": "Any"}}
BOTH: Case = {
    "queues": {
        "a": {"groups": [{"one": {"cpu": 3}, "two": {"cpu": 2}}], **RECLAIMS},
        "b": {"groups": [{"one": {"cpu": 3}}], **RECLAIMS},
    },
    "flavors": {"one": {}, "two": {}},
    "workloads": {
        "x": {"queue": "a", "sets": {"s0": {"requests": {"cpu": 2}}, "s1": {"requests": {"cpu": 3}}}},
        "y": {"queue": "b", "priority": 1, "requests": {"cpu": 6}},
    },
    "steps": [],
}


def settled(case: Case) -> Settling:
    """Return what became of a case once everything had come to rest."""
    world = Settling(case)
    world.play()
    return world


def test_is_32_who_lost_does_not_preempt_the_winner_from_its_first_flavor() -> None:
    world = settled(BOTH)
    assert set(world.reserves) == {"y"}
    assert not world.since
    assert world.told["x"][0] == "ExceedsMaxQuota" or "3 more needed" in world.told["x"][1]


def test_is_32_a_victim_does_not_preempt_whoever_it_left_for() -> None:
    queues = {
        "a": {"groups": [{"one": {"cpu": 9}}], **RECLAIMS},
        "b": {"groups": [{"one": {"cpu": 1}}], **RECLAIMS},
    }
    wide = {"s0": {"count": 2, "min_count": 0, "requests": {"cpu": 3}}, "s1": {"requests": {"cpu": 2}}}
    world = settled(
        {
            "fair": "initial",
            "queues": queues,
            "flavors": {"one": {}},
            "workloads": {
                "few": {"queue": "b", "count": 3, "min_count": 0, "requests": {"cpu": 1}},
                "wide": {"queue": "a", "sets": wide},
                "first": {"queue": "a", "priority": 1, "requests": {"cpu": 2}},
            },
            "steps": [],
        }
    )
    assert max(world.since.values()) == 1


def test_is_32_as_in_kueue_who_is_worth_more_and_came_while_another_waited_preempts_that_one_once_it_is_in() -> None:
    """One call lets it in and preempts it: it heads the queue, since others have left for it (decision 14)."""
    names = ("low", "mid", "high")
    case: Case = {
        "queues": {"a": {"groups": [{"one": {"cpu": 2}}], "preempt": {"within": "LowerPriority"}}},
        "flavors": {"one": {}},
        "workloads": {name: {"queue": "a", "priority": at, "requests": {"cpu": 2}} for at, name in enumerate(names)},
        "steps": ["cycle", {"submit": "mid"}, "cycle", {"submit": "high"}, "cycle"],
    }
    there, here = Kueue(case), settled(case)
    there.play()
    while there.stop_victims():
        there.run()
    assert (there.held(), there.preempted) == ({"high"}, {"low": 1, "mid": 1})
    assert ({*here.reserves}, here.since, here.taken_back) == ({"high"}, {"mid": 1}, ["mid"])


@pytest.mark.parametrize("seed", KNOWN)
def test_is_32_an_instance_that_did_not_come_to_rest_does(seed: int) -> None:
    world = settled(instance(seed))
    assert all(number <= 1 for number in world.since.values()), f"seed {seed}: preempted {dict(world.since)}"


@pytest.mark.parametrize("seed", [716805, 721186])
def test_is_32_who_goes_on_to_its_next_flavors_preempts_nobody_whom_that_round_let_in(seed: int) -> None:
    world = settled(instance(seed))
    assert (world.preemptions, world.taken_back) == (0, []), f"seed {seed}"


def test_is_32_who_was_preempted_comes_back_behind_those_for_whom_it_left() -> None:
    """Otherwise it has its room again at once, for good: nobody asks it a second time."""
    world = settled(instance(711113))
    assert {"w04", "w06"} <= {*world.reserves}, "of priority 2"
    assert not {"w02", "w07"} & {*world.reserves}, "of priority 1, who have left for those"


@pytest.mark.timeout(max(240, RUNS))
def test_is_32_random_instances_come_to_rest_and_nobody_is_preempted_twice() -> None:
    for seed in range(FIRST, FIRST + RUNS):
        assert not settle(seed).failed
