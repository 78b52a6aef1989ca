"""HD-9: the engine is told who cannot be stopped now; the literal twin agrees on what follows."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_admission.engine import Engine
from support.twin.admission_cases import STRATEGIES, Case
from support.twin.play import Both

pytestmark = pytest.mark.interpreted  # rounds are watched from inside
WAITS = "on clusters that are not connected, which cannot be preempted now"


def a_case(*steps: Any, fair: str = "") -> Case:
    """Return a case in which two workloads of low priority fill a queue, and high wants the room of one."""
    flavors = {"red": {"cpu": 2}}
    queues = {"q": {"flavors": flavors, "preempt": {"within": "LowerPriority", "reclaim": "Any"}, "cohort": "c"}}
    lows = {f"low{n}": {"queue": "q", "priority": 1, "created": n, "requests": {"cpu": 1}} for n in range(2)}
    high = {"queue": "q", "priority": 9, "created": 5, "requests": {"cpu": 1}}
    feed: list[Any] = ["cycle", {"confirm": "low0"}, {"confirm": "low1"}]
    case: Case = {"queues": queues, "flavors": {"red": {}}, "workloads": {**lows, "high": high}}
    return {**case, "steps": [*feed, *steps], **({"fair": fair} if fair else {})}


def played(case: Case) -> Both:
    both = Both({**case, "sentence": "unreachable"})
    both.play()
    return both


def evicted(both: Both) -> set[str]:
    return {uid for uid, entry in both.fast.state.entries.items() if entry.evicted}


@pytest.mark.parametrize("fair", ["", *STRATEGIES])
def test_hd_9_the_next_one_in_order_leaves_for_one_that_cannot_be_stopped(fair: str) -> None:
    assert evicted(played(a_case({"submit": "high"}, "cycle", fair=fair))) == {"low0"}
    assert evicted(played(a_case({"reach": ["low0", True]}, {"submit": "high"}, "cycle", fair=fair))) == {"low1"}


def test_nobody_is_asked_where_all_who_would_do_cannot_be_stopped_and_that_is_said() -> None:
    lost = [{"reach": [f"low{n}", True]} for n in range(2)]
    both = played(a_case(*lost, {"submit": "high"}, "cycle"))
    assert evicted(both) == set()
    reason, message = both.told["high"]
    assert reason == "WaitingForQuota"
    assert message.endswith(f"Waits for 1 workload(s) {WAITS}")


def test_a_plan_that_needs_one_who_cannot_be_stopped_asks_none_of_the_others() -> None:
    case = a_case({"reach": ["low1", True]}, {"submit": "high"}, "cycle")
    case["workloads"]["high"]["requests"] = {"cpu": 2}
    both = played(case)
    assert evicted(both) == set()
    assert WAITS in both.told["high"][1]


def test_who_waited_for_it_preempts_when_it_can_be_stopped_again() -> None:
    lost = [{"reach": [f"low{n}", True]} for n in range(2)]
    both = played(a_case(*lost, {"submit": "high"}, "cycle", {"reach": ["low0", False]}, "cycle"))
    assert evicted(both) == {"low0"}


def test_who_waits_for_one_that_was_asked_and_is_lost_takes_another() -> None:
    both = played(a_case({"submit": "high"}, "cycle", {"reach": ["low0", True]}, "cycle"))
    assert evicted(both) == {"low0", "low1"}


def test_what_is_said_ends_with_the_workload() -> None:
    engine = Engine()
    engine.set_unreachable("w", unreachable=True)
    assert engine.state.unreachable == {"w"}
    engine.workload_removed("w")
    assert engine.state.unreachable == set()
