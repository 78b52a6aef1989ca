"""Whatever raises for one workload in the engine: it is charged as its record says, nothing is lost or said twice.

Each call of each function that is entered with the entry or the object of one workload, in two lives of it, is made to
raise once; what people see and what was decided is compared with a life in which nothing raised (IS-4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import pytest

from gatelift_admission.charges.ledger import Ledger
from gatelift_admission.engine import Engine
from gatelift_admission.feed import intake, structure
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.rounds.cycle import Cycle
from gatelift_admission.values.model import EngineSettings
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, Workload
from support.on_purpose import OnPurposeError
from support.twin.admission_objects import cluster_queue, group, local_queue, pod_set, reserved_status, workload
from support.twin.cohort_engine import arrive, cohort_engine, moves
from support.twin.raising import SHORT, Caller, Place, Raising, begin, broken, leads, lives, play

pytestmark = pytest.mark.interpreted
BAD = "a-bad"
CPU = ("default", "cpu")
History = Callable[[Caller], Iterator[None]]
LAST: tuple[Place, ...] = (
    ("demand/grants.py", "of_record"),
    ("entries/entry.py", "Entry.__init__"),
)
"""What the short path asks itself, by which what is set aside is charged."""
MOVE: Place = ("entries/standings.py", "Stander.move")
"""By which it is set aside."""


def entered(history: History) -> list[tuple[Place, int]]:
    """Return the functions that a life enters with the workload, and how often."""
    raising = Raising(BAD)
    play(history, raising)
    return sorted(raising.calls.items())


ORDINARY = [place for place, _ in entered(leads) if place not in (*LAST, MOVE) and place[0] not in SHORT]


def running(*, version: int = 1) -> Workload:
    """Return a Workload that holds 6 of the CPUs of queue a."""
    held = PodSetAssignment("main", {"cpu": "default"}, {"cpu": "6"}, 2)
    asked = pod_set(requests={"cpu": 3}, count=2)
    return workload(BAD, asked, queue="a", version=version, status=reserved_status(Admission("a", (held,))))


@pytest.mark.parametrize("history", [lives, leads], ids=["a life", "a new leader"])
def test_is_4_whatever_raises_once_for_a_workload_nothing_is_lost_and_nothing_decided_twice(history: History) -> None:
    clean, expected = play(history, Raising(BAD))
    assert clean.problems + clean.aside == []
    wrong: list[str] = []
    swept = 0
    for place, calls in entered(history):
        for call in range(1, calls + 1):
            raising = Raising(BAD, place, call)
            caller, shown = play(history, raising)
            swept += raising.raised
            found = [*caller.problems, *(f"out of {name}" for name in caller.outside if place[0] not in SHORT)]
            if caller.decided != clean.decided:
                found.append(f"decided {caller.decided} instead of {clean.decided}")
            different = (step for step, (left, right) in enumerate(zip_longest(expected, shown)) if left != right)
            found += [f"step {step} shows something else" for step in different]
            wrong += [f"{place} at call {call}: {one}" for one in found]
    assert wrong == []
    assert swept > 150, "each of them has raised"


@pytest.mark.parametrize("place", ORDINARY, ids="/".join)
def test_is_4_what_raises_for_ever_is_charged_by_its_record_until_it_is_gone(place: Place) -> None:
    """HD-644: others have their turn, also where it cannot be listed what it holds; that quota is nobody else's."""
    with broken(BAD, place):
        caller, shown = play(leads)
    assert caller.problems == []
    assert caller.outside == []
    for step in shown[:3]:
        _, charged, queue = step[BAD]
        assert (charged, queue) == ({CPU: 6000}, "a")
    assert caller.decided["Reserve", "a-next"] == 2
    assert caller.decided["Reserve", "a-last"] == 2
    assert caller.engine.charged(BAD) == {}
    assert caller.figures()["queue a"].reserving_workloads == 2


@pytest.mark.parametrize("place", LAST, ids="/".join)
def test_is_4_while_even_the_short_path_raises_nothing_is_decided(place: Place) -> None:
    caller = begin()
    with broken(BAD, place):
        refused = _refuses(caller.engine)
        arrive(caller.engine, "a-next", 4, 0.0)
        if not refused:
            for _ in range(3):
                with pytest.raises(OnPurposeError):
                    caller.engine.cycle(1.0)
    assert caller.engine.charged("a-next") == {}
    caller.engine.workload_changed(running(), 1.0)
    assert moves(caller.engine, 1.0) == ["a-next"], "it borrows of the other queue"
    assert caller.engine.charged(BAD) == {CPU: 6000}
    assert caller.figures()["queue a"].reserving_workloads == 2


def test_is_4_a_version_that_was_not_taken_is_charged_at_once_and_whole_when_it_is_fed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="8")
    arrive(engine, "a-next", 4, 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(intake, "phase_of", _raises)
        engine.workload_changed(running(), 0.0)
    assert engine.charged(BAD) == {CPU: 6000}
    first = engine.cycle(0.0)
    assert [(fault.uid, fault.key.name) for fault in first.faults] == [(BAD, BAD)]
    assert moves(engine, 0.0) == []
    assert engine.charged("a-next") == {}
    engine.workload_changed(running(), 1.0)
    assert moves(engine, 1.0) == []
    assert not engine.is_due(2.0), "nothing is looked at without end"
    engine.workload_removed(BAD)
    assert moves(engine, 3.0) == ["a-next"]


def test_is_4_a_version_that_gives_quota_back_frees_nothing_before_it_was_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="8")
    engine.workload_changed(running(), 0.0)
    arrive(engine, "a-next", 4, 0.0)
    given_back = workload(BAD, pod_set(requests={"cpu": 6}), queue="a", version=2, active=False)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_into_tree", _raises)  # the totals are half changed by then
        engine.workload_changed(given_back, 0.0)
        assert engine.charged(BAD) == {CPU: 6000}
    assert moves(engine, 0.0) == []
    figures = engine.cluster_queue_status("a")
    assert figures is not None
    assert figures.flavors_reservation[0].resources[0].total == "6"
    engine.look_again(BAD)
    assert moves(engine, 1.0) == ["a-next"]
    assert engine.charged(BAD) == {}


def test_is_4_decisions_that_were_taken_before_something_raised_are_said_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="8")
    arrive(engine, "a-one", 4, 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(Cycle, "_close", _raises)
        with pytest.raises(OnPurposeError):
            engine.cycle(0.0)
    assert engine.charged("a-one") == {CPU: 4000}
    assert moves(engine, 0.0) == ["a-one"]


def test_is_4_a_queue_whose_version_raised_is_what_it_was_and_is_taken_whole_when_it_is_fed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="4")
    for name in ("a-one", "a-two"):
        arrive(engine, name, 6, 0.0)
    assert moves(engine, 0.0) == []
    larger = cluster_queue("a", group(default={"cpu": "12"}), queueing_strategy="StrictFIFO")
    stopped = local_queue("a", "a", stop="Hold")
    feeds: list[tuple[Any, str, Callable[[Any], None], Any]] = [
        (structure, "Catalogue", engine.cluster_queue_changed, larger),
        (PendingQueue, "add", engine.cluster_queue_changed, larger),
        (structure, "LocalModel", engine.local_queue_changed, stopped),
    ]
    for module, name, feed, version in feeds:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, _raises)
            with pytest.raises((OnPurposeError, AttributeError)):
                feed(version)
        assert moves(engine, 1.0) == []
    engine.cluster_queue_changed(larger)
    assert moves(engine, 2.0) == ["a-one", "a-two"]


def _refuses(engine: Engine) -> bool:
    """Feed what runs; say whether that goes out to the caller, who decides nothing then."""
    try:
        engine.workload_changed(running(), 0.0)
    except OnPurposeError:
        return True
    return False


def _raises(*_args: object, **_named: object) -> None:
    raise OnPurposeError("on purpose")
