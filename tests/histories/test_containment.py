"""Scripted histories (HD-95, IS-4): an exception belongs to what raised it; others go on, what holds quota keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.conclusions import held, reports
from gatelift.core.state.case import Case
from gatelift.core.state.cluster_waiters import ClusterWaiters
from gatelift.core.works import deciding, following, intake
from gatelift_admission.charges.debts import Debts
from gatelift_admission.charges.holders import Holders
from gatelift_agent.core.advancing import progress
from gatelift_agent.core.beginning import found_state, rebuilding
from gatelift_agent.core.placement.placements import PlacementState
from gatelift_agent.core.session import orders
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from gatelift_wire.values.messages import Commit, Offer, Stop
from support.on_purpose import Broken, OnPurposeError
from support.sim.history import History
from support.sim.others import REST_SECONDS, others_go_on


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def uid_of(history: History, name: str, kind: str = "Pod") -> str:
    workload = history.workload(name, kind)
    assert workload is not None
    return str(workload["metadata"]["uid"])


def test_hd_95_a_look_at_one_workload_that_raises_stops_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """IS-4: what is set aside still obeys a stop, and is never called stopped."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    key = "pod-bad"
    broken = Broken(monkeypatch, (following, "case_of"), lambda _core, known, *_: known.metadata.name.startswith(key))
    history.delete("home", POD, "bad")
    others_go_on(history, "good")
    assert broken.raised
    history.until("it obeys the stop all the same", lambda: history.containers("bad") == 0, 60.0)
    history.passes(60.0)
    assert history.leader.charges("travels") == 500, "and is not released"
    broken.mend()
    history.until("it is gone", lambda: not history.home.all(WORKLOAD) or history.workload("bad") is None, 400.0)
    assert history.leader.charges("travels") == 0


def test_hd_95_a_record_that_raises_after_a_start_is_charged_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(
        monkeypatch, (following, "case_of"), lambda _core, known, *_: known.metadata.name.startswith("pod-bad")
    )
    history.kill_leader()
    history.passes(60.0)
    assert broken.raised
    others_go_on(history, "good")
    assert history.containers("bad") == 1
    assert history.leader.charges("travels") == 500
    broken.mend()
    history.passes(REST_SECONDS)
    assert history.containers("bad") == 1, "it runs on"
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: history.workload("bad") is None)
    assert history.leader.charges("travels") == 0


def test_hd_95_an_object_that_raises_as_it_comes_in_stops_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    broken = Broken(monkeypatch, (intake, "seen"), lambda _core, _resource, found, *_: found.metadata.name == "bad")
    history.pod("bad")
    others_go_on(history, "good")
    assert broken.raised
    assert history.workload("bad") is None


def test_hd_95_deciding_that_raises_ends_no_process_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("runs")
    history.until_runs("runs")
    broken = Broken(monkeypatch, (deciding, "decide"), lambda *_: True)
    history.pod("waits")
    history.passes(100.0)
    assert broken.raised < 20, "with growing pauses"
    assert history.containers("runs") == 1
    broken.mend()
    history.until("it runs", lambda: history.containers("waits") == 1, REST_SECONDS)


@pytest.mark.parametrize("behind", [False, True], ids=["before it is charged", "behind its charge"])
def test_is_4_a_decision_that_cannot_be_taken_over_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, *, behind: bool
) -> None:
    """Four fit at once when a large one leaves; taking over that of one of them raises."""
    history = History(shown=False)
    history.pod("big", cpu="2900m")
    history.until_runs("big")
    names = ("bad", "good-0", "good-1", "good-2")
    for name in names:
        history.pod(name, cpu="500m")
        history.passes(1.0)
    reserve = deciding._reserve

    def is_bad(_core: Any, decision: Any, _now: float) -> bool:
        return bool(decision.key.name.startswith("pod-bad"))

    def reserved_and_then(core: Any, decision: Any, now: float) -> None:
        reserve(core, decision, now)
        if is_bad(core, decision, now) and not broken.mended:
            broken.raised += 1
            raise OnPurposeError("on purpose")

    broken = Broken(monkeypatch, (deciding, "_reserve"), is_bad)
    if behind:
        monkeypatch.setattr(deciding, "_reserve", reserved_and_then)
    history.delete("home", POD, "big")
    for name in names[1:]:
        history.until(f"{name} runs", lambda name=name: history.containers(name) == 1, 120.0)  # type: ignore[misc]
    assert broken.raised
    history.passes(60.0)
    assert history.containers("bad") == 0
    assert history.leader.charges("travels") == 1500, "nothing is charged that does not run"
    broken.mend()
    history.until("it runs, too", lambda: history.containers("bad") == 1, REST_SECONDS)
    assert history.leader.charges("travels") == 2000


def test_is_4_a_stop_is_obeyed_though_taking_it_over_has_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(monkeypatch, (deciding, "_ending"), lambda *_: True)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "HoldAndDrain"}})
    history.until("it has stopped", lambda: history.containers("bad") == 0, 60.0)
    assert broken.raised == 1
    history.until("its quota is free", lambda: history.leader.charges("travels") == 0)


def test_hd_95_a_word_that_raises_ends_its_session_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("one", seconds=20.0)
    cluster = history.until_runs("one")
    other = next(each for each in history.workers if each != cluster)
    session = history.status(cluster)["session"], history.status(other)["session"]
    broken = Broken(monkeypatch, (reports, "reported"), lambda _core, upcall, _now: upcall.cluster == cluster)
    history.until("it has raised", lambda: broken.raised > 0)
    broken.mend()
    history.until("it is finished", lambda: history.shows("one", "Finished"))
    assert history.status(cluster)["session"] > session[0]
    assert history.status(other)["session"] == session[1]


def test_hd_95_a_placement_that_raises_is_listed_and_charged_and_all_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    uid = uid_of(history, "bad")
    broken = Broken(monkeypatch, (progress, "drive"), lambda _world, placement, _now: placement.key.uid == uid)
    history.delete("home", POD, "bad")
    others_go_on(history, "good")
    history.until("it obeys the stop all the same", lambda: history.containers("bad") == 0, 60.0)
    history.kill_agent(cluster)
    history.passes(100.0)
    assert broken.raised
    assert history.leader.charges("travels") == 500, "and is never called stopped"
    broken.mend()
    history.until("it is stopped", lambda: history.workload("bad") is None, REST_SECONDS)
    assert history.leader.charges("travels") == 0


def test_hd_95_a_placement_that_cannot_be_rebuilt_is_listed_as_running(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    uid = uid_of(history, "bad")
    broken = Broken(monkeypatch, (found_state, "set_state"), lambda _world, placement: placement.key.uid == uid)
    history.kill_agent(cluster)
    history.passes(100.0)
    assert broken.raised
    assert history.runs("bad") == {cluster}
    assert [each.state for each in history.agent(cluster).machine.world.placements.values()] == [PlacementState.RUNNING]
    assert history.leader.charges("travels") == 500


@pytest.mark.parametrize("message", [Offer, Commit, Stop])
def test_hd_95_a_message_that_raises_is_refused_or_said_again(message: type, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    broken = Broken(
        monkeypatch, (orders, "obey"), lambda _world, said, _now: isinstance(said, message) and broken.raised < 2
    )
    history.pod("one")
    if message is Stop:
        history.until_runs("one")
        history.delete("home", POD, "one")
        history.until("it is gone", lambda: history.workload("one") is None, REST_SECONDS)
        assert history.leader.charges("travels") == 0
    else:
        history.until("it runs all the same", lambda: history.containers("one") == 1, REST_SECONDS)
        assert history.leader.charges("travels") == 500
    assert broken.raised == 2


def test_hd_87_what_stands_in_for_the_template_is_not_believed_beyond_what_a_user_may_write() -> None:
    """HD-87: the annotation of a running local Job is no way round the policies on our labels."""
    history = History(shown=False)
    history.job("one", "stays")
    history.until_runs("one", "Job")
    ours = '{"metadata":{"labels":{"gatelift.dev/workload-uid":"x","team":"a"}},"spec":{"nodeSelector":{"disk":"ssd"}}}'
    history.edit("home", JOB, "one", {"metadata": {"annotations": {"gatelift.dev/template-before": ours}}})
    history.edit("home", JOB, "one", {"spec": {"suspend": True}})
    history.passes(5.0)
    job = history.home.look(JOB, "one")
    assert job is not None
    labels = job["spec"]["template"]["metadata"].get("labels", {})
    assert labels
    assert labels.get("gatelift.dev/workload-uid") != "x"


def test_is_4_what_rests_is_looked_at_again_as_soon_as_its_object_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    broken = Broken(
        monkeypatch, (following, "case_of"), lambda _core, known, *_: known.metadata.name.startswith("pod-bad")
    )
    history.pod("bad")
    history.passes(200.0)
    assert history.workload("bad") is not None
    assert broken.raised < 12, "with growing pauses"
    broken.mend()
    (found,) = [each for each in history.home.all(WORKLOAD) if each["metadata"]["name"].startswith("pod-bad")]
    history.edit("home", WORKLOAD, found["metadata"]["name"], {"metadata": {"labels": {"a": "b"}}})
    history.until("it runs", lambda: history.containers("bad") == 1, 20.0)


def test_is_4_what_a_failed_look_has_asked_for_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that raises behind its write has come to no end: nothing of it goes out, and all is well afterwards."""
    history = History(shown=False)
    written: list[object] = []

    def raises_behind(case: Case) -> None:
        inflight, ref = case.core.inflight, case.rec.ref
        if case.known.metadata.name.startswith("pod-bad") and inflight.busy(ref) and len(written) < 5:
            written.append(inflight.purpose(ref))
            raise OnPurposeError("on purpose")

    monkeypatch.setattr(held, "show", raises_behind)
    history.pod("bad")
    history.pod("good")
    history.until("good runs", lambda: history.containers("good") == 1)
    history.until("it was raised often enough", lambda: len(written) == 5, REST_SECONDS)
    history.until("bad runs", lambda: history.containers("bad") == 1, REST_SECONDS)
    history.passes(5.0)
    assert history.leader.charges("travels") == 1000


@pytest.mark.parametrize("name", ["_key_of", "_from_held", "_most_likely"])
def test_is_3_no_object_stops_a_rebuild_and_what_could_not_be_read_keeps_its_charge(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """IS-3: one object that raises as an agent starts ended that agent for good, and nobody heard of the others."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    for number in range(4):
        history.pod(f"beside-{number}")
    history.until("all run", lambda: all(history.containers(f"beside-{number}") for number in range(4)))
    uid = uid_of(history, "bad")
    broken = Broken(monkeypatch, (rebuilding, name), lambda *args: uid in repr(args))
    history.kill_agent(cluster)
    history.passes(400.0)
    assert broken.raised
    assert history.runs("bad") == {cluster}, "nowhere else"
    assert history.leader.charges("travels") == 2500
    others_go_on(history, "good")
    broken.mend()
    history.kill_agent(cluster)
    history.passes(100.0)
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: history.workload("bad") is None, REST_SECONDS)
    assert history.leader.charges("travels") == 2000


def test_hd_538_what_has_finished_is_acknowledged_though_something_raises_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its worker keeps its object until then: it was taken for a placement that no record knows, for ever."""
    history = History(shown=False)
    history.pod("bad", seconds=5.0)
    cluster = history.until_runs("bad")
    uid = uid_of(history, "bad")
    broken = Broken(monkeypatch, (ClusterWaiters, "wants_no_room"), lambda _, of: of == uid)
    history.until("it is finished", lambda: history.shows("bad", "Finished"), 60.0)
    history.passes(30.0)
    assert broken.raised
    broken.mend()
    history.until("nothing is left of it there", lambda: not history.objects(cluster), REST_SECONDS)
    assert not history.leader.machine.core.caution.named(uid)


@pytest.mark.interpreted
@pytest.mark.parametrize("again", [False, True], ids=["as it starts", "as it runs"])
def test_hd_644_what_one_workload_holds_that_cannot_be_listed_ends_no_manager(
    monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    """All that is charged is made anew after an exception, so that raised as well: a manager that started ended."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(monkeypatch, (Holders, "note"), lambda _all, entry: entry.key.name.startswith("pod-bad"))
    if again:
        history.edit(
            "home", WORKLOAD, str((history.workload("bad") or {})["metadata"]["name"]), {"spec": {"priority": 3}}
        )
    else:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    others_go_on(history, "good")
    assert broken.raised
    assert history.leader.charges("travels") == 500, "it is charged"
    history.delete("home", POD, "bad")
    history.until("it obeys the stop", lambda: history.containers("bad") == 0, 120.0)
    broken.mend()
    history.until("it is gone", lambda: history.workload("bad") is None, REST_SECONDS)
    assert history.leader.charges("travels") == 0


@pytest.mark.interpreted
def test_hd_644_while_what_queues_owe_cannot_be_recalled_nothing_is_decided_and_all_else_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever leads next was to know what is owed to a cohort; it raised as a lead began, and ended each manager."""
    history = History(shown=False)
    history.pod("runs")
    history.until_runs("runs")
    broken = Broken(monkeypatch, (Debts, "recall"), lambda *_: True)
    history.kill_leader()
    try:
        history.until("another leads", history.leads, 120.0)
        history.passes(1.0)
    except OnPurposeError:
        pytest.fail("the manager ends")
    history.pod("waits")
    history.passes(60.0)
    assert broken.raised
    assert history.containers("waits") == 0
    history.delete("home", POD, "runs")
    history.until("it obeys the stop", lambda: history.containers("runs") == 0, 60.0)
    broken.mend()
    history.until("the other one runs", lambda: history.containers("waits") == 1, REST_SECONDS)
