"""A workload that raises an exception as it is decided on is set aside; everybody else has his turn (IS-4)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_admission import engine as engine_module
from gatelift_admission.engine import Engine
from gatelift_admission.feed import places
from gatelift_admission.rounds import cycle, reservation
from gatelift_admission.values.model import EngineSettings
from gatelift_kube.objects.kueue import Admission, PodSetAssignment
from support.twin.admission_objects import (
    cluster_queue,
    engine_with,
    flavor,
    group,
    local_queue,
    pod_set,
    reserved_status,
    workload,
)
from support.twin.cohort_engine import arrive, cohort_engine, outcome

BOUNDARIES = (
    (cycle, "fitting", 1),
    (cycle, "nominate", 1),
    (cycle, "has_failed_checks", 0),
    (places, "out_of_queue_reason", 0),
)
"""Functions that look at one workload, and which argument names it."""


CALLS_MAX = 100


class OnPurposeError(Exception):
    """What a mistake of ours would raise."""


def break_for(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, argument: int, uid: str) -> None:
    """Let a function raise for one workload."""
    function = getattr(module, name)

    def faulty(*args: Any, **named: Any) -> Any:
        about = args[argument]
        if uid in (getattr(about, "uid", None), getattr(getattr(about, "metadata", None), "uid", None)):
            raise OnPurposeError("on purpose")
        return function(*args, **named)

    monkeypatch.setattr(module, name, faulty)


def faults_of(engine: Engine, now: float) -> list[str]:
    """Cycle until nothing is left to decide; return who was set aside."""
    found = []
    for _ in range(CALLS_MAX):
        result = engine.cycle(now)
        found += [each.uid for each in result.faults]
        if not (result.more or result.faults):
            return found
    raise AssertionError(f"does not come to rest: {found[:5]}")


@pytest.mark.interpreted
@pytest.mark.parametrize(("module", "name", "argument"), BOUNDARIES, ids=[name for _, name, _ in BOUNDARIES])
def test_is_4_a_head_that_raises_is_set_aside_and_nobody_else_loses_his_turn(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, argument: int
) -> None:
    engine = cohort_engine(EngineSettings(), "a", "b", "c")
    others = ["a-one", "b-one", "c-one"]
    with monkeypatch.context() as broken:
        break_for(broken, module, name, argument, "a-bad")
        arrive(engine, "a-bad", 20 if name == "nominate" else 1, 1.0, priority=9)
        for each in others:
            arrive(engine, each, 2, 1.0)
        assert faults_of(engine, 1.0) == ["a-bad"]
        assert [uid for uid in others if engine.charged(uid)] == others
        engine.block("a-bad")
        engine.unblock("a-bad")
        assert faults_of(engine, 2.0) == [], "it rests until somebody says so, whoever else is looked at again"
        engine.look_again("a-bad")
        assert faults_of(engine, 3.0) == ["a-bad"]
    engine.look_again("a-bad")
    assert faults_of(engine, 4.0) == []
    assert bool(engine.charged("a-bad")) is (name != "nominate"), "it has its turn when it is mended"


@pytest.mark.interpreted
def test_is_4_a_reservation_of_which_nobody_was_told_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="4")
    with monkeypatch.context() as broken:
        broken.setattr(reservation, "decision", _raises)
        arrive(engine, "a-bad", 4, 1.0)
        assert faults_of(engine, 1.0) == ["a-bad"]
    assert engine.charged("a-bad") == {}
    arrive(engine, "a-good", 4, 2.0)
    assert "a-good" in outcome(engine, 2.0)


@pytest.mark.interpreted
def test_is_4_what_holds_quota_and_raises_stays_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="4")
    held = PodSetAssignment("main", {"cpu": "default"}, {"cpu": "4"}, 1)
    status = reserved_status(Admission("a", (held,)))
    engine.workload_changed(workload("a-held", pod_set(requests={"cpu": 4}), queue="a", status=status), 0.0)
    with monkeypatch.context() as broken:
        broken.setattr(engine_module, "stop_of", _raises)
        assert faults_of(engine, 0.0) == ["a-held"]
    arrive(engine, "a-one", 1, 1.0)
    assert "a-one" not in outcome(engine, 1.0)
    assert engine.charged("a-held") == {("default", "cpu"): 4000}


def _raises(*_args: Any, **_named: Any) -> Any:
    raise OnPurposeError("on purpose")


WRONG = {
    "an expression that is a number": [{"matchExpressions": [1]}],
    "expressions that are a text": [{"matchExpressions": "disk"}],
    "a key that is a list": [{"matchExpressions": [{"key": ["disk"], "operator": "In", "values": ["ssd"]}]}],
    "values that are a number": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": 7}]}],
    "values of numbers": [{"matchExpressions": [{"key": "disk", "operator": "Gt", "values": [7]}]}],
    "a bound of 5,000 digits": [{"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["9" * 5000]}]}],
    "another digit": [{"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["\u00b2"]}]}],
}
PARTS = {
    "a node affinity that is a list": {"nodeAffinity": [1]},
    "a requirement that is a text": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": "x"}},
}


@pytest.mark.parametrize(
    "affinity",
    [
        *(
            pytest.param(
                {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
                id=name,
            )
            for name, terms in WRONG.items()
        ),
        *(pytest.param(part, id=name) for name, part in PARTS.items()),
    ],
)
def test_is_4_an_affinity_of_another_shape_is_no_exception(affinity: dict[str, Any]) -> None:
    """Nothing holds the templates of a Workload to a schema: it was the head of its queue, and all heads were lost."""
    engine = engine_with(
        flavor("default", node_labels={"disk": "7"}),
        cluster_queue("a", group(default={"cpu": "4"})),
        local_queue("lq", "a"),
    )
    engine.workload_changed(workload("bad", pod_set(requests={"cpu": 1}, affinity=affinity)), 0.0)
    engine.workload_changed(workload("good", pod_set(requests={"cpu": 1}), created=9), 0.0)
    assert engine.cycle(0.0).faults == ()
    assert "good" in outcome(engine, 1.0) or engine.charged("good")
