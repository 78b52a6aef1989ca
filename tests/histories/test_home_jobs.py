"""What runs of a Job is what is charged: reclaimed pods, counts edited by hand, and Jobs that their users start."""

from __future__ import annotations

import pytest

from gatelift.core.state.recovery_values import Finding
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.history import History


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


# --- HD-1: a Job that its user starts --------------------------------------------------------------------------------


def suspended(history: History, name: str = "work") -> bool:
    """Say whether the user's Job is suspended."""
    found = history.home.look(JOB, name)
    return found is not None and found["spec"]["suspend"] is True


def start_by_hand(history: History, name: str = "work") -> None:
    """Let a user start a Job, around the webhook."""
    history.edit("home", JOB, name, {"spec": {"suspend": False}})


def test_hd_1_a_job_that_waits_in_a_local_queue_and_is_started_by_its_user_is_suspended_again() -> None:
    history = History()
    history.job("work", "stays", cpu="1", pods=5)
    history.passes(5.0)
    assert suspended(history)
    start_by_hand(history)
    history.until("it is suspended again", lambda: suspended(history), 10.0)
    history.until("nothing of it runs", lambda: not history.objects("home", POD), 60.0)
    assert not history.shows("work", "QuotaReserved", "Job")


def test_hd_1_it_runs_as_ever_when_its_queue_admits_it() -> None:
    history = History()
    history.job("first", "stays", cpu="2", seconds=60.0)
    history.until_runs("first", "Job")
    history.job("work", "stays", cpu="1", pods=2, seconds=20.0)
    history.passes(5.0)
    start_by_hand(history)
    history.until("it is suspended again", lambda: suspended(history), 10.0)
    history.until("the other has finished", lambda: history.shows("first", "Finished", "Job"))
    history.until("it is admitted", lambda: history.containers("work", "Job") == 2)
    history.until("it finishes", lambda: history.shows("work", "Finished", "Job"))


def test_hd_1_a_job_that_waits_for_a_worker_shows_no_run_either() -> None:
    history = History()
    history.job("work", cpu="2", pods=5)
    history.passes(5.0)
    start_by_hand(history)
    history.until("it is suspended again", lambda: suspended(history), 10.0)
    assert not history.shows("work", "QuotaReserved", "Job")


def test_hd_1_a_job_whose_workload_is_deactivated_is_suspended_again() -> None:
    history = History()
    history.job("work", "stays", cpu="1")
    history.until_runs("work", "Job")
    name = (history.workload("work", "Job") or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it is evicted", lambda: not history.shows("work", "QuotaReserved", "Job"))
    start_by_hand(history)
    history.until("it is suspended again", lambda: suspended(history), 10.0)


def test_hd_1_a_finished_job_is_left_alone() -> None:
    history = History()
    history.job("work", "stays", cpu="1", seconds=2.0)
    history.until("it finishes", lambda: history.shows("work", "Finished", "Job"))
    version = (history.home.look(JOB, "work") or {})["metadata"]["resourceVersion"]
    history.passes(120.0)
    history.kill_leader()
    history.passes(90.0)
    assert (history.home.look(JOB, "work") or {})["metadata"]["resourceVersion"] == version


def test_hd_1_nobody_is_suspended_while_dispatch_is_halted() -> None:
    history = History()
    history.job("work", "stays", cpu="1", pods=5)
    history.passes(5.0)
    caution = history.leader.machine.core.caution
    caution.recovery.finding = Finding(why="as told", since="", counter=0, term=0)
    caution.halted = "as told"
    start_by_hand(history)
    history.passes(30.0)
    assert not suspended(history)


# --- HD-2: a Job that its user resizes or suspends -----------------------------------------------------------------


def job_with_more_to_do(history: History, queue: str, *, pods: int) -> None:
    """Let a user create a Job with more completions than pods at once, of 500m each."""
    document = a_job("work", parallelism=pods, completions=20, cpu="500m")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


WHERE = pytest.mark.parametrize("queue", ["stays", "travels"])


@WHERE
def test_hd_2_a_running_job_that_grows_is_stopped_and_queued_with_its_new_size(queue: str) -> None:
    history = History()
    job_with_more_to_do(history, queue, pods=1)
    history.until_runs("work", "Job")
    history.edit("home", JOB, "work", {"spec": {"parallelism": 3}})
    history.until("it is evicted", lambda: evictions(history) == {"NoMatchingWorkload"}, 30.0)
    history.until("it runs with its new size", lambda: charged(history) == 3 and history.containers("work", "Job") == 3)
    workload = history.workload("work", "Job") or {}
    assert workload["spec"]["podSets"][0]["count"] == 3


@WHERE
def test_hd_2_a_running_job_that_grows_beyond_its_queue_waits(queue: str) -> None:
    history = History()
    job_with_more_to_do(history, queue, pods=1)
    history.until_runs("work", "Job")
    history.edit("home", JOB, "work", {"spec": {"parallelism": 9}})
    history.until("nothing of it runs", lambda: charged(history) == 0 and not history.runs("work", "Job"), 60.0)
    history.passes(60.0)
    assert suspended(history)
    assert history.containers("work", "Job") == 0


@WHERE
def test_hd_2_a_running_job_that_shrinks_is_queued_with_its_new_size(queue: str) -> None:
    history = History()
    job_with_more_to_do(history, queue, pods=3)
    history.until_runs("work", "Job")
    history.edit("home", JOB, "work", {"spec": {"parallelism": 1}})
    history.until("it runs with its new size", lambda: charged(history) == 1 and history.containers("work", "Job") == 1)


@WHERE
def test_hd_2_a_running_job_that_its_user_suspends_is_charged_until_it_has_stopped(queue: str) -> None:
    history = History()
    history.job("work", queue, cpu="1", pods=2, stops_in=20.0)
    history.until_runs("work", "Job")
    history.until("both run", lambda: history.containers("work", "Job") == 2)
    history.edit("home", JOB, "work", {"spec": {"suspend": True}})
    history.until("it is evicted", lambda: evicted_for(history) == "Suspended", 30.0)
    assert history.containers("work", "Job") == 2
    assert charged(history) == 2
    history.until("it is admitted again", lambda: epoch(history) == "2" and charged(history) == 2, 90.0)
    history.until("both run again", lambda: history.containers("work", "Job") == 2)


@WHERE
def test_hd_2_a_job_that_is_suspended_grown_and_started_by_hand_waits_for_its_queue(queue: str) -> None:
    history = History()
    job_with_more_to_do(history, queue, pods=1)
    history.until_runs("work", "Job")
    for spec in ({"suspend": True}, {"parallelism": 9}, {"suspend": False}):
        history.edit("home", JOB, "work", {"spec": spec})
    history.until("it waits", lambda: suspended(history) and charged(history) == 0, 60.0)
    history.until("nothing of it runs", lambda: not history.runs("work", "Job"), 60.0)
    history.passes(60.0)
    assert history.containers("work", "Job") == 0


@WHERE
def test_hd_2_a_new_leader_sees_what_was_done_while_nobody_led(queue: str) -> None:
    history = History()
    job_with_more_to_do(history, queue, pods=1)
    history.until_runs("work", "Job")
    history.passes(10.0)
    history.kill_leader()
    history.edit("home", JOB, "work", {"spec": {"suspend": True}})
    history.until("it is evicted", lambda: epoch(history) == "2", 180.0)
    history.until("it runs again", lambda: charged(history) == 1 and history.containers("work", "Job") == 1)


@WHERE
def test_hd_2_a_job_that_nobody_touches_keeps_running_through_changes_of_the_leader(queue: str) -> None:
    history = History()
    history.job("work", queue, cpu="500m", pods=2)
    history.until_runs("work", "Job")
    for _ in range(2):
        history.kill_leader()
        history.passes(120.0)
    assert epoch(history) == "1"
    assert history.containers("work", "Job") == 2


def test_hd_2_a_job_that_grows_after_its_admission_and_before_its_start_does_not_start_so() -> None:
    history = History()
    history.home.store.listen(lambda _storage, _change: grow_once_admitted(history))
    job_with_more_to_do(history, "stays", pods=1)
    history.until("it was admitted", lambda: epoch(history) == "2", 60.0)
    history.passes(30.0)
    assert suspended(history)
    assert charged(history) == 0
    assert history.containers("work", "Job") == 0


def grow_once_admitted(history: History) -> None:
    """Let a user make the Job larger at the moment at which it is admitted."""
    found = history.home.look(JOB, "work")
    if found is not None and found["spec"]["parallelism"] == 1 and history.shows("work", "Admitted", "Job"):
        history.world.time.after(0.0, lambda: history.edit("home", JOB, "work", {"spec": {"parallelism": 9}}))


def charged(history: History, name: str = "work") -> int:
    """Return for how many pods the Job's Workload holds quota."""
    workload = history.workload(name, "Job") or {}
    admission = workload.get("status", {}).get("admission") or {}
    return sum(each["count"] for each in admission.get("podSetAssignments", []))


def evicted_for(history: History, name: str = "work") -> str:
    """Return why the Job's Workload is evicted, "" when it is not."""
    for one in (history.workload(name, "Job") or {}).get("status", {}).get("conditions", []):
        if one["type"] == "Evicted" and one["status"] == "True":
            return str(one["reason"])
    return ""


def evictions(history: History, name: str = "work") -> set[str]:
    """Return for what the Job's Workload was evicted so far."""
    stats = (history.workload(name, "Job") or {}).get("status", {}).get("schedulingStats") or {}
    return {str(one["reason"]) for one in stats.get("evictions", [])}


def epoch(history: History, name: str = "work") -> str:
    """Return the epoch of the Job's Workload."""
    workload = history.workload(name, "Job") or {}
    return str(workload.get("metadata", {}).get("annotations", {}).get("gatelift.dev/epoch"))


def lost_at_home(seed: int) -> History:
    """Return a history whose next leader waits until `local` can tell what runs there, which may be what it charges.

    Its leader died as the admission was written, before anything was let go, and its user deleted the Workload.
    """
    history = History(seed, shown=False)
    history.job("work", "stays", pods=2)
    while not history.shows("work", "Admitted", "Job"):
        history.world.time.step(history.world.time.now + 60.0)
    history.kill_leader()
    assert history.home.all(JOB)[0]["spec"]["suspend"]
    history.delete("home", WORKLOAD, (history.workload("work", "Job") or {})["metadata"]["name"])
    history.until("another leads", history.leads, 120.0)
    history.until_connected("local")
    history.passes(1.0)
    assert history.leader.charges("stays") > 0
    return history


@pytest.mark.parametrize("seed", range(3, 7))
def test_hd_255_what_a_person_lets_go_at_home_while_nobody_can_tell_what_runs_there_is_put_back(seed: int) -> None:
    """HD-255: the agent of `local` does not know of it, and its manager waits for it (drawn seed 9001164).

    The symptom: it ran, in whatever size it had by then, until every node had been heard.
    """
    history = lost_at_home(seed)
    charged = history.leader.charges("stays")
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})
    history.until("it is suspended", lambda: history.home.all(JOB)[0]["spec"]["suspend"], 10.0)
    assert history.leader.charges("stays") == charged
    history.until("it runs as granted", lambda: history.containers("work", "Job") == 2, 400.0)
    assert history.leader.charges("stays") == charged
