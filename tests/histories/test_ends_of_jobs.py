"""A Job that says its end while pods of it may run: nothing is given back before they have ended (HD-81)."""

from __future__ import annotations

import pytest

from gatelift_kinds.job.status import STOP_ASKED
from gatelift_kube.values.resources import JOB, NODE, POD, WORKLOAD
from gatelift_sandbox.behaviour import LOST, STOP_SECONDS
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import ON_TERMINAL, History

QUEUES = {"travels": "a worker", "stays": "local"}


def failing_job(history: History, queue: str = "travels", *, stops_in: float = 0.0, deadline: int = 60) -> None:
    """Let a user create a Job of one pod that runs for ever, is not tried again and has a deadline."""
    document = a_job("one", parallelism=1, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    document["spec"] |= {"backoffLimit": 0, "activeDeadlineSeconds": deadline}
    if stops_in:
        document["spec"]["template"]["metadata"]["annotations"] = {STOP_SECONDS: f"{stops_in:g}"}
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


def lose_its_node(history: History, cluster: str) -> None:
    """Cut the node off, cordoned as Kubernetes taints it, and remove the pod by force: its containers run on."""
    node = f"{'home' if cluster == 'local' else cluster}-node"
    history.edit(cluster, NODE, node, {"metadata": {"annotations": {LOST: "true"}}, "spec": {"unschedulable": True}})
    (pod,) = history.objects(cluster, POD)
    history.cluster(cluster).delete(POD, pod["metadata"]["name"], grace_seconds=0)
    history.passes(3.0)


def find_its_node(history: History, cluster: str) -> None:
    """Let the node reach its API server again: its kubelet ends what that no longer has."""
    node = f"{'home' if cluster == 'local' else cluster}-node"
    history.edit(cluster, NODE, node, {"metadata": {"annotations": {LOST: None}}, "spec": {"unschedulable": None}})


@pytest.mark.parametrize("queue", QUEUES, ids=QUEUES.values())
def test_hd_81_a_failed_job_whose_pod_was_removed_by_force_on_a_lost_node_stays_charged(queue: str) -> None:
    history = History(shown=False)
    failing_job(history, queue)
    cluster = history.until_runs("one", "Job")
    lose_its_node(history, cluster)
    history.passes(150.0)
    assert history.containers("one", "Job") == 1
    assert history.leader.charges(queue) == 500, "its containers run"
    assert not history.shows("one", "Finished", "Job")
    find_its_node(history, cluster)
    history.until("it is finished", lambda: history.shows("one", "Finished", "Job"), 600.0)
    assert history.containers("one", "Job") == 0
    assert history.leader.charges(queue) == 0


def test_hd_81_its_successor_of_the_same_name_waits() -> None:
    history = History(shown=False)
    failing_job(history)
    cluster = history.until_runs("one", "Job")
    lose_its_node(history, cluster)
    history.passes(150.0)
    history.delete("home", JOB, "one")
    history.passes(5.0)
    history.job("one")
    history.passes(100.0)
    assert history.containers("one", "Job") == 1
    assert history.runs("one", "Job") <= {cluster}


@pytest.mark.parametrize("queue", QUEUES, ids=QUEUES.values())
def test_hd_81_a_job_that_says_failed_with_pods_that_stop_stays_charged_until_they_have(queue: str) -> None:
    """As the controller of Kubernetes 1.30 says it: with the first pod that it deletes."""
    history = History(shown=False)
    failing_job(history, queue, stops_in=25.0, deadline=10_000)
    cluster = history.until_runs("one", "Job")
    (pod,) = history.objects(cluster, POD)
    history.delete(cluster, POD, pod["metadata"]["name"])
    failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
    history.edit(cluster, JOB, "one", {"status": {"conditions": [failed], "active": 0}}, "status")
    history.passes(5.0)
    assert history.containers("one", "Job") == 1
    assert history.leader.charges(queue) == 500, "its containers run"
    history.until("it is finished", lambda: history.shows("one", "Finished", "Job"), 60.0)
    assert history.containers("one", "Job") == 0


@pytest.mark.parametrize("queue", QUEUES, ids=QUEUES.values())
def test_a_job_that_is_complete_ends_as_soon_as_its_pods_have(queue: str) -> None:
    history = History()
    history.job("one", queue, seconds=20.0)
    history.until_runs("one", "Job")
    history.until("it is finished", lambda: history.shows("one", "Finished", "Job"), 40.0)
    assert history.leader.charges(queue) == 0


def announced(history: History, cluster: str) -> bool:
    """Say whether the Job that runs there has announced its end and has none yet."""
    found = history.cluster(cluster).all(JOB)
    said = {each["type"] for job in found for each in job.get("status", {}).get("conditions", [])}
    return bool(said & {"FailureTarget", "SuccessCriteriaMet"}) and not said & {"Failed", "Complete"}


@pytest.mark.parametrize("how", ["deleted", "deactivated"])
@pytest.mark.parametrize("late", [0.0, 5.0])
@pytest.mark.parametrize("queue", QUEUES, ids=QUEUES.values())
def test_hd_298_a_job_that_is_stopped_while_it_announces_its_end_ends_and_gives_its_quota_back(
    queue: str, late: float, how: str
) -> None:
    history = History(shown=False)
    failing_job(history, queue, stops_in=25.0, deadline=10)
    cluster = history.until_runs("one", "Job")
    history.until("it announces its end", lambda: announced(history, cluster))
    history.passes(late)
    assert announced(history, cluster)
    if how == "deleted":
        history.delete("home", JOB, "one")
    else:
        waits = history.workload("one", "Job")
        assert waits is not None
        history.edit("home", WORKLOAD, waits["metadata"]["name"], {"spec": {"active": False}})
    history.until("its quota is free", lambda: not history.leader.charges(queue), 120.0)
    assert history.containers("one", "Job") == 0
    history.pod("next", queue=queue, cpu="2")
    history.until_runs("next")


@pytest.mark.parametrize("queue", QUEUES, ids=QUEUES.values())
def test_hd_298_a_job_that_announces_its_end_after_its_start_time_was_cleared_gets_one_again(queue: str) -> None:
    """A pod of it fails while it stops, and no more may; or an earlier agent had stopped it too late."""
    history = History(shown=False, file=ON_TERMINAL)
    failing_job(history, queue, stops_in=25.0, deadline=10_000)
    cluster = history.until_runs("one", "Job")
    waits = history.workload("one", "Job")
    assert waits is not None
    history.edit("home", WORKLOAD, waits["metadata"]["name"], {"spec": {"active": False}})

    def conditions() -> list[Doc]:
        (job,) = history.cluster(cluster).all(JOB)
        status = job.get("status", {})
        return [] if "startTime" in status else status.get("conditions", [])

    history.until("its stop is asked for", lambda: any(each["type"] == STOP_ASKED for each in conditions()))
    failed = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded", "message": "too many"}
    kept = [each for each in conditions() if each["type"] != "Suspended"]
    history.edit(cluster, JOB, "one", {"status": {"conditions": [*kept, failed]}}, "status")
    history.until("its quota is free", lambda: not history.leader.charges(queue), 120.0)
    assert history.containers("one", "Job") == 0
