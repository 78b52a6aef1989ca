"""The account of what runs and what is charged: red on histories as they were before they were mended, green on others.

The histories are what the stores saw, write by write, when the cores were not mended yet; no core takes part, so they
stay red whatever is mended.
"""

from __future__ import annotations

import pytest

from support.sim.account import GHOST_SECONDS_MAX, Account, AccountError
from support.sim.attribution import LOCAL, Doc, Work
from support.sim.history import History

NAME = "work"


def job_document(uid: str, *, pods: int, suspended: bool = False, workload: str = "") -> Doc:
    labels = {"gatelift.dev/workload-uid": workload, "gatelift.dev/epoch": "1"} if workload else {}
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    return {
        "metadata": {"name": NAME, "namespace": "team", "uid": uid, "labels": labels},
        "spec": {"suspend": suspended, "parallelism": pods, "completions": 10, "template": template},
    }


def pod_document(
    uid: str, *, job: str = "", gated: bool = False, phase: str = "Running", labels: Doc | None = None
) -> Doc:
    owners = [{"kind": "Job", "name": NAME, "uid": job, "controller": True}] if job else []
    name = f"{NAME}-{uid}" if job else NAME
    spec: Doc = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "nodeName": "" if gated else "node"}
    if gated:
        spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    meta = {"name": name, "namespace": "team", "uid": uid, "ownerReferences": owners, "labels": labels or {}}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


def workload_document(owner: str, *, kind: str = "Job", pods: int = 0, over: int = 0, cluster: str = "") -> Doc:
    admission = {
        "clusterQueue": "main",
        "podSetAssignments": [{"name": "main", "count": pods, "resourceUsage": {"cpu": str(pods)}}],
    }
    status: Doc = {"conditions": [{"type": "QuotaReserved", "status": "True" if pods else "False"}]}
    if pods:
        status |= {"admission": admission, "clusterName": cluster}
    if over:
        status["reclaimablePods"] = [{"name": "main", "count": over}]
    owners = [{"kind": kind, "name": NAME, "uid": owner, "controller": True}]
    meta = {"name": "w", "namespace": "team", "uid": "w-uid", "ownerReferences": owners}
    return {
        "metadata": meta,
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": pods}]},
        "status": status,
    }


def pods_of(account: Account, cluster: str, job: str, count: int, now: float = 0.0) -> None:
    for number in range(count):
        account.object(cluster, "Pod", pod_document(f"{cluster}-p{number}", job=job), now)


def test_what_runs_within_its_charge_is_no_news() -> None:
    account = Account()
    account.workload(workload_document("job", pods=3), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=3), 0.0)
    pods_of(account, LOCAL, "job", 3)
    account.compare(lambda _queue: 3000)
    assert account.totals() == {"main": (3000, 0)}
    assert not account.ghosts()


def test_hd_8_red_on_a_job_unsuspended_by_hand_runs_uncharged_for_ever() -> None:  # HD-1
    account = Account()
    account.workload(workload_document("job"), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=5, suspended=True), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=5), 10.0, by_hand=True)
    pods_of(account, LOCAL, "job", 5, 10.1)
    account.compare(lambda _queue: 0)
    assert account.totals() == {"main": (5000, 5000)}, "ghost from the event that shows it"
    assert not account.overdue(11.0)
    assert account.overdue(10.0 + GHOST_SECONDS_MAX + 1)


def test_hd_8_a_ghost_ends_with_the_last_of_its_pods_and_hides_nothing_later() -> None:
    account = Account()
    account.workload(workload_document("job"), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=2), 1.0, by_hand=True)
    pods_of(account, LOCAL, "job", 2, 1.1)
    account.object(LOCAL, "Job", job_document("job", pods=2, suspended=True), 2.0)
    assert account.ghosts() == {Work("Job", "team", NAME): 1.0}, "its pods are terminating"
    for number in range(2):
        account.object(LOCAL, "Pod", pod_document(f"{LOCAL}-p{number}", job="job", phase="Failed"), 3.0)
    assert not account.ghosts()
    with pytest.raises(AccountError, match="ghost 0m"):
        account.object(LOCAL, "Pod", pod_document("late", job="job"), 4.0)


def test_hd_8_red_on_a_running_job_grows_and_its_charge_does_not() -> None:  # HD-2
    account = Account()
    account.workload(workload_document("job", pods=1), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=1), 0.0)
    pods_of(account, LOCAL, "job", 1)
    account.object(LOCAL, "Job", job_document("job", pods=6), 10.0, by_hand=True)
    pods_of(account, LOCAL, "job", 6, 10.1)
    assert account.totals() == {"main": (6000, 5000)}
    assert account.overdue(10.0 + GHOST_SECONDS_MAX + 1)


def test_hd_8_red_on_a_workers_job_grows_behind_the_agents_back() -> None:  # HD-3
    account = Account()
    account.workload(workload_document("home-job", pods=1, cluster="a"), 0.0)
    account.object("a", "Job", job_document("a-job", pods=1, workload="w-uid"), 0.0)
    pods_of(account, "a", "a-job", 1)
    account.object("a", "Job", job_document("a-job", pods=6, workload="w-uid"), 10.0, by_hand=True)
    pods_of(account, "a", "a-job", 6, 10.1)
    assert account.totals() == {"main": (6000, 5000)}
    assert account.overdue(10.0 + GHOST_SECONDS_MAX + 1)


def test_hd_8_red_on_a_former_runs_progress_is_reclaimed_again() -> None:  # HD-4
    account = Account()
    account.workload(workload_document("home-job", pods=8, over=6, cluster="a"), 0.0)
    account.object("a", "Job", job_document("a-job", pods=8, workload="w-uid"), 0.0)
    pods_of(account, "a", "a-job", 2)
    with pytest.raises(AccountError, match="ask for 3000m"):
        pods_of(account, "a", "a-job", 8)


def test_hd_8_red_on_counts_lowered_by_hand_free_quota_that_is_used() -> None:  # HD-5
    account = Account()
    account.workload(workload_document("job", pods=4), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=4), 0.0)
    pods_of(account, LOCAL, "job", 4)
    account.compare(lambda _queue: 4000)
    lowered = workload_document("job", pods=4)
    lowered["spec"]["podSets"][0]["count"] = 1
    account.workload(lowered, 10.0, by_hand=True)
    with pytest.raises(AccountError, match="the manager charges 1000m, ghost 0m"):
        account.compare(lambda _queue: 1000)


def test_hd_8_red_on_a_pod_without_our_labels_runs_on_and_is_taken_off_the_books() -> None:  # HD-6
    account = Account()
    account.object(LOCAL, "Pod", pod_document("pod", gated=True, phase="Pending"), 0.0)
    account.workload(workload_document("pod", kind="Pod", pods=1), 1.0)
    ours = {"gatelift.dev/workload-uid": "w-uid", "gatelift.dev/epoch": "1"}
    account.object(LOCAL, "Pod", pod_document("pod", labels=ours), 1.1)
    account.object(LOCAL, "Pod", pod_document("pod"), 10.0, by_hand=True)
    with pytest.raises(AccountError, match="Pod team/work in main: pods that may run ask for 1000m"):
        account.workload(workload_document("pod", kind="Pod"), 20.0)


def test_a_shortfall_that_is_borne_for_seconds_is_told_after_them() -> None:
    """Two clusters' watches are not ordered: what runs may be seen before what it is charged with."""
    account = Account(bears=5.0)
    account.workload(workload_document("job"), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=1), 0.0)
    pods_of(account, LOCAL, "job", 1, 1.0)
    account.look(5.0)
    with pytest.raises(AccountError):
        account.look(6.0)
    account.workload(workload_document("job", pods=1), 6.0)
    account.look(7.0)


def test_hd_8_the_books_of_a_whole_life_balance() -> None:
    history = History()
    history.job("many", pods=2, seconds=20.0)
    history.pod("one", "stays", seconds=20.0)
    history.until("all run", lambda: history.containers("many", "Job") == 2 and history.containers("one") == 1)
    assert history.world.account.totals() == {"travels": (1000, 0), "stays": (500, 0)}
    history.until("both end", lambda: history.shows("many", "Finished", "Job") and history.shows("one", "Finished"))
    assert not any(page.runs or page.ghost for page in history.world.account.pages.values())


def test_hd_120_a_container_that_outlives_its_pod_is_charged_until_it_has_stopped() -> None:
    account = Account()
    account.workload(workload_document("job", pods=1), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=1), 0.0)
    pods_of(account, LOCAL, "job", 1)
    account.container(LOCAL, f"{LOCAL}-p0", 1.0, runs=True)
    account.object(LOCAL, "Pod", pod_document(f"{LOCAL}-p0", job="job"), 2.0, removed=True)
    account.object(LOCAL, "Job", job_document("job", pods=1), 2.0, removed=True)
    assert account.totals() == {"main": (1000, 0)}, "its pod is gone by force, and it runs on"
    with pytest.raises(AccountError, match="the manager charges 0m"):
        account.compare(lambda _queue: 0)
    with pytest.raises(AccountError, match=r"charged is {}"):
        account.workload(workload_document("job"), 3.0)
    account.container(LOCAL, f"{LOCAL}-p0", 4.0, runs=False)
    assert not account.totals()
    account.compare(lambda _queue: 0)


def test_hd_120_a_pod_that_is_being_deleted_is_charged_while_its_object_is_there() -> None:
    account = Account()
    account.workload(workload_document("job", pods=1), 0.0)
    going = pod_document(f"{LOCAL}-p0", job="job")
    account.object(LOCAL, "Job", job_document("job", pods=1), 0.0)
    pods_of(account, LOCAL, "job", 1)
    account.container(LOCAL, f"{LOCAL}-p0", 1.0, runs=True)
    account.object(LOCAL, "Pod", {**going, "metadata": {**going["metadata"], "deletionTimestamp": "now"}}, 2.0)
    account.container(LOCAL, f"{LOCAL}-p0", 3.0, runs=False)
    assert account.totals() == {"main": (1000, 0)}


def test_a_leader_goes_by_what_he_wrote_once_he_is_answered() -> None:
    """Seed 8901546: he takes back that a pod is over, since one was taken off its Job by hand."""
    account = Account()
    account.workload(workload_document("job", pods=2, over=1), 0.0)
    account.object(LOCAL, "Job", job_document("job", pods=2), 0.0, by_hand=True)
    pods_of(account, LOCAL, "job", 1)
    account.object(LOCAL, "Pod", pod_document("beside", job="job"), 10.0, by_hand=True)
    account.compare(lambda _queue: 1000)
    account.workload(workload_document("job", pods=2), 11.0)
    account.compare(lambda _queue: 1000, {"w-uid"}.__contains__)
    account.compare(lambda _queue: 2000)
    with pytest.raises(AccountError, match="the manager charges 1000m, ghost 0m"):
        account.compare(lambda _queue: 1000)


def test_what_a_backup_of_its_cluster_runs_again_after_its_end_is_ghost_until_it_is_stopped() -> None:
    """Seed 8903175: that it had ended was on its way when the cluster was put back; the record goes by it."""
    again: set[str] = set()
    account = Account(is_brought_back=lambda belongs: belongs.root in again)
    account.workload(workload_document("home-job", pods=1, cluster="a"), 0.0)
    account.object("a", "Job", job_document("a-job", pods=1, workload="w-uid"), 0.0)
    pods_of(account, "a", "a-job", 1)
    again.add("a-job")
    account.workload(workload_document("home-job", cluster="a"), 10.0)
    assert account.totals() == {"main": (1000, 1000)}
    assert account.overdue(10.0 + GHOST_SECONDS_MAX + 1)
    account.object("a", "Job", job_document("a-job", pods=1, workload="w-uid", suspended=True), 20.0)
    account.object("a", "Pod", pod_document("a-p0", job="a-job", phase="Failed"), 20.0)
    again.clear()
    with pytest.raises(AccountError, match="ghost 0m"):
        account.object("a", "Pod", pod_document("a-p1", job="a-job"), 30.0)
