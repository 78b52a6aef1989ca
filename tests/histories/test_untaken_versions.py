"""Scripted histories (IS-4): a version that could not be taken is kept, and taken again; nothing is lost meanwhile.

Neighbour: `test_containment` (what raises later, as something is looked at).
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.api.events import ReadAllDone
from gatelift.core.rules import containment, kept_owner, unrecorded
from gatelift.core.state import predecessors
from gatelift.core.told import telling
from gatelift.core.works import deciding, following, intake, workloads_gone
from gatelift_admission.engine import Engine
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from support.on_purpose import FOR_GOOD, Broken
from support.sim.account import Account
from support.sim.history import History
from support.sim.others import REST_SECONDS, others_go_on


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def is_bads(found: Any) -> bool:
    """Say whether an object is `bad` or its Workload."""
    return bool(found.metadata.name == "bad" or found.metadata.name.startswith("pod-bad"))


def is_gone(history: History) -> bool:
    return history.workload("bad") is None and history.home.look(POD, "bad") is None


@pytest.mark.parametrize("times", [1, 2, 5])
def test_is_4_the_answer_to_a_write_or_a_read_that_raises_ends_no_leader(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """safety-1: the Workload that the manager made itself raised as the answer showed it, at each leader."""
    history = History(shown=False)
    leader = history.leader
    broken = Broken(monkeypatch, (intake, "workload_seen"), lambda _core, found, *_: is_bads(found), times)
    history.pod("bad")
    others_go_on(history, "good")
    history.until("it runs", lambda: history.containers("bad") == 1, 120.0)
    assert broken.raised == times
    assert history.leader is leader


def test_is_4_what_always_raises_as_it_comes_in_costs_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    leader = history.leader
    broken = Broken(
        monkeypatch, (intake, "workload_seen"), lambda _core, found, *_: found.metadata.name.startswith("pod-bad")
    )
    history.pod("bad")
    others_go_on(history, "good")
    history.passes(300.0)
    assert broken.raised < 20, "with growing pauses"
    assert history.leader is leader
    broken.mend()
    history.until("it runs", lambda: history.containers("bad") == 1, REST_SECONDS)


@pytest.mark.parametrize("where", [(telling, "written"), (deciding, "_reserve")], ids=["behind the object", "deciding"])
def test_is_4_what_raises_behind_the_object_of_an_answer_counts_as_not_known(
    monkeypatch: pytest.MonkeyPatch, where: tuple[Any, str]
) -> None:
    history = History(shown=False)
    broken = Broken(monkeypatch, where, lambda _core, about, *_: "pod-bad" in str(about), 2)
    history.pod("bad")
    others_go_on(history, "good")
    history.until("it runs", lambda: history.containers("bad") == 1, 60.0)
    assert broken.raised == 2
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: is_gone(history))
    assert history.leader.charges("travels") == 0


@pytest.mark.parametrize("times", [1, 4])
def test_is_4_a_deletion_that_raised_as_it_came_in_is_carried_out(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """safety-2: nobody ever looked again at a version that raised, though the log said so."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(
        monkeypatch, (kept_owner, "believed"), lambda _c, seen, _k: is_bads(seen) and _is_going(seen), times
    )
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: is_gone(history), 60.0)
    assert broken.raised == times
    assert history.leader.charges("travels") == 0


def _is_going(found: Any) -> bool:
    return found.metadata.deletion_timestamp is not None


@pytest.mark.parametrize("name", ["_owner_seen", "workload_seen"])
def test_is_4_a_stop_is_obeyed_that_stands_in_a_version_that_cannot_be_taken(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(monkeypatch, (intake, name), lambda *args: any(_is_bad_and_going(each) for each in args))
    history.delete("home", POD, "bad")
    if name == "workload_seen":
        history.delete("home", WORKLOAD, str(_workload_name(history)))
    history.until("it has stopped", lambda: history.containers("bad") == 0, 30.0)
    history.passes(120.0)
    assert broken.raised
    assert history.leader.charges("travels") == 500, "and is not called stopped"
    others_go_on(history, "good")
    broken.mend()
    history.until("it is gone", lambda: is_gone(history), REST_SECONDS)
    assert history.leader.charges("travels") == 0


def _is_bad_and_going(found: Any) -> bool:
    return hasattr(found, "metadata") and is_bads(found) and _is_going(found)


def _workload_name(history: History) -> str | None:
    found = history.workload("bad")
    return None if found is None else found["metadata"]["name"]


def test_is_4_a_pod_whose_first_version_raised_gets_its_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    broken = Broken(monkeypatch, (intake, "_mark_owned"), lambda *_: True, 1)
    history.pod("bad")
    history.until("it runs", lambda: history.containers("bad") == 1, 30.0)
    assert broken.raised == 1


@pytest.mark.parametrize(
    "where",
    [(workloads_gone, "_still_placed"), (predecessors, "places_of"), (intake, "_owner_gone")],
    ids=lambda where: where[1],
)
@pytest.mark.parametrize("anew", [False, True], ids=["nothing behind it", "another one of its name"])
def test_is_4_that_something_is_gone_is_taken_again(
    monkeypatch: pytest.MonkeyPatch, where: tuple[object, str], *, anew: bool
) -> None:
    """What was half forgotten is forgotten whole, and what has the name by then is left alone."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(monkeypatch, where, lambda *_, **__: True, 2)
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: is_gone(history))
    if anew:
        history.pod("bad")
        history.until("the next one runs", lambda: history.containers("bad") == 1, 60.0)
    history.passes(30.0)
    assert broken.raised == 2
    assert history.leader.charges("travels") == (500 if anew else 0)
    assert not history.leader.machine.core.untaken
    assert history.containers("bad") == anew


@pytest.mark.parametrize(
    "where",
    [(kept_owner, "believed"), (unrecorded, "charge"), (Engine, "set_ghost"), (intake, "_is_again")],
    ids=lambda where: where[1],
)
@pytest.mark.parametrize("times", [1, FOR_GOOD], ids=["once", "always"])
def test_is_4_what_runs_is_charged_though_a_new_leader_cannot_take_it(
    monkeypatch: pytest.MonkeyPatch, where: tuple[Any, str], times: int
) -> None:
    """safety-4: it ran on uncharged, and its quota was given to others. The outside check compares at each write."""
    history = History(shown=False)
    history.pod("bad", cpu="2000m")
    cluster = history.until_runs("bad")
    uid = str((history.workload("bad") or {})["metadata"]["uid"])
    broken = Broken(monkeypatch, where, lambda *args, **_: any(uid in (each, _uid_of(each)) for each in args), times)
    history.kill_leader()
    history.passes(30.0)
    for number in range(8):
        history.pod(f"good-{number}", cpu="1000m")
    history.passes(60.0)
    assert broken.raised
    assert history.runs("bad") == {cluster}
    assert history.leader.charges("travels") == 3000, "and one of the others has the rest"
    assert (uid in history.leader.machine.core.attempts) is (times == 1), "no attempt is made from half of a record"
    history.kill_agent(cluster)
    history.passes(200.0)
    assert history.runs("bad") == {cluster}, "that it is in no record is not concluded"
    broken.mend()
    history.passes(REST_SECONDS)
    assert history.runs("bad") == {cluster}
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: is_gone(history))


def _uid_of(found: Any) -> str:
    meta = getattr(found, "metadata", None)
    return str(meta.uid) if meta is not None else ""


def test_is_4_a_stop_reaches_what_a_new_leader_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """No attempt is made of it: its record says where it is, and that is told to stop."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    broken = Broken(monkeypatch, (kept_owner, "believed"), lambda _core, seen, _known: is_bads(seen))
    history.kill_leader()
    history.passes(30.0)
    assert history.containers("bad") == 1
    history.delete("home", WORKLOAD, str(_workload_name(history)))
    history.until("it has stopped", lambda: history.containers("bad") == 0, 90.0)
    assert history.leader.charges("travels") == 500
    history.delete("home", POD, "bad")
    broken.mend()
    history.until("it is gone", lambda: is_gone(history), REST_SECONDS)
    assert history.leader.charges("travels") == 0


def test_is_4_all_workloads_are_read_each_by_itself_and_what_raises_is_no_stray(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R3: a placement is dropped when no Workload explains it; one whose Workload raises is explained by nobody yet."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    broken = Broken(monkeypatch, (intake, "workload_seen"), lambda _core, found, *_: is_bads(found))
    history.kill_leader()
    history.passes(30.0)
    found = next(each for each in history.home.all(WORKLOAD) if each["metadata"]["name"].startswith("pod-bad"))
    stored = history.home.find(_ref(found))
    assert stored is not None
    typed = history.home.typed(WORKLOAD, stored)
    core = history.leader.machine.core
    core.doubts.doubt(cluster, _placed(found), "", over=False)
    core.doubts.ask(4711, "", core.now)
    history.leader.process.post(ReadAllDone(read_id=4711, objects=((typed, b"{}"),)))
    history.passes(60.0)
    assert broken.raised > 1
    assert history.runs("bad") == {cluster}
    assert history.containers("bad") == 1


def _ref(found: dict[str, Any]) -> ObjectRef:
    return ObjectRef(WORKLOAD, ObjectKey(found["metadata"]["namespace"], found["metadata"]["name"]))


def _placed(found: dict[str, Any]) -> PlacementKey:
    return PlacementKey(found["metadata"]["uid"], 1)


def test_is_4_while_even_its_record_cannot_be_charged_nothing_is_decided_and_all_else_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(shown=False)
    history.pod("bad", cpu="2000m")
    cluster = history.until_runs("bad")
    history.pod("good", seconds=60.0)
    history.until("good runs", lambda: history.containers("good") == 1)
    monkeypatch.setattr(Account, "compare", lambda *_: None)  # who cannot charge it can say no other figure
    broken = Broken(monkeypatch, (Engine, "workload_changed"), lambda _engine, found, _now: is_bads(found))
    history.kill_leader()
    history.passes(20.0)
    history.pod("waits", cpu="2500m")
    history.until("good is finished", lambda: history.shows("good", "Finished"), 120.0)
    history.passes(200.0)
    assert broken.raised
    assert history.containers("waits") == 0
    said = [each for each in history.world.time.trace if "nothing is decided on quota" in str(each)]
    assert 3 <= len(said) <= 12, "about once a minute"
    assert history.runs("bad") == {cluster}
    broken.mend()
    history.passes(REST_SECONDS)
    assert history.leader.charges("travels") == 2000
    history.delete("home", POD, "bad")
    history.until("the next one runs", lambda: history.containers("waits") == 1)


def test_is_4_a_workload_that_is_gone_is_known_until_all_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A half of it was forgotten, and the other half never: its quota was held for good."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    uid = str((history.workload("bad") or {})["metadata"]["uid"])
    broken = Broken(monkeypatch, (Engine, "workload_removed"), lambda *_: True, 1)
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: is_gone(history))
    core = history.leader.machine.core
    history.until("that was taken again", lambda: broken.raised == 1 and not core.untaken, 10.0)
    assert core.contained.count == 1
    assert not core.knowledge.workloads
    assert core.ledger.engine.phase(uid) is None


def test_is_4_a_queue_whose_change_raised_inside_the_engine_is_taken_again_and_decided_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(shown=False)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "Hold"}})
    history.pod("waits")
    history.passes(10.0)
    assert history.containers("waits") == 0
    broken = Broken(monkeypatch, (Engine, "cluster_queue_changed"), lambda *_: True, 2)
    monkeypatch.setattr(containment, "came_out_of", lambda *_: True)  # it was raised in its place
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "None"}})
    history.passes(0.5)
    assert history.leader.machine.core.untaken.in_doubt
    history.until("it runs", lambda: history.containers("waits") == 1, 30.0)
    assert broken.raised == 2


def test_is_4_no_half_of_an_attempt_stands_while_its_record_cannot_be_taken_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was taken for one that is placed nowhere: what its cluster listed held it for good."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    broken = Broken(monkeypatch, (following, "reserve_of"), is_bads)
    history.kill_leader()
    history.passes(60.0)
    assert broken.raised
    assert not history.leader.machine.core.attempts
    assert history.leader.charges("travels") == 500
    history.delete("home", POD, "bad")
    history.until("it has stopped", lambda: history.containers("bad") == 0, 90.0)
    assert history.leader.charges("travels") == 500
    broken.mend()
    history.until("it is gone", lambda: is_gone(history), REST_SECONDS)
    history.until("its quota is free", lambda: history.leader.charges("travels") == 0)
    assert cluster in history.workers
