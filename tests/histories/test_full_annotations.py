"""HD-206: whose annotations are full is stopped all the same, at a worker and at home, whoever filled them."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.manager.builders import Doc, a_job
from support.sim.cluster import TEAM
from support.sim.history import History

ANNOTATIONS_BYTES_MAX = 256 * 1024
"""Of all annotations of an object together, keys and values: what an API server takes."""


def annotated(document: Doc) -> int:
    return sum(len(key) + len(value) for key, value in document["metadata"].get("annotations", {}).items())


def fill(history: History, cluster: str, name: str, *, left: int) -> None:
    """Let somebody write annotations of his own until so many bytes are left."""
    (job,) = (each for each in history.objects(cluster, JOB) if each["metadata"]["name"] == name)
    mine = "y" * (ANNOTATIONS_BYTES_MAX - annotated(job) - left - 1)
    history.edit(cluster, JOB, name, {"metadata": {"annotations": {"x": mine}}})


def deactivate(history: History, name: str) -> None:
    workload = history.workload(name, "Job")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})


def gives_its_quota_back(history: History, name: str) -> None:
    def done() -> bool:
        return history.containers(name, "Job") == 0 and not history.shows(name, "QuotaReserved", "Job")

    history.until("it has stopped, and its quota is back", done, 100.0)


@pytest.mark.parametrize("takeover", [False, True], ids=["the same leader", "the next one"])
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_206_a_job_whose_annotations_are_filled_as_it_runs_is_evicted(queue: str, *, takeover: bool) -> None:
    """HD-206: the symptom: evicted, running and charged for ever, whoever waits for its quota."""
    history = History(shown=False)
    history.job("one", queue=queue)
    if queue == "travels":
        where = history.until_runs("one", "Job")
    else:
        where = "home"
        history.until("it runs", lambda: history.containers("one", "Job") > 0)
    history.passes(5.0)
    fill(history, where, "one", left=1)
    history.passes(10.0)
    if takeover:
        history.kill_leader()
        history.until("another leads", history.leads)
    assert history.containers("one", "Job") > 0, "nothing stops it for that"
    deactivate(history, "one")
    gives_its_quota_back(history, "one")


@pytest.mark.parametrize("left", [10, 60, 110, 160, 210, 260])
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_206_a_job_that_is_made_with_full_annotations_keeps_no_quota_when_it_is_deleted(
    queue: str, left: int
) -> None:
    """HD-206: whether it fits at the worker, or can be let go, or neither."""
    history = History(shown=False)
    document = a_job("one", parallelism=1, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    annotations = document["metadata"].setdefault("annotations", {})
    annotations["x"] = "y" * (ANNOTATIONS_BYTES_MAX - annotated(document) - left - 1)
    del document["status"]
    history.home.create(JOB, document)
    history.passes(30.0)
    history.delete("home", JOB, "one")
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 100.0)
    assert history.leader.charges(queue) == 0
    assert not [each for cluster in history.workers for each in history.objects(cluster, JOB)]
    history.pod("next", queue=queue)
    history.until("its quota is another's", lambda: history.shows("next", "Admitted"))
    assert history.objects("home", POD)
