"""The invariants that the twin's instances are watched for: each is seen to be broken when it is."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_admission.entries.standings import AWAKE, QueueStanding
from gatelift_admission.feed import places
from gatelift_admission.preemption import classical
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.rounds.cycle import Cycle
from support.twin.admission_cases import Case
from support.twin.invariants import broken
from support.twin.play import Both, Difference

pytestmark = pytest.mark.interpreted
CPU = ("red", "cpu")


def played(**more: Any) -> Both:
    """Return a world in which `a` holds two thirds of a queue and borrows, and `b` waits."""
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 2}}, "cohort": "top", "strategy": "StrictFIFO"}},
        "cohorts": {"top": {"groups": [{"red": {"cpu": 1}}]}},
        "flavors": {"red": {}},
        "workloads": {
            "a": {"queue": "q", "priority": 1, "requests": {"cpu": 2}},
            "b": {"queue": "q", "requests": {"cpu": 2}},
        },
        "steps": ["cycle"],
        **more,
    }
    both = Both(case)
    both.play()
    return both


def test_nothing_is_broken_where_one_holds_quota_and_one_waits() -> None:
    state = played().fast.state
    assert broken(state) == []
    assert state.node("q").usage == {CPU: 2000}
    assert len(state.queues["q"].pending) == 1


def test_usage_that_nobody_holds_is_seen() -> None:
    state = played().fast.state
    state.ensure().add_usage(state.node("q"), {CPU: 500})
    assert broken(state) == ["q uses {('red', 'cpu'): 2500}, its holders {('red', 'cpu'): 2000}"]


def test_usage_of_a_cohort_that_is_not_that_of_its_queues_is_seen() -> None:
    state = played().fast.state
    state.ensure().shift(state.ensure().cohorts["top"], CPU, -500)
    assert broken(state) == ["top uses {('red', 'cpu'): 1500}, its holders {('red', 'cpu'): 2000}"]


def test_usage_below_zero_is_seen() -> None:
    state = played().fast.state
    state.ensure().shift(state.node("q"), CPU, -2500)
    assert "q uses {('red', 'cpu'): -500}" in broken(state)


def test_a_workload_in_two_places_is_seen() -> None:
    state = played().fast.state
    pending = state.queues["q"].pending
    pending.aside["b"] = state.entries["b"]
    assert "b waits in 2 places, it is said to in 'q'" in broken(state)


def test_a_workload_in_no_place_is_seen() -> None:
    state = played().fast.state
    state.queues["q"].pending.remove(state.entries["b"])
    assert "b waits in 0 places, it is said to in 'q'" in broken(state)


@pytest.mark.parametrize(
    "standing", [QueueStanding.OUT, QueueStanding.LOST, QueueStanding.INADMISSIBLE, QueueStanding.BARRED]
)
def test_a_workload_that_stands_elsewhere_than_its_queue_has_it_is_seen(standing: QueueStanding) -> None:
    state = played(steps=[]).fast.state
    state.ensure()
    places.place(state, state.entries["b"])
    assert broken(state) == []
    state.entries["b"].standing = standing
    assert broken(state) == [f"b is in the order, and stands {standing.name}"]


def test_a_workload_that_waits_and_holds_quota_is_seen() -> None:
    state = played().fast.state
    state.entries["a"].queue = "q"
    state.queues["q"].pending.add(state.entries["a"])
    assert "a waits, and is charged {('red', 'cpu'): 2000}" in broken(state)


def test_a_reservation_above_the_limits_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatelift_admission.quota.tree.Tree.free", lambda *_: 9000)
    monkeypatch.setattr("gatelift_admission.quota.tree.Tree.potential", lambda *_: 9000)
    with pytest.raises(Difference, match=r"top uses 4000 of \('red', 'cpu'\), it may 3000"):
        played()


def test_a_victim_that_need_not_leave_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    everybody: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 4}}, "preempt": {"within": "LowerPriority"}}},
        "workloads": {
            "low": {"queue": "q", "priority": 0, "requests": {"cpu": 1}},
            "mid": {"queue": "q", "priority": 1, "requests": {"cpu": 3}},
            "high": {"queue": "q", "priority": 2, "requests": {"cpu": 3}},
        },
        "steps": ["cycle", {"submit": "high"}, "cycle"],
    }
    assert played(**everybody).preemptions == 1
    monkeypatch.setattr(classical, "fill_back", lambda _scene, _seeker, targets, **_: tuple(targets))
    with pytest.raises(Difference, match="high fits although low stays"):
        played(**everybody)


def test_a_plan_that_does_not_fit_without_its_victims_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 4}}, "preempt": {"within": "LowerPriority"}}},
        "workloads": {
            "low": {"queue": "q", "requests": {"cpu": 2}},
            "mid": {"queue": "q", "priority": 1, "requests": {"cpu": 2}},
            "high": {"queue": "q", "priority": 2, "requests": {"cpu": 4}},
        },
        "steps": ["cycle", {"submit": "high"}, "cycle"],
    }
    monkeypatch.setattr(classical, "fits", lambda *_, **__: True)
    with pytest.raises(Difference, match=r"high does not fit without \['mid'\]"):
        played(**case)


def test_one_who_overtakes_in_a_strict_queue_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PendingQueue, "_first", _last)
    with pytest.raises(Difference, match=r"invariant: b overtakes \['a'\]"):
        played()


def test_every_call_of_a_cycle_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    close = Cycle._close

    def leaking(cycle: Cycle, round_: Any) -> None:
        close(cycle, round_)
        cycle._state.ensure().shift(cycle._state.node("q"), CPU, 1)

    monkeypatch.setattr(Cycle, "_close", leaking)
    with pytest.raises(Difference, match="invariant: q uses"):
        played()


def _last(pending: PendingQueue) -> Any:
    heads = [one.head() for one in pending.classes.values() if one.standing in AWAKE]
    return max((one for one in heads if one is not None), key=lambda one: one.uid, default=None)
