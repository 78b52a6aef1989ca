"""Histories of people at a worker, on both real cores: labels, sizes, suspensions changed behind our back."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.sim.cluster import Doc
from support.sim.history import History

LONG_SECONDS = 400.0
"""Grace, margin and heartbeats: by then whoever believes that a pod vanished has let its work run elsewhere."""


def _object(history: History, cluster: str, kind: str) -> tuple[Any, Doc]:
    resource = POD if kind == "Pod" else JOB
    [found] = history.objects(cluster, resource)
    return resource, found


def _epoch(history: History, kind: str) -> str:
    workload = history.workload("one", kind)
    assert workload is not None
    return str(workload["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1"))


@pytest.mark.parametrize("restarts", [False, True], ids=["seen", "while the agent is away"])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("label", [LABEL_EPOCH, LABEL_WORKLOAD_UID, LABEL_ORIGIN])
def test_hd_40_a_run_whose_labels_a_person_changes_stays_the_only_one(label: str, kind: str, restarts: bool) -> None:
    history = History()
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    resource, before = _object(history, cluster, kind)
    labels = {name: before["metadata"]["labels"][name] for name in (LABEL_EPOCH, LABEL_WORKLOAD_UID, LABEL_ORIGIN)}
    if restarts:
        history.kill_agent(cluster)
    change = {"metadata": {"labels": {label: "2" if label != LABEL_ORIGIN else None}}}
    history.edit(cluster, resource, before["metadata"]["name"], change)
    history.passes(LONG_SECONDS)
    _, after = _object(history, cluster, kind)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert labels.items() <= after["metadata"]["labels"].items()
    assert (history.runs("one", kind), _epoch(history, kind)) == ({cluster}, "1")


def test_hd_3_a_job_that_a_person_makes_larger_is_as_large_as_it_is_charged_and_finishes() -> None:
    history = History()
    history.job("one", pods=1, seconds=60.0)
    cluster = history.until_runs("one", "Job")
    history.edit(cluster, JOB, "one", {"spec": {"parallelism": 6}})
    history.passes(5.0)
    history.until("it is as large as before", lambda: history.containers("one", "Job") == 1)
    assert _object(history, cluster, "Job")[1]["spec"]["parallelism"] == 1
    history.until("it is finished", lambda: history.shows("one", "Finished", "Job"))
    assert _epoch(history, "Job") == "1"


def test_hd_3_a_job_that_a_person_makes_larger_again_ends_and_runs_anew() -> None:
    history = History()
    history.job("one", pods=1)
    cluster = history.until_runs("one", "Job")
    for parallelism in (6, 5):
        history.edit(cluster, JOB, "one", {"spec": {"parallelism": parallelism}})
        history.passes(5.0)
    history.until("it runs anew", lambda: _epoch(history, "Job") == "2" and history.containers("one", "Job") == 1)
    assert "WorkerObjectEdited" in str(history.workload("one", "Job"))


@pytest.mark.parametrize("restarts", [False, True], ids=["seen", "while the agent is away"])
def test_hd_3_a_job_that_a_person_suspends_is_evicted_and_runs_anew(restarts: bool) -> None:
    history = History()
    history.job("one", pods=2)
    cluster = history.until_runs("one", "Job")
    if restarts:
        history.kill_agent(cluster)
    history.edit(cluster, JOB, "one", {"spec": {"suspend": True}})
    history.until("it runs anew", lambda: _epoch(history, "Job") == "2" and history.containers("one", "Job") == 2)
    assert "WorkerObjectSuspended" in str(history.workload("one", "Job"))


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_74_what_has_finished_and_loses_its_label_before_it_is_forgotten_is_not_left_there(kind: str) -> None:
    history = History()
    (history.pod if kind == "Pod" else history.job)("one", seconds=20.0)
    cluster = history.until_runs("one", kind)
    history.cut(cluster)
    history.until("it has finished", lambda: not history.runs("one", kind))
    history.until_lost(cluster)
    resource, before = _object(history, cluster, kind)
    labels: Doc = {"metadata": {"labels": dict.fromkeys((LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH))}}
    history.edit(cluster, resource, before["metadata"]["name"], labels)
    history.passes(10.0)
    history.mend(cluster)
    history.until("it is shown as finished", lambda: history.shows("one", "Finished", kind))
    history.until("nothing is left", lambda: not history.objects(cluster, resource), 120.0)
