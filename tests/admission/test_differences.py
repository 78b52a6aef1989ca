"""What decision 14 lists of decisions, side by side: what is decided here, and what Kueue decides, by the literal twin.

IS-35: each row of that page has a case. The page names these by file and test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gatelift_admission.values.model import Decision, Preempt, Reserve
from support.twin.admission_cases import Case
from support.twin.as_kueue import Kueue
from support.twin.feed import Fed
from support.twin.instances import instance
from support.twin.settling import Settling

NO_LONGER_FITS = "Workload no longer fits after processing another workload"
BYPASSED = "Bypassed scheduling evaluation because an equivalent workload recently failed"
TRIES = 6
"""How often those who have to leave stop: nothing random settles later that settles at all."""
IDLE = (1, 2, 3, 4)
"""Cycles that run while nothing happens."""


def kueues(case: Case) -> Kueue:
    """Return what becomes of a case in Kueue."""
    world = Kueue(case)
    world.play()
    return world


def ours(case: Case, *, text_refresh: float = 0.0) -> Settling:
    """Return what becomes of a case here, with the shipped settings."""
    world = Settling(case, text_refresh=text_refresh)
    world.play()
    return world


def test_a_flavor_that_is_free_is_taken() -> None:
    """IS-39: Kueue takes the one that has to be reclaimed and borrowed, and says for ever that it no longer fits."""
    either = ["TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing"]
    queues: Case = {
        "a": {"flavors": {"one": {"cpu": 4, "memory": 0}, "two": {"cpu": 0, "memory": 0}}, "fungibility": either},
        "b": {"flavors": {"one": {"cpu": 0, "memory": 4}, "two": {"cpu": 4, "memory": 4}}},
    }
    case: Case = {
        "queues": {name: {**one, "cohort": "all", "preempt": {"reclaim": "Any"}} for name, one in queues.items()},
        "flavors": {"one": {}, "two": {}},
        "workloads": {
            "before": {"queue": "b", "requests": {"cpu": 2}},
            "new": {"queue": "a", "requests": {"cpu": 4, "memory": 4}},
        },
        "steps": ["cycle", {"submit": "new"}, "cycle"],
    }
    there = kueues(case)
    assert there.held() == {"before"}
    assert there.told["new"]
    here = ours(case)
    assert set(here.reserves) == {"before", "new"}
    assert not here.since


@pytest.mark.parametrize("seed", [1013, 3800, 4407])
def test_nobody_is_preempted_again_and_again(seed: int) -> None:
    """IS-32: in Kueue the same one is preempted each time that it comes back, and nobody finishes."""
    there = kueues(instance(seed))
    there.preempted.clear()
    for _ in range(TRIES):
        assert there.stop_victims()
        there.run()
    assert max(there.preempted.values()) >= TRIES
    assert max(ours(instance(seed)).since.values(), default=0) <= 1


def test_the_search_of_a_group_of_pod_sets_goes_on_where_any_of_them_was() -> None:
    """IS-31: where the first asks for no cpu Kueue loses the first flavor for ever, though the second is free."""
    group = {"leader": {"requests": {"memory": 1}, "group": "g"}, "workers": {"requests": {"cpu": 3}, "group": "g"}}
    case = _behind_kept_room({"sets": group}, {"one": {"cpu": 0, "memory": 9}, "two": {"cpu": 4, "memory": 9}})
    there = kueues(case)
    assert "waits" not in there.held()
    assert {message for _, message in there.told["waits"]} == {NO_LONGER_FITS}
    assert _let_in(case, 2) == {"victim", "waits"}


def test_who_lost_and_finds_nothing_behind_its_flavor_looks_at_all_of_them_once_more() -> None:
    """Kueue parks it until something happens, though it fits by other flavors of its two pod sets."""
    case: Case = {
        "cohorts": {"all": {"flavors": {"red": {"cpu": 13}}}},
        "queues": {
            "q": {"flavors": {"red": {"cpu": 0}, "blue": {"cpu": 5}}, "cohort": "all"},
            "other": {"flavors": {"red": {"cpu": 0}}, "cohort": "all"},
        },
        "flavors": {"red": {}, "blue": {}},
        "workloads": {
            "before": {"queue": "other", "requests": {"cpu": 3}},
            "first": {"queue": "other", "priority": 1, "requests": {"cpu": 2}},
            "wide": {"queue": "q", "sets": {"s0": {"requests": {"cpu": 3}}, "s1": {"requests": {"cpu": 6}}}},
        },
        "steps": ["cycle", {"submit": "first"}, {"submit": "wide"}, "cycle"],
    }
    there = kueues(case)
    assert there.held() == {"before", "first"}
    assert there.told["wide"][-1][0] == "ExceedsMaxQuota"
    assert _let_in(case, 2) == {"before", "first", "wide"}


@pytest.mark.parametrize("idle", IDLE)
def test_what_a_strict_head_keeps_from_others_does_not_hang_on_how_many_cycles_were_idle(idle: int) -> None:
    """Kueue looks at the next flavor in each cycle, and keeps room in that one: who comes then has it, or not."""
    case = _behind_kept_room({"requests": {"cpu": 3}}, {"one": {"cpu": 0}, "two": {"cpu": 4}}, strategy="StrictFIFO")
    case["queues"]["b"] = {"flavors": {"two": {"cpu": 0}}, "cohort": "all"}
    case["workloads"]["half"] = {"queue": "a", "priority": 2, "requests": {"cpu": 2}, "selector": {"zone": "b"}}
    case["workloads"]["late"] = {"queue": "b", "requests": {"cpu": 2}, "selector": {"zone": "b"}}
    case["flavors"] = {"one": {"labels": {"zone": "a"}}, "two": {"labels": {"zone": "b"}}}
    case["steps"] += [{"submit": "late"}, "cycle"]
    there = Kueue(case)
    for decides, cycles in zip(_deciding(there), (IDLE[-1], idle, 1), strict=True):
        assert decides
        there.run(cycles)
    assert ("late" in there.held()) is (idle % 2 == 0)
    assert "late" in _let_in(case, idle)


def test_who_waits_for_its_victims_asks_nobody_else_before_something_has_come_free() -> None:
    """Kueue looks again in each cycle: who was asked goes first then, which makes another flavor look better."""
    two_sets = {"s0": {"requests": {"cpu": 1}}, "s1": {"requests": {"cpu": 1}}}
    case: Case = {
        "fair": "final",
        "queues": {
            "a": {
                "flavors": {"one": {"cpu": 2}, "two": {"cpu": 2}},
                "cohort": "all",
                "preempt": {"within": "LowerPriority", "reclaim": "Any"},
            },
            "b": {"flavors": {"one": {"cpu": 2}, "two": {"cpu": 0}}, "cohort": "all"},
        },
        "flavors": {"one": {}, "two": {}},
        "workloads": {
            "large": {"queue": "a", "sets": {**two_sets, "s1": {"requests": {"cpu": 3}}}},
            "other": {"queue": "b", "requests": {"cpu": 3}},
            "own": {"queue": "a", "sets": two_sets},
            "high": {"queue": "a", "priority": 1, "requests": {"cpu": 2}},
        },
        "steps": ["cycle", {"submit": "high"}, "cycle"],
    }
    assert set(kueues(case).preempted) == {"own", "other"}
    assert [one.uid for one in _decided(case, IDLE[-1]) if isinstance(one, Preempt)] == ["own"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_that_are_alike_in_all_the_lower_uid_goes_first_whoever_is_seen_first(order: tuple[str, str]) -> None:
    """Kueue: whichever its maps and its sort, which is not stable, bring first, where they are in two queues."""
    case: Case = {
        "queues": {name: {"flavors": {"red": {"cpu": 0}}, "cohort": "all"} for name in ("p", "q")},
        "cohorts": {"all": {"flavors": {"red": {"cpu": 1}}}},
        "flavors": {"red": {}},
        "workloads": {"a": {"queue": "q", "requests": {"cpu": 1}}, "b": {"queue": "p", "requests": {"cpu": 1}}},
        "steps": [*({"submit": name} for name in order), "cycle"],
    }
    assert set(ours(case).reserves) == {"a"}


def test_who_was_evaluated_keeps_the_text_of_that_though_an_equal_one_has_failed_since() -> None:
    """At Kueue whoever is evaluated first says why, and all equal ones that they were bypassed."""
    equal = {"queue": "q", "requests": {"cpu": 4}}
    first = {"queue": "q", "priority": 5}
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 9}}}},
        "flavors": {"red": {}},
        "workloads": {
            "large": {**first, "requests": {"cpu": 8}},
            "small": {**first, "requests": {"cpu": 1}},
            "older": {**equal, "created": 2},
            "newer": {**equal, "created": 1},
        },
        "steps": ["cycle", {"submit": "older"}, "cycle", {"submit": "newer"}, "cycle", {"finish": "small"}, "cycle"],
    }
    there = kueues(case)
    assert there.told["older"][-1][1] == BYPASSED
    assert there.told["newer"][-1][1].endswith("3 more needed")
    here = ours(case, text_refresh=2.0)
    assert here.told["older"][1].endswith("3 more needed")
    assert here.told["newer"][1] == BYPASSED


@pytest.mark.parametrize("moved", ["taker", "lender"])
def test_quota_that_is_in_use_is_not_lent_again_when_a_queue_leaves_its_cohort(moved: str) -> None:
    """Kueue charges only where the queue is now: twice as much runs as there is quota."""
    case: Case = {
        "queues": {
            "lender": {"flavors": {"red": {"cpu": 4}}, "cohort": "all"},
            "taker": {"flavors": {"red": {"cpu": 0}}, "cohort": "all"},
        },
        "flavors": {"red": {}},
        "workloads": {
            "borrows": {"queue": "taker", "requests": {"cpu": 4}},
            "own": {"queue": "lender", "requests": {"cpu": 4}},
        },
        "steps": ["cycle", {"confirm": "borrows"}, {"change": [moved, {"cohort": ""}]}, {"submit": "own"}, "cycle"],
    }
    assert kueues(case).held() == {"borrows", "own"}
    assert set(ours(case).reserves) == {"borrows"}


def test_who_cannot_be_stopped_now_is_not_preempted() -> None:
    """HD-9: Kueue chooses the first in order, whose cluster is lost, and waits for it; here the next one leaves."""
    low = {"queue": "q", "priority": 1, "requests": {"cpu": 1}}
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 2}}, "preempt": {"within": "LowerPriority"}}},
        "flavors": {"red": {}},
        "workloads": {
            "lost": {**low, "created": 0},
            "near": {**low, "created": 1},
            "high": {"queue": "q", "priority": 9, "requests": {"cpu": 1}},
        },
        "steps": ["cycle", {"reach": ["lost", True]}, {"submit": "high"}, "cycle"],
    }
    without = {**case, "steps": [one for one in case["steps"] if "reach" not in one]}
    assert set(kueues(without).preempted) == {"lost"}, "Kueue asks nobody whether its cluster is there"
    here = ours(case)
    assert set(here.since) == {"near"}
    assert set(here.reserves) == {"lost", "high"}


def test_counts_that_are_lowered_while_quota_is_held_free_nothing() -> None:
    """Kueue's elastic Workloads shrink so; here what runs is charged by what was granted and by its cluster's word."""
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 4}}}},
        "flavors": {"red": {}},
        "workloads": {"four": {"queue": "q", "count": 4, "requests": {"cpu": 1}}},
        "steps": ["cycle"],
    }
    here = ours(case)
    case["workloads"]["four"] = {**case["workloads"]["four"], "count": 2}
    here.feed("four", here._written("four"))
    assert here.fast.charged("four") == {("red", "cpu"): 4000}
    here.twin.world.as_kueue = True
    here.feed("four", here._written("four"))
    assert here.twin.world.works["four"].charge() == {("red", "cpu"): 2000}


def _behind_kept_room(waits: Case, quota: Case, **queue: Any) -> Case:
    """Return a case in which `high` waits for its victim and keeps the first flavor, which `waits` would borrow."""
    return {
        "queues": {
            "a": {"flavors": quota, "cohort": "all", **queue},
            "p": {
                "flavors": {"one": dict.fromkeys(quota["one"], 0) | {"cpu": 4}},
                "cohort": "all",
                "preempt": {"within": "LowerPriority"},
            },
        },
        "flavors": {"one": {}, "two": {}},
        "workloads": {
            "victim": {"queue": "p", "requests": {"cpu": 1}},
            "high": {"queue": "p", "priority": 5, "requests": {"cpu": 4}},
            "waits": {"queue": "a", "priority": 1, **waits},
        },
        "steps": ["cycle", {"submit": "high"}, {"submit": "waits"}, "cycle"],
    }


def _deciding(world: Fed) -> Iterator[bool]:
    """Yield where the engines are to decide."""
    return (decides for decides in world.steps() if decides)


def _decided(case: Case, cycles: int) -> list[Decision]:
    """Return what the engine decides, asked so many times where it is to decide, while nobody stops."""
    world = Fed(case)
    return [one for _ in _deciding(world) for _ in range(cycles) for one in world.fast.cycle(world.clock).decisions]


def _let_in(case: Case, cycles: int) -> set[str]:
    """Return whom it lets in so."""
    return {one.uid for one in _decided(case, cycles) if isinstance(one, Reserve)}
