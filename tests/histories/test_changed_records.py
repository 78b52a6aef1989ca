"""Scripted histories (HD-136): who may write Workloads takes the record of a run, or its owner, past the policy."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.objects import holds

QUEUES = ["travels", "stays"]
STRIPPED: Doc = {"admission": None, "conditions": []}
ALL_GONE: Doc = {**STRIPPED, "clusterName": None, "admissionChecks": None}


def running(queue: str, **pod: Any) -> History:
    history = History(shown=False)
    history.pod("one", queue, **pod)
    history.until_runs("one")
    history.until("it says so", lambda: history.shows("one", "Admitted"))
    return history


def change(history: History, status: Doc) -> None:
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]
    if status.get("clusterName"):  # the CRD: immutable once set, but for being cleared
        history.edit("home", WORKLOAD, name, {"status": {"clusterName": None}}, "status")
    history.edit("home", WORKLOAD, name, {"status": status}, "status")


def record_of(history: History) -> Doc:
    workload = history.workload("one")
    assert workload is not None
    status = workload["status"]
    return {key: status.get(key) or None for key in ("admission", "clusterName", "admissionChecks")} | {
        each: holds(workload, each) for each in ("QuotaReserved", "Admitted")
    }


FORGED = {
    "admission and conditions": STRIPPED,
    "all": ALL_GONE,
    "conditions": {"conditions": []},
    "the cluster": {"clusterName": "nowhere"},
    "whose run it is": {"admissionChecks": []},
}


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("status", FORGED.values(), ids=[f"HD-136 {each}" for each in FORGED])
def test_a_record_that_is_changed_while_its_run_is_held_stays_charged_and_is_written_back(
    queue: str, status: Doc
) -> None:
    history = running(queue)
    where, before, leader = history.runs("one"), record_of(history), history.leader
    for _ in range(3):
        change(history, status)
        history.passes(0.2)
        assert leader.charges(queue) == 500
        history.until("its status is what it was", lambda: record_of(history) == before)
    history.passes(30.0)
    assert (history.leader, history.runs("one"), record_of(history)) == (leader, where, before)
    history.pod("two", queue)
    history.until_runs("two")


def regrant(history: History, kind: str, how: str) -> None:
    """Write something else into what is granted, around the policy."""
    workload = history.workload("one", kind)
    assert workload is not None
    admission: Doc = copy.deepcopy(workload["status"]["admission"])
    (assigned,) = admission["podSetAssignments"]
    if how == "another queue":
        admission["clusterQueue"] = {"stays": "travels", "travels": "stays"}[admission["clusterQueue"]]
    elif how == "no pods":
        assigned["count"] = 0
    elif how == "another flavor":
        assigned["flavors"] = {"cpu": "other"}
    else:
        assigned["resourceUsage"] = {"cpu": how}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": {"admission": admission}}, "status")


@pytest.mark.parametrize("how", ["no pods", "0", "1m", "another queue", "another flavor"])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("queue", QUEUES)
def test_hd_227_what_is_granted_to_what_runs_is_changed_by_nobody_else(queue: str, kind: str, how: str) -> None:
    history = History(shown=False)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, cpu="2")
    cluster = history.until_runs("one", kind)
    history.passes(5.0)
    before, leader = (history.workload("one", kind) or {})["status"]["admission"], history.leader
    history.pod("two", queue, cpu="1")
    history.passes(5.0)
    beside = history.containers("two")
    for _ in range(3):
        regrant(history, kind, how)
        history.passes(3.0)
        assert leader.charges(queue) == 2000 + 1000 * beside
        assert (history.workload("one", kind) or {})["status"]["admission"] == before
    history.passes(30.0)
    assert (history.leader, history.runs("one", kind), history.containers("two")) == (leader, {cluster}, beside)


@pytest.mark.parametrize("how", ["no pods", "0", "another queue"])
@pytest.mark.parametrize("queue", QUEUES)
def test_hd_227_who_saw_it_as_a_leader_died_puts_it_back(queue: str, how: str) -> None:
    history = running(queue, cpu="2")
    standby = history.world.start_manager()
    history.passes(20.0)
    before = record_of(history)
    history.leader.kill()
    regrant(history, "Pod", how)
    history.until("the next one leads", standby.elector.leads, 60.0)
    history.until("its status is what it was", lambda: record_of(history) == before, 60.0)
    assert standby.charges(queue) == 2000


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_136_what_a_stranger_declares_finished_is_charged_until_it_has_stopped(queue: str) -> None:
    history = running(queue, stops_in=20.0)
    workload = history.workload("one")
    assert workload is not None
    time = workload["metadata"]["creationTimestamp"]
    over = {"type": "Finished", "status": "True", "reason": "Forged", "message": "", "lastTransitionTime": time}
    change(history, {"conditions": [*workload["status"]["conditions"], over]})
    history.passes(5.0)
    assert history.containers("one") == 1
    assert history.leader.charges(queue) == 500
    history.until("it is free", lambda: history.leader.charges(queue) == 0)
    assert history.containers("one") == 0


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("status", [STRIPPED, ALL_GONE], ids=["HD-136 admission", "HD-136 all"])
def test_a_record_that_was_taken_away_while_nobody_led_holds_that_workload_and_no_cluster(
    queue: str, status: Doc
) -> None:
    history = running(queue)
    where = history.runs("one")
    for each in history.world.managers:
        each.kill()
    change(history, status)
    history.until("somebody leads", history.leads)
    history.until("it is charged again", lambda: history.leader.charges(queue) == 500)
    history.pod("two", queue, seconds=20.0)
    history.until("others run and end", lambda: history.shows("two", "Finished"))
    assert not any(history.leader.machine.core.caution.cordons(each) for each in ("local", *history.workers))
    assert (history.runs("one"), history.leader.charges(queue)) == (where, 500)
    workload = history.workload("one")
    assert workload is not None
    said = next(each for each in workload["status"]["conditions"] if each["type"] == "QuotaReserved")
    assert "its status does not say that it was placed there" in said["message"]


@pytest.mark.parametrize("way_out", ["deleted", "epoch raised"])
@pytest.mark.parametrize("queue", QUEUES)
def test_hd_136_what_runs_without_a_record_is_stopped_when_its_object_goes_or_its_epoch_is_raised(
    queue: str, way_out: str
) -> None:
    history = running(queue)
    (where,) = history.runs("one")
    for each in history.world.managers:
        each.kill()
    change(history, STRIPPED)
    history.until("it is charged again", lambda: history.leads() and history.leader.charges(queue) == 500)
    if way_out == "deleted":
        history.delete("home", POD, "one")
        history.until("it has stopped", lambda: history.containers("one") == 0)
    else:
        workload = history.workload("one")
        assert workload is not None
        uid = workload["metadata"]["uid"]
        raised = {"metadata": {"annotations": {"gatelift.dev/epoch": "2"}}}
        history.edit("home", WORKLOAD, workload["metadata"]["name"], raised)
        history.until("that run has ended", lambda: not history.world.truth.live(uid) & {(1, where)})
        if queue == "travels":
            history.until("it runs anew", lambda: (2, *history.runs("one")) in history.world.truth.live(uid))
    history.until(
        "it is charged no more", lambda: history.leader.charges(queue) in {0, 500 * history.containers("one")}
    )


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("status", FORGED.values(), ids=[f"HD-175 {each}" for each in FORGED])
def test_a_record_that_is_taken_away_as_the_leader_changes_is_put_back_by_who_saw_it(queue: str, status: Doc) -> None:
    """HD-175: the next leader waits for nobody, since it saw the Lease move, and its cluster is away."""
    history = running(queue)
    history.world.start_manager()
    history.passes(30.0)
    (where,), before = history.runs("one"), record_of(history)
    if where in history.workers:
        history.cut(where)
    history.kill_leader()
    change(history, status)
    history.until("the other one leads", history.leads)
    for _ in range(600):
        history.passes(0.2)
        assert history.leader.charges(queue) == 500
    assert (history.runs("one"), record_of(history)) == ({where}, before)
    if where in history.workers:
        history.mend(where)
    history.pod("two", queue)
    history.until_runs("two")
    assert (history.runs("one"), record_of(history)) == ({where}, before)


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_175_what_a_leader_gave_back_is_free_for_the_next_one(queue: str) -> None:
    """HD-175: a leader that dies between giving quota back and raising the epoch is no stranger."""
    history = running(queue)
    history.world.start_manager()
    history.passes(30.0)
    leader, workload = history.leader, history.workload("one")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})

    def is_given_back() -> bool:
        return history.shows("one", "QuotaReserved") is False

    history.until("its quota is given back", is_given_back)
    leader.kill()
    history.until("the other one leads", lambda: history.leads() and history.leader is not leader)
    assert history.leader.charges(queue) == 0
    history.passes(30.0)
    assert is_given_back()
    assert not history.runs("one")


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_175_what_was_given_back_while_a_standby_saw_nothing_is_over_since_its_epoch_was_raised(queue: str) -> None:
    """HD-175: and somebody has emptied the status since, so that nothing else says that it was given back."""
    history = History(shown=False)
    history.job("one", queue)
    history.until_runs("one", "Job")
    standby = history.world.start_manager()
    history.passes(20.0)
    standby.stall(60.0, (WORKLOAD,))
    workload = history.workload("one", "Job")
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})

    def epoch() -> str:
        found = history.workload("one", "Job")
        return str(found["metadata"]["annotations"]["gatelift.dev/epoch"]) if found is not None else ""

    history.until("its epoch is raised", lambda: epoch() == "2", 40.0)
    history.edit("home", WORKLOAD, name, {"status": ALL_GONE}, "status")
    history.kill_leader()
    history.until("the other one leads", standby.elector.leads, 60.0)
    history.passes(60.0)
    assert standby.charges(queue) == 0
    assert not [each for each in history.world.time.trace if "no longer what Gatelift wrote" in each]
    assert not history.runs("one", "Job")


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_175_what_is_over_is_no_placement_that_goes_on_whatever_is_taken_away(queue: str) -> None:
    """HD-175: all of the status of what has finished is taken as a leader dies; its object says how it ended."""
    history = running(queue, seconds=5.0)
    history.until("it has finished", lambda: history.shows("one", "Finished"))
    standby = history.world.start_manager()
    history.passes(20.0)
    history.kill_leader()
    change(history, ALL_GONE)
    history.passes(5.0)
    core = standby.machine.core
    assert not any(core.caution.tampered.is_record_changed(uid) for uid in core.knowledge.workload_by_uid)
    history.until("the other one leads", standby.elector.leads, 60.0)
    history.passes(60.0)
    assert standby.charges(queue) == 0
    assert history.shows("one", "Finished")


NOBODYS: Doc = {"ownerReferences": None, "annotations": {"gatelift.dev/owner": None}}
ANOTHERS: Doc = {
    "annotations": {"gatelift.dev/owner": '{"apiVersion":"v1","kind":"Pod","name":"zwei","uid":"never-there"}'}
}


@pytest.mark.parametrize("metadata", [NOBODYS, ANOTHERS], ids=["nobody's", "another's"])
@pytest.mark.parametrize("dies", [False, True], ids=["under a leader", "as a leader dies"])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("queue", QUEUES)
def test_hd_228_a_workload_stays_the_objects_that_it_was_made_for(
    queue: str, kind: str, metadata: Doc, dies: bool
) -> None:
    history = History(shown=False)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, stops_in=15)
    history.until_runs("one", kind)
    if dies:
        history.world.start_manager()
        history.passes(30.0)
        history.kill_leader()
    workload = history.workload("one", kind)
    assert workload is not None
    name, owner = workload["metadata"]["name"], workload["metadata"]["annotations"]["gatelift.dev/owner"]
    history.edit("home", WORKLOAD, name, {"metadata": metadata})
    if dies:
        history.until("the other one leads", history.leads)

    def said() -> str:
        found = history.home.look(WORKLOAD, name, TEAM)
        return str(found["metadata"].get("annotations", {}).get("gatelift.dev/owner")) if found is not None else ""

    history.until("it names its own again", lambda: said() == owner, 60.0)
    history.passes(60.0)
    told = [each for each in history.world.time.trace if "it says no longer for which object" in each]
    assert len(told) == 1, "people are told once"
    assert (history.containers("one", kind), history.leader.charges(queue)) == (1, 500)
    history.delete("home", JOB if kind == "Job" else POD, "one")
    history.until("nothing of it is left", lambda: not history.leader.charges(queue) and not said(), 120.0)
    assert not history.containers("one", kind)
