"""A Job loses its queue's name, around webhooks and policies: it is stopped, charged until then, and its user's."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.manager.builders import a_job
from support.sim.cluster import TEAM
from support.sim.history import History

NO_QUEUE = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}}
MANAGERS = (pytest.param(None, id="nobody"), pytest.param("kubernetes.io/job-controller", id="the Job controller"))


def take_queue_off(history: History, name: str = "one") -> None:
    """Let somebody take the queue's name off a Job."""
    history.edit("home", JOB, name, NO_QUEUE)


def suspended(history: History, name: str = "one") -> bool:
    """Say whether the user's Job is suspended."""
    found = history.home.look(JOB, name)
    return found is not None and found["spec"]["suspend"] is True


def job_that_runs_at_home(history: History, manager: str | None) -> None:
    """Let a user create a Job in a queue of worker clusters that names the manager of its pods itself."""
    document = a_job("one", parallelism=2, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "travels"
    document["spec"].pop("managedBy")
    if manager is not None:
        document["spec"]["managedBy"] = manager
    del document["status"]
    history.home.create(JOB, document)


@pytest.mark.parametrize("stops_in", [0.0, 25.0])
def test_hd_107_a_job_at_home_without_its_queue_is_stopped_and_charged_until_then(stops_in: float) -> None:
    history = History(shown=False)
    history.job("one", queue="stays", stops_in=stops_in)
    history.until_runs("one", "Job")
    take_queue_off(history)
    for _ in range(60):
        history.passes(1.0)
        assert history.containers("one", "Job") * 500 <= history.leader.charges("stays"), "runs uncharged"
    assert suspended(history), "stopped, not failed"
    assert not history.runs("one", "Job")
    assert history.workload("one", "Job") is None, "it is none of ours any more"
    assert history.leader.charges("stays") == 0


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_107_a_job_that_left_its_queue_while_nobody_led_is_stopped_too(queue: str) -> None:
    history = History(shown=False)
    history.job("one", queue=queue, stops_in=20.0)
    history.until_runs("one", "Job")
    history.kill_leader()
    take_queue_off(history)
    history.until("nothing of it runs", lambda: not history.runs("one", "Job"), 180.0)
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 60.0)
    assert suspended(history)


def test_hd_107_what_left_its_queue_and_has_stopped_is_its_users_to_start_and_to_queue_again() -> None:
    history = History(shown=False)
    history.job("one", queue="stays")
    history.until_runs("one", "Job")
    take_queue_off(history)
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 60.0)
    history.passes(30.0)
    assert suspended(history)
    history.edit("home", JOB, "one", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "stays"}}})
    history.until("it runs again", lambda: history.containers("one", "Job") == 1, 90.0)
    assert history.leader.charges("stays") == 500


def test_hd_107_unsuspended_by_hand_while_it_stops_it_is_stopped_all_the_same() -> None:
    history = History(shown=False)
    history.job("one", queue="stays", stops_in=20.0)
    history.until_runs("one", "Job")
    take_queue_off(history)
    history.passes(5.0)
    history.edit("home", JOB, "one", {"spec": {"suspend": False}})
    history.until("nothing of it runs", lambda: suspended(history) and not history.runs("one", "Job"), 120.0)
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 60.0)


def test_hd_107_a_job_that_waits_and_leaves_its_queue_gets_no_quota() -> None:
    history = History(shown=False)
    history.job("one", queue="stays", cpu="2", pods=5)
    history.passes(5.0)
    take_queue_off(history)
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 60.0)
    assert suspended(history)


def test_hd_107_jobs_that_were_never_queued_are_left_alone() -> None:
    history = History()
    document = a_job("one", cpu="500m")
    document["metadata"]["namespace"] = TEAM
    del document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], document["spec"]["managedBy"], document["status"]
    document["spec"]["suspend"] = False
    history.home.create(JOB, document)
    history.passes(20.0)
    generation = (history.home.look(JOB, "one") or {})["metadata"]["generation"]
    pods = {each["metadata"]["uid"] for each in history.objects("home", POD)}
    history.kill_leader()
    history.passes(120.0)
    assert (history.home.look(JOB, "one") or {})["metadata"]["generation"] == generation
    assert not history.home.all(WORKLOAD)
    assert {each["metadata"]["uid"] for each in history.objects("home", POD)} == pods
    assert len(pods) == 2


# --- a Job whose pods the management cluster would make --------------------------------------------------------------


@pytest.mark.parametrize("manager", MANAGERS)
def test_hd_106_a_job_that_its_own_cluster_would_run_goes_to_no_worker(manager: str | None) -> None:
    history = History(shown=False)
    job_that_runs_at_home(history, manager)
    history.passes(30.0)
    assert not history.runs("one", "Job")
    workload = history.workload("one", "Job") or {}
    said = {each["type"]: each for each in workload["status"]["conditions"]}["QuotaReserved"]
    assert said["status"] == "False"
    assert said["reason"] == "Misconfigured"
    assert f'Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not "{manager or ""}"' in said["message"]
    assert history.leader.charges("travels") == 0
