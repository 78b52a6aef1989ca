"""What runs of a Job is what is charged: reclaimed pods, counts edited by hand, and Jobs that their users start."""

from __future__ import annotations

from gatelift_kube.resources import JOB, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.builders_manager import a_job
from support.history import History
from support.sim_cluster import TEAM, Doc


def tail_job(history: History, queue: str, *, seconds: float = 20.0) -> None:
    """Let a user create a Job of three completions, two at a time, of 1500m each: a queue of 3000m is full."""
    document = a_job("work", parallelism=2, completions=3, cpu="1500m" if queue == "travels" else "1")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    document["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: f"{seconds:g}"}
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


def reclaimable(history: History, name: str = "work") -> int:
    """Return how many pods of the Job's Workload are written as needing no quota any more."""
    workload = history.workload(name, "Job") or {}
    return sum(one["count"] for one in workload.get("status", {}).get("reclaimablePods", []))


def evict(history: History) -> None:
    """Let a person deactivate the Job's Workload, and activate it again when nothing of it runs."""
    name = (history.workload("work", "Job") or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it is evicted", lambda: not history.shows("work", "QuotaReserved", "Job"))
    history.edit("home", WORKLOAD, name, {"spec": {"active": True}})


def test_hd_4_what_an_earlier_run_had_done_frees_nothing_of_the_next_run_at_a_worker() -> None:
    history = History()
    tail_job(history, "travels")
    history.until_runs("work", "Job")
    history.until("two are done", lambda: reclaimable(history) == 1)
    evict(history)
    history.until("two run again", lambda: history.containers("work", "Job") == 2)
    history.pod("next", cpu="1500m")
    history.passes(10.0)
    assert history.containers("work", "Job") == 2
    assert reclaimable(history) == 0
    assert history.containers("next") == 0, "the queue is full"
    history.until("the new run's tail gives its quota back", lambda: history.containers("next") == 1)
    assert history.containers("work", "Job") == 1


def test_hd_4_a_job_at_local_goes_on_and_its_tail_stays_reclaimed() -> None:
    history = History()
    tail_job(history, "stays")
    history.until_runs("work", "Job")
    history.until("two are done", lambda: reclaimable(history) == 1)
    evict(history)
    history.until("it goes on", lambda: history.containers("work", "Job") == 1)
    history.until("its tail needs one", lambda: reclaimable(history) == 1)


def test_hd_4_a_new_leader_keeps_what_this_epoch_has_given_back() -> None:
    history = History()
    tail_job(history, "travels", seconds=60.0)
    history.until_runs("work", "Job")
    history.until("two are done", lambda: reclaimable(history) == 1)
    before = Writes(history)
    history.kill_leader()
    history.passes(45.0)
    assert reclaimable(history) == 1
    assert before.lowest == 1, "nothing was taken back in between"


class Writes:
    """The smallest number of reclaimed pods that was ever written since."""

    def __init__(self, history: History) -> None:
        self.lowest = reclaimable(history)
        history.home.store.listen(lambda _storage, _change: self._look(history))

    def _look(self, history: History) -> None:
        if not history.shows("work", "Finished", "Job"):
            self.lowest = min(self.lowest, reclaimable(history))


def lowered(history: History, count: int) -> None:
    """Let a person lower the count of the Job's Workload, which CRD and policies may not be there to refuse."""
    workload = history.workload("work", "Job")
    assert workload is not None
    pod_sets: list[Doc] = [{**one, "count": count} for one in workload["spec"]["podSets"]]
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"podSets": pod_sets}})


def test_hd_5_a_count_that_a_person_lowers_frees_nothing_of_what_runs() -> None:
    history = History(shown=False)
    history.job("work", pods=2, cpu="1500m")
    history.until_runs("work", "Job")
    lowered(history, 1)
    history.pod("next", cpu="1500m")
    history.passes(60.0)
    assert history.containers("work", "Job") == 2
    assert history.containers("next") == 0, "the queue is full"
    history.kill_leader()
    history.passes(90.0)
    assert history.containers("work", "Job") == 2
    assert history.containers("next") == 0, "nor does a new leader think otherwise"


def test_hd_5_nor_does_it_free_what_is_not_reclaimed_yet() -> None:
    history = History(shown=False)
    tail_job(history, "stays", seconds=40.0)
    history.until_runs("work", "Job")
    history.until("two are done", lambda: reclaimable(history) == 1)
    lowered(history, 1)
    history.pod("next", "stays", cpu="1500m")
    history.passes(20.0)
    assert history.containers("work", "Job") == 1
    assert history.containers("next") == 0
