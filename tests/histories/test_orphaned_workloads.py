"""Scripted histories (HD-90): a Workload whose owner reference is gone is still that of the object it was made for."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kinds.shared.made_for import ANNOTATION_OWNER
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.history import History

REST_SECONDS = 200.0
"""Longer than the containers take to stop and a second run to start, with a leader's change in between."""

leaders = pytest.mark.parametrize("leader", ["the leader stays", "the leader dies"])
queues = pytest.mark.parametrize("queue", ["travels", "stays"])


def charged(history: History) -> int:
    """Return the milli-CPU that the leader charges in both queues."""
    return history.leader.charges("travels") + history.leader.charges("stays")


def deleted_with_orphan(kind: str, queue: str, leader: str) -> History:
    """Let an object of 500m run, and delete it so that the garbage collector takes it off what it owns."""
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one", queue=queue, stops_in=25.0)
    history.until_runs("one", kind)
    if leader == "the leader dies":
        history.kill_leader()
    history.delete("home", POD if kind == "Pod" else JOB, "one", propagation="Orphan")
    return history


@leaders
@queues
def test_hd_90_a_job_that_is_deleted_with_orphan_and_made_again_runs_once(queue: str, leader: str) -> None:
    history = deleted_with_orphan("Job", queue, leader)
    history.until("the name is free", lambda: history.home.look(JOB, "one") is None)
    history.job("one", queue="travels")
    history.passes(REST_SECONDS)
    assert history.containers("one", "Job") == 1
    assert charged(history) == 500


@leaders
@queues
@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_90_what_is_deleted_with_orphan_is_stopped_and_leaves_nothing(kind: str, queue: str, leader: str) -> None:
    history = deleted_with_orphan(kind, queue, leader)
    history.until("it has stopped", lambda: history.containers("one", kind) == 0)
    history.until("its quota is free", lambda: charged(history) == 0)
    history.until("its Workload is gone", lambda: not history.home.all(WORKLOAD))


def test_hd_90_a_workload_whose_owner_is_edited_away_goes_on_and_goes_with_its_object() -> None:
    history = History()
    history.job("one")
    history.until_runs("one", "Job")
    (workload,) = history.home.all(WORKLOAD)
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    history.kill_leader()
    history.passes(REST_SECONDS)
    assert history.containers("one", "Job") == 1
    assert charged(history) == 500
    history.delete("home", JOB, "one")
    history.until("its Workload is gone", lambda: not history.home.all(WORKLOAD))
    assert history.containers("one", "Job") == 0


@pytest.mark.parametrize("said", ["", "{", "[]", "7", '{"uid": "x"}', '{"apiVersion": 1}', "x" * 2000, "[" * 1000])
def test_hd_90_an_annotation_that_names_nobody_is_none(said: str) -> None:
    history = History()
    history.job("one")
    history.until_runs("one", "Job")
    (workload,) = history.home.all(WORKLOAD)
    name, edited = workload["metadata"]["name"], {"metadata": {"annotations": {ANNOTATION_OWNER: said}}}
    history.edit("home", WORKLOAD, name, edited)
    history.passes(REST_SECONDS)
    assert history.containers("one", "Job") == 1
    assert charged(history) == 500


def test_hd_90_the_annotation_says_what_the_workload_was_made_for() -> None:
    history = History()
    history.job("one")
    history.until("it has a Workload", lambda: bool(history.home.all(WORKLOAD)))
    (workload,) = history.home.all(WORKLOAD)
    (reference,) = workload["metadata"]["ownerReferences"]
    said = msgspec.json.decode(workload["metadata"]["annotations"][ANNOTATION_OWNER])
    assert said == {each: reference[each] for each in ("apiVersion", "kind", "name", "uid")}
