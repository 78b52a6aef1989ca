"""Scripted histories of sizes: what is charged for a Job is what its spec lets run, whatever its annotations say."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import History

BEFORE = "gatelift.dev/parallelism-before"
QUEUES = pytest.mark.parametrize("queue", ["stays", "travels"])


def queued(history: History, queue: str, *, parallelism: int, annotations: dict[str, str]) -> None:
    """Let a user create a Job of pods of one CPU that run for long."""
    document = a_job("work", parallelism=parallelism, completions=parallelism, cpu="1")
    metadata: Doc = document["metadata"]
    metadata["namespace"] = TEAM
    metadata["labels"]["kueue.x-k8s.io/queue-name"] = queue
    metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    document["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: "600"}
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


def charged(history: History) -> int:
    """Return for how many pods the Job holds quota."""
    workload = history.workload("work", "Job") or {}
    assigned = workload.get("status", {}).get("admission", {}).get("podSetAssignments", [])
    return sum(one["count"] for one in assigned)


@QUEUES
@pytest.mark.parametrize(
    "said", ['{"parallelism":1}', '{"parallelism":1,"completions":2}', '{"parallelism":9,"completions":1}']
)
def test_hd_131_a_job_that_says_that_it_was_smaller_is_charged_for_what_it_has(queue: str, said: str) -> None:
    history = History(shown=False)
    queued(history, queue, parallelism=2, annotations={BEFORE: said})
    most = 0
    for _ in range(60):
        history.passes(0.5)
        running = history.containers("work", "Job")
        assert running <= charged(history), "no more runs than is charged"
        most = max(most, running)
    assert most == 2


@QUEUES
def test_hd_131_nor_is_it_started_when_it_says_so_after_its_admission(queue: str) -> None:
    history = History(shown=False)
    queued(history, queue, parallelism=1, annotations={})
    history.until("it is admitted", lambda: charged(history) == 1)
    history.edit(
        "home", JOB, "work", {"metadata": {"annotations": {BEFORE: '{"parallelism":1}'}}, "spec": {"parallelism": 3}}
    )
    for _ in range(80):
        history.passes(0.5)
        assert history.containers("work", "Job") <= max(charged(history), 1)


@QUEUES
def test_hd_218_a_job_that_runs_with_fewer_and_is_suspended_with_a_new_size_is_queued_with_that(queue: str) -> None:
    history = History(shown=False)
    asked = 40  # more than there is room for
    queued(history, queue, parallelism=asked, annotations={"kueue.x-k8s.io/job-min-parallelism": "1"})
    history.until("it runs with fewer", lambda: 1 < history.containers("work", "Job") < asked, 120.0)
    room = charged(history)
    history.until("all of them run", lambda: history.containers("work", "Job") == room)
    history.edit("home", JOB, "work", {"spec": {"suspend": True, "parallelism": room - 1}})
    history.until("it runs with its new size", lambda: history.containers("work", "Job") == room - 1, 120.0)
    (work,) = history.objects("home", JOB)
    assert (work["spec"]["parallelism"], charged(history)) == (room - 1, room - 1)


@QUEUES
def test_hd_132_a_deleted_pod_is_replaced_when_it_has_stopped(queue: str) -> None:
    history = History(shown=False)
    history.job("work", queue, pods=2, stops_in=25.0)
    cluster = history.until_runs("work", "Job")
    history.until("both run", lambda: history.containers("work", "Job") == 2)
    for _ in range(3):
        for pod in history.objects(cluster, POD):
            history.delete(cluster, POD, pod["metadata"]["name"])
        for _ in range(30):
            history.passes(0.5)
            assert history.containers("work", "Job") <= 2, "no more runs than is charged"
    history.until("both run again", lambda: history.containers("work", "Job") == 2)
    history.passes(60.0)
    assert history.containers("work", "Job") == 2
