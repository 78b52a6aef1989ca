"""What the pods of a Job request when they run is what it is charged for."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, LIMIT_RANGE, POD, WORKLOAD
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import History


def create(history: History, queue: str, resources: Doc, *, pods: int) -> None:
    """Let a user create a Job whose one container says `resources`."""
    document = a_job("work", parallelism=pods, completions=pods)
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_152_a_job_with_limits_only_is_charged_what_its_pods_request(queue: str) -> None:
    history = History(shown=False)
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}}
    history.home.create(LIMIT_RANGE, {"metadata": {"name": "small", "namespace": TEAM}, "spec": {"limits": [item]}})
    history.passes(2.0)
    create(history, queue, {"limits": {"cpu": "1"}}, pods=2)
    history.until_runs("work", "Job")
    history.until("both run", lambda: history.containers("work", "Job") == 2)
    assert history.leader.charges(queue) == 2000


def asks(history: History, cpu: str) -> None:
    """Let the user of the suspended Job give its container another request (Kubernetes 1.36)."""
    job = history.home.look(JOB, "work")
    assert job is not None
    containers = job["spec"]["template"]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": cpu}}
    history.edit("home", JOB, "work", {"spec": {"template": {"spec": {"containers": containers}}}})


def raised_as_quota_comes(queue: str, after: float) -> History:
    """Let a Job wait for what a pod has, and ask for more than there is `after` that pod is deleted."""
    history = History(shown=False)
    history.pod("first", queue=queue, cpu="3" if queue == "travels" else "2")
    history.until_runs("first")
    history.job("work", queue=queue, cpu="100m", pods=2)
    history.passes(10.0)
    assert not history.shows("work", "QuotaReserved", "Job")
    history.delete("home", POD, "first")
    if after:
        history.passes(after)
    asks(history, "5")
    history.passes(60.0)
    return history


@pytest.mark.parametrize("after", [0.0, 0.02, 0.03, 0.042])
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_153_requests_that_are_raised_as_quota_is_reserved_are_charged(queue: str, after: float) -> None:
    history = raised_as_quota_comes(queue, after)
    assert history.containers("work", "Job") == 0
    assert history.leader.charges(queue) == 0


@pytest.mark.parametrize(("queue", "after"), [("stays", 0.02), ("travels", 0.042)])
def test_hd_153_a_reservation_is_written_beside_nothing_but_what_it_was_made_for(queue: str, after: float) -> None:
    """The moments in which the Workload follows its Job while quota is reserved in memory: nothing has to be ended."""
    workload = raised_as_quota_comes(queue, after).workload("work", "Job")
    assert workload is not None
    assert "schedulingStats" not in workload["status"], "it was admitted for what it asked before"


def test_hd_154_a_job_at_home_is_not_let_go_with_requests_that_were_raised_after_its_admission() -> None:
    """The manager's watch of Jobs stands still, so that its agent is the only one to see the edit."""
    history = History(shown=False)
    history.pod("first", queue="stays", cpu="2")
    history.until_runs("first")
    history.job("work", queue="stays", cpu="100m", pods=2)
    history.passes(10.0)
    history.leader.stall(40.0, (JOB,))
    history.passes(1.0)
    asks(history, "5")
    history.delete("home", POD, "first")
    history.passes(80.0)
    assert history.containers("work", "Job") == 0
    assert history.leader.charges("stays") == 0


@pytest.mark.parametrize("after", [0.0, 60.0])
@pytest.mark.parametrize("label", [{}, {"kueue.x-k8s.io/priority-class": "absent"}])
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_296_a_waiting_pod_whose_workload_is_edited_to_ask_for_less_is_charged_what_it_asks(
    queue: str, label: dict[str, str], after: float
) -> None:
    history = History(shown=False)
    history.pod("first", queue=queue, cpu="3" if queue == "travels" else "2")
    history.until_runs("first")
    history.pod("work", queue=queue, cpu="1500m")
    history.passes(10.0)
    if label:
        history.edit("home", POD, "work", {"metadata": {"labels": label}})
        history.passes(1.0)
    waits = history.workload("work")
    assert waits is not None
    sets = waits["spec"]["podSets"]
    sets[0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    history.edit("home", WORKLOAD, waits["metadata"]["name"], {"spec": {"podSets": sets}})
    if after:
        history.passes(after)
    history.delete("home", POD, "first")
    history.until_runs("work")
    assert history.leader.charges(queue) == 1500
