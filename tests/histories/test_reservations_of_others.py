"""Scripted histories (HD-238, 239, 247, 253): past the policy somebody reserves, or keeps a record from going back."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatelift.core import texts
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.embedded.failures import wrong
from gatelift_sandbox.embedded.rules import custom
from gatelift_wire.values.keys import ANNOTATION_EPOCH
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.world import QUEUES

KINDS = {"Pod": POD, "Job": JOB}
SOON_SECONDS = 30.0
"""The containers take fifteen to stop; what is refused has come to longer pauses than the rest by then."""

kinds = pytest.mark.parametrize("kind", KINDS)
queues = pytest.mark.parametrize("queue", ["travels", "stays"])


def says(workload: Doc, type_: str) -> bool:
    return any((one["type"], one["status"]) == (type_, "True") for one in workload["status"].get("conditions", []))


def full(queue: str) -> tuple[History, Doc, Doc]:
    """Let pods fill a queue; return the Workloads of one that runs and of one that waits."""
    history = History(shown=False)
    names = [f"pod-{number}" for number in range(7)]
    for name in names:
        history.pod(name, queue, cpu="2")
        history.passes(3.0)
    history.passes(20.0)
    found = {name: history.workload(name) for name in names}
    runs = next(found[name] for name in names if history.containers(name))
    waits = next(found[name] for name in names if not history.containers(name))
    assert runs is not None
    assert waits is not None
    return history, runs, waits


def reserve(history: History, runs: Doc, waits: Doc, **granted: Any) -> None:
    """Write around the policy that what waits has the quota of what runs, with what is `granted` instead."""
    admission = copy.deepcopy(runs["status"]["admission"])
    admission["podSetAssignments"][0].update({key: value for key, value in granted.items() if key != "clusterQueue"})
    admission["clusterQueue"] = granted.get("clusterQueue", admission["clusterQueue"])
    at = waits["metadata"]["creationTimestamp"]
    said = {"status": "True", "reason": texts.QUOTA_RESERVED, "lastTransitionTime": at}
    others = [one for one in waits["status"].get("conditions", []) if one["type"] != texts.QUOTA_RESERVED]
    conditions = [
        *others,
        {**said, "type": texts.QUOTA_RESERVED, "message": ""},
        {**said, "type": "gatelift.dev/EpochUsed", "message": "1"},
    ]
    status = {"admission": admission, "conditions": conditions}
    history.edit("home", WORKLOAD, waits["metadata"]["name"], {"status": status}, "status")


@queues
@pytest.mark.parametrize("granted", [{}, {"count": 0}, {"flavors": {"cpu": "other"}}, {"clusterQueue": "elsewhere"}])
def test_hd_238_a_reservation_that_its_leader_never_gave_is_none(
    monkeypatch: pytest.MonkeyPatch, queue: str, granted: dict[str, Any]
) -> None:
    """HD-238: what waits goes on waiting, nothing of it runs, and its status is written back, whatever was granted."""
    history, runs, waits = full(queue)
    before, name = history.leader.charges(queue), waits["metadata"]["name"]
    owner = waits["metadata"]["ownerReferences"][0]["name"]
    reserve(history, runs, waits, **granted)
    judged = history.world.truth.check_quota
    with monkeypatch.context() as patch:  # what the status says is a lie until it is written back
        patch.setattr(history.world.truth, "check_quota", lambda *_: None)
        history.passes(20.0)
    judged(QUEUES)
    history.passes(60.0)
    now = history.home.look(WORKLOAD, name, TEAM)
    assert now is not None
    assert (history.containers(owner), history.leader.charges(queue)) == (0, before)
    assert not says(now, texts.QUOTA_RESERVED)
    assert not now["status"].get("admission")
    told = [one for one in history.world.time.trace if "Gatelift has reserved none" in one]
    assert len(told) == 1, "people are told, once"


def more_sets(transitions: Any, old: Any, new: Any) -> list[Any]:
    """Hold to the one rule of the CRD over several fields that this is about; the embedded server leaves those out."""
    found = list(_BROKEN(transitions, old, new))
    status = new.get("status") or {}
    if new.get("kind") != "Workload" or not status.get("admission") or not says(new, texts.QUOTA_RESERVED):
        return found
    if len(new["spec"]["podSets"]) != len(status["admission"]["podSetAssignments"]):
        found.append(wrong("", "object", "the admission must assign each pod set while QuotaReserved is True"))
    return found


_BROKEN: Any = custom.__dict__["broken"]


@kinds
@queues
@pytest.mark.parametrize("how", ["is left alone", "is deleted", "is deactivated"])
def test_hd_239_what_ends_it_does_not_wait_for_a_record_that_cannot_be_put_back(
    monkeypatch: pytest.MonkeyPatch, kind: str, queue: str, how: str
) -> None:
    """HD-239: its reservation is taken, one more pod set is put in, and the API server refuses the record for ever."""
    monkeypatch.setattr(custom, "broken", more_sets)
    history = History(shown=False)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, stops_in=15)
    history.until_runs("one", kind)
    history.passes(5.0)
    workload = history.workload("one", kind)
    assert workload is not None
    name, sets = workload["metadata"]["name"], workload["spec"]["podSets"]
    history.edit("home", WORKLOAD, name, {"status": {"admission": None, "conditions": []}}, "status")
    history.edit("home", WORKLOAD, name, {"spec": {"podSets": [*sets, {**copy.deepcopy(sets[0]), "name": "more"}]}})
    if how == "is deleted":
        history.delete("home", KINDS[kind], "one")
        history.until("its Workload is gone", lambda: history.home.look(WORKLOAD, name, TEAM) is None, SOON_SECONDS)
    elif how == "is deactivated":
        history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    if how == "is left alone":  # it fits no more what was admitted: queued anew as it is, but for a pod at home
        history.passes(2 * SOON_SECONDS)
        runs = 0 if (kind, queue) == ("Pod", "stays") else 1
        assert (history.containers("one", kind), history.leader.charges(queue)) == (runs, 500 * runs)
        assert history.shows("one", "Admitted", kind) == bool(runs)
        return
    history.until("it has stopped", lambda: not history.containers("one", kind), SOON_SECONDS)
    history.until("its quota is free", lambda: not history.leader.charges(queue), SOON_SECONDS)
    tries = [each for each in history.world.time.trace if "put the record back" in each]
    assert len(tries) < 20, "it is tried again at a pace"


@queues
def test_hd_239_an_end_is_written_where_the_record_cannot_be_put_back(
    monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """HD-239: somebody's webhook takes no reservation for it any more; it runs, is charged, and ends by itself."""
    history = History(shown=False)
    history.pod("one", queue, seconds=60.0)
    history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]

    def no_reservation(transitions: Any, old: Any, new: Any) -> list[Any]:
        found = list(_BROKEN(transitions, old, new))
        if new["metadata"].get("name") == name and (new.get("status") or {}).get("admission"):
            found.append(wrong("", "object", "no reservation for this one"))
        return found

    monkeypatch.setattr(custom, "broken", no_reservation)
    history.edit("home", WORKLOAD, name, {"status": {"admission": None, "conditions": []}}, "status")
    history.passes(20.0)
    assert (history.containers("one"), history.leader.charges(queue)) == (1, 500)
    history.until("its quota is free", lambda: not history.leader.charges(queue), 60.0 + SOON_SECONDS)
    now = history.home.look(WORKLOAD, name, TEAM)
    assert now is None or says(now, texts.FINISHED)


def later(status: Doc, epoch: int) -> Doc:
    """Return what a status grants, as of a later epoch, and nothing of it."""
    said = copy.deepcopy(status)
    said["admission"]["podSetAssignments"][0]["count"] = 0
    for one in said["conditions"]:
        if one["type"] == "gatelift.dev/EpochUsed":
            one["message"] = str(epoch)
    for check in said.get("admissionChecks", []):
        for update in check.get("podSetUpdates", []):
            if ANNOTATION_EPOCH in update.get("annotations", {}):
                update["annotations"][ANNOTATION_EPOCH] = str(epoch)
    return {name: said[name] for name in ("admission", "conditions", "admissionChecks") if name in said}


@queues
def test_hd_247_a_standby_believes_no_later_epoch_that_nobody_has_raised_it_to(queue: str) -> None:
    """HD-247: as a leader dies, what runs is written as granted anew, in a later epoch, and with no pods."""
    history, standby, workload = _runs_beside_a_standby("Pod", queue)
    history.kill_leader()
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": later(workload["status"], 5)}, "status")
    history.until("the standby leads", standby.elector.leads, 60.0)
    history.passes(120.0)
    now = history.workload("one")
    assert now is not None
    assert (history.containers("one"), standby.charges(queue)) == (1, 2000)
    assert now["status"]["admission"] == workload["status"]["admission"]


def _runs_beside_a_standby(kind: str, queue: str) -> tuple[History, SimManager, Doc]:
    """Let one object run; return the history, a standby that has seen what was granted, and the Workload."""
    history = History(shown=False)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, cpu="2")
    history.until_runs("one", kind)
    standby = history.world.start_manager()
    history.passes(20.0)
    workload = history.workload("one", kind)
    assert workload is not None
    return history, standby, workload


@kinds
@queues
@pytest.mark.parametrize(
    ("epoch", "reserves"),
    [
        pytest.param(5, True, id="of a later epoch, and reserved in it"),
        pytest.param(5, False, id="of an epoch that nobody has raised it to"),
        pytest.param(1, True, id="of the epoch that it still reserves"),
    ],
)
def test_hd_253_a_standby_believes_no_epoch_given_back_that_cannot_have_been(
    kind: str, queue: str, epoch: int, *, reserves: bool
) -> None:
    """HD-253: its mark says *given back*, as it does when a leader ends a placement."""
    history, standby, workload = _runs_beside_a_standby(kind, queue)
    history.kill_leader()
    said = later(workload["status"], epoch)
    said["conditions"] = [one for one in said["conditions"] if one["type"] != "gatelift.dev/EpochUsed"]
    at = workload["metadata"]["creationTimestamp"]
    back = {"status": "True", "reason": "ReservationReturned", "message": str(epoch), "lastTransitionTime": at}
    said["conditions"].append({"type": "gatelift.dev/EpochUsed", **back})
    if not reserves:
        said = {"admission": None, "clusterName": None, "conditions": said["conditions"][-1:]}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": said}, "status")
    history.until("the standby leads", standby.elector.leads, 60.0)
    history.passes(120.0)
    now = history.workload("one", kind) or {}
    assert (history.containers("one", kind), standby.charges(queue)) == (1, 2000)
    assert now["status"]["admission"] == workload["status"]["admission"]


@kinds
@queues
def test_hd_253_an_epoch_that_is_raised_grants_nothing_otherwise(kind: str, queue: str) -> None:
    """HD-253: a grant of no pods in its own epoch, and then the annotation is raised."""
    history, standby, workload = _runs_beside_a_standby(kind, queue)
    name = workload["metadata"]["name"]
    history.kill_leader()
    history.edit("home", WORKLOAD, name, {"status": later(workload["status"], 1)}, "status")
    history.passes(0.5)
    history.edit("home", WORKLOAD, name, {"metadata": {"annotations": {ANNOTATION_EPOCH: "5"}}})
    history.until("the standby leads", standby.elector.leads, 60.0)
    history.passes(120.0)
    now = history.workload("one", kind) or {}
    assert (history.containers("one", kind), standby.charges(queue)) == (1, 2000)
    assert now["status"]["admission"] == workload["status"]["admission"]
