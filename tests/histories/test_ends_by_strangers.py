"""Whoever may patch the status of pods or Jobs at home writes an end there: what runs on a worker stays charged."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.cluster import Doc
from support.sim.history import History

DONE: Doc = {"status": "True", "reason": "as", "message": "told", "lastTransitionTime": "2026-11-18T11:30:00Z"}
COMPLETE = [{**DONE, "type": "SuccessCriteriaMet"}, {**DONE, "type": "Complete"}]
FAILED = [{**DONE, "type": "FailureTarget"}, {**DONE, "type": "Failed"}]
LEFT: Doc = {"active": 0, "ready": 0, "terminating": 0, "startTime": "2026-11-18T11:00:00Z"}
ENDS: tuple[object, ...] = (
    pytest.param(POD, {"phase": "Succeeded"}, id="pod"),
    pytest.param(POD, {"phase": "Failed", "reason": "Evicted"}, id="failed pod"),
    pytest.param(
        JOB, {**LEFT, "conditions": COMPLETE, "succeeded": 1, "completionTime": "2026-11-18T11:30:00Z"}, id="job"
    ),
    pytest.param(JOB, {**LEFT, "conditions": FAILED, "failed": 1}, id="failed job"),
)


def that_runs(resource: Resource, *, seconds: float = 0.0) -> tuple[History, str]:
    """Return a history in which an object runs on a worker, and the worker."""
    history = History(shown=False)
    if resource == POD:
        history.pod("one", seconds=seconds)
    else:
        history.job("one", seconds=seconds)
    return history, history.until_runs("one", resource.kind)


def charged(history: History, resource: Resource) -> bool:
    """Say whether the object's Workload holds quota."""
    return history.shows("one", "QuotaReserved", resource.kind) and not history.shows("one", "Finished", resource.kind)


@pytest.mark.parametrize(("resource", "status"), ENDS)
@pytest.mark.parametrize("cut", [True, False], ids=["cut off", "connected"])
def test_hd_108_an_end_that_a_stranger_wrote_frees_nothing_of_what_runs(
    resource: Resource, status: Doc, cut: bool
) -> None:
    history, cluster = that_runs(resource)
    history.passes(5.0)
    if cut:
        history.cut(cluster)
    history.edit("home", resource, "one", {"status": status}, "status")
    for _ in range(20):
        history.passes(3.0)
        assert charged(history, resource) or not history.runs("one", resource.kind), "its quota is free while it runs"
    assert history.containers("one", resource.kind) == 1
    history.kill_leader()
    history.passes(120.0)
    assert history.containers("one", resource.kind) == 1
    assert charged(history, resource), "nor does the next leader believe it"


@pytest.mark.parametrize(("resource", "status"), ENDS)
def test_hd_108_the_end_that_its_cluster_says_is_taken(resource: Resource, status: Doc) -> None:
    history, _ = that_runs(resource, seconds=60.0)
    history.edit("home", resource, "one", {"status": status}, "status")
    history.until("it finishes", lambda: history.shows("one", "Finished", resource.kind), 180.0)
    assert not history.runs("one", resource.kind)
    history.until("it gives its quota back", lambda: history.leader.charges("travels") == 0, 30.0)


@pytest.mark.parametrize(("resource", "status"), ENDS)
def test_hd_108_what_is_deleted_then_is_stopped_as_ever(resource: Resource, status: Doc) -> None:
    history, _ = that_runs(resource)
    history.edit("home", resource, "one", {"status": status}, "status")
    history.passes(10.0)
    history.delete("home", resource, "one")
    history.until("nothing of it runs", lambda: not history.runs("one", resource.kind), 120.0)
    history.until("it is gone", lambda: history.home.look(resource, "one") is None, 60.0)
    assert history.leader.charges("travels") == 0


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_363_finished_that_somebody_takes_off_is_written_again_and_nothing_is_charged(
    queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was charged for an epoch that was over, and raised each time that it was looked at."""
    monkeypatch.setattr(Contained, "surfaces", False)
    history = History(shown=False)
    history.world.truth._transition = lambda *_, **__: None  # type: ignore[method-assign]  # a person's
    history.pod("one", queue, seconds=3.0)
    history.until("it is finished", lambda: history.shows("one", "Finished"))
    history.passes(5.0)
    found = history.workload("one")
    assert found is not None
    left = [each for each in found["status"]["conditions"] if each["type"] != "Finished"]
    history.edit("home", WORKLOAD, found["metadata"]["name"], {"status": {"conditions": left}}, "status")
    history.passes(5.0)
    assert history.shows("one", "Finished")
    assert history.leader.charges(queue) == 0
    assert "InternalError" not in history.leader.told
    history.delete("home", POD, "one")
    history.until("its Workload is gone", lambda: history.workload("one") is None, 60.0)
