"""Histories of Jobs that a person lets go at a worker, on both real cores, where nothing allows them to run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.history import History

RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["seen", "while the agent is away"])


def suspended(history: History, cluster: str) -> bool:
    """Say whether the worker's Job is suspended."""
    [job] = history.objects(cluster, JOB)
    return job["spec"]["suspend"] is True


def start_by_hand(history: History, cluster: str) -> None:
    """Let a person let the worker's Job go, around the worker's policy."""
    history.edit(cluster, JOB, "one", {"spec": {"suspend": False}})


def epoch(history: History) -> str:
    workload = history.workload("one", "Job")
    assert workload is not None
    return str(workload["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1"))


def stopped_unheard() -> tuple[History, str]:
    """Return a history with a Job that somebody suspended at a worker that is cut off, and that cluster."""
    history = History()
    history.job("one", pods=2)
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    history.edit(cluster, JOB, "one", {"spec": {"suspend": True}})
    history.until("nothing of it runs", lambda: not history.runs("one", "Job"), 60.0)
    history.until_lost(cluster)
    return history, cluster


@RESTARTS
def test_hd_70_a_job_that_was_stopped_and_waits_to_be_forgotten_is_stopped_again(restarts: bool) -> None:
    history, cluster = stopped_unheard()
    if restarts:
        history.kill_agent(cluster)
    start_by_hand(history, cluster)
    history.until("it is suspended again", lambda: suspended(history, cluster), 40.0)
    history.until("nothing of it runs again", lambda: not history.runs("one", "Job"), 60.0)
    history.mend(cluster)
    history.until("it runs anew", lambda: epoch(history) == "2" and history.containers("one", "Job") == 2)


def test_hd_71_a_stop_of_the_agents_own_is_not_lost_with_its_process() -> None:
    history, cluster = stopped_unheard()
    history.kill_agent(cluster)
    history.mend(cluster)
    history.until("it runs anew", lambda: epoch(history) == "2" and history.containers("one", "Job") == 2)
    assert "WorkerObjectStopped" in str(history.workload("one", "Job"))


def test_hd_71_a_stop_that_the_manager_asked_for_keeps_its_cause() -> None:
    history = History()
    history.job("one", pods=2, stops_in=20.0)
    cluster = history.until_runs("one", "Job")
    name = (history.workload("one", "Job") or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it is being stopped", lambda: suspended(history, cluster), 30.0)
    history.kill_agent(cluster)
    history.until("it is evicted", lambda: not history.shows("one", "QuotaReserved", "Job"))
    assert not history.runs("one", "Job")
    assert "WorkerObjectStopped" not in str(history.workload("one", "Job"))


def _each_time(act: Callable[[History, str], None], history: History, cluster: str) -> Callable[[object, object], None]:
    """Return what a store calls at each write of a cluster."""
    return lambda _storage, _change: act(history, cluster)


def held_back_at_a_lost_cluster(history: History) -> str:
    """Let the agent stand still with a Job made and not let go, until its cluster is lost; return the cluster."""
    for name, worker in history.workers.items():
        worker.store.listen(_each_time(_stand_still_with_a_job, history, name))
    history.job("one", pods=2)
    history.until("a Job is made", lambda: any(history.objects(name, JOB) for name in history.workers))
    [cluster] = [name for name in history.workers if history.objects(name, JOB)]
    history.until_lost(cluster)
    history.agent(cluster).wake()
    history.passes(30.0)
    assert suspended(history, cluster)
    assert not history.runs("one", "Job")
    return cluster


def _stand_still_with_a_job(history: History, cluster: str) -> None:
    job = next(iter(history.objects(cluster, JOB)), None)
    if job is not None and job["metadata"]["generation"] == 1 and epoch(history) == "1" and not history.world.net.cut:
        history.cut(cluster)
        history.agent(cluster).pause()


def test_hd_72_a_job_that_may_not_start_yet_and_is_let_go_by_a_person_is_stopped_again() -> None:
    history = History()
    cluster = held_back_at_a_lost_cluster(history)
    start_by_hand(history, cluster)
    history.until("it is suspended again", lambda: suspended(history, cluster), 10.0)
    history.until("nothing of it runs", lambda: not history.objects(cluster, POD), 60.0)
    history.mend(cluster)
    history.until("it runs anew", lambda: epoch(history) == "2" and history.containers("one", "Job") == 2)
    assert "WorkerObjectStarted" in str(history.workload("one", "Job"))


def test_hd_72_a_job_that_may_start_and_is_let_go_by_a_person_runs_as_it_was_placed() -> None:
    history = History()
    for name, worker in history.workers.items():
        worker.store.listen(_each_time(_let_go_first, history, name))
    history.job("one", pods=2, seconds=20.0)
    history.until("both run", lambda: history.containers("one", "Job") == 2)
    history.until("it is finished", lambda: history.shows("one", "Finished", "Job"))
    assert epoch(history) == "1"


def _let_go_first(history: History, cluster: str) -> None:
    """Let a person let the Job go in the moment in which it was made."""
    jobs = history.objects(cluster, JOB)
    if jobs and jobs[0]["metadata"]["generation"] == 1:
        history.world.time.after(0.0, lambda: start_by_hand(history, cluster))


# --- at home ---------------------------------------------------------------------------------------------------------


def admitted_and_let_go_by_its_user(history: History) -> None:
    """Let a Job be admitted at `local`, and let its user let it go in that moment, around the webhook."""
    history.home.store.listen(_each_time(_let_go_once_admitted, history, "home"))
    history.job("one", "stays", pods=2)
    history.until("both run", lambda: history.containers("one", "Job") == 2)


def _let_go_once_admitted(history: History, _: str) -> None:
    job = history.home.look(JOB, "one")
    if job is not None and job["metadata"]["generation"] == 1 and history.shows("one", "Admitted", "Job"):
        history.world.time.after(0.0, lambda: start_by_hand(history, "home"))


def labelled(history: History) -> bool:
    """Say whether all pods of the Job at home carry the labels of its placement."""
    return all("gatelift.dev/workload-uid" in each["metadata"]["labels"] for each in history.objects("home", POD))


def test_hd_73_a_local_job_that_its_user_lets_go_before_we_do_runs_with_the_labels_of_its_placement() -> None:
    history = History()
    admitted_and_let_go_by_its_user(history)
    history.until("its pods are known", lambda: history.containers("one", "Job") == 2 and labelled(history), 60.0)
    assert epoch(history) == "1"
    history.delete("home", JOB, "one")
    history.until("nothing of it runs", lambda: not history.runs("one", "Job"), 60.0)


def test_hd_73_nor_does_a_new_leader_take_it_for_one_that_runs_as_placed() -> None:
    history = History()
    admitted_and_let_go_by_its_user(history)
    history.kill_leader()
    history.until("its pods are known", lambda: history.containers("one", "Job") == 2 and labelled(history))
    history.delete("home", JOB, "one")
    history.until("nothing of it runs", lambda: not history.runs("one", "Job"), 60.0)
