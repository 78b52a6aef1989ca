"""HD-41: what may still run in the place of a user's object is waited for, whatever became of its Workload."""

from __future__ import annotations

import pytest

from gatelift.core.clusters.fencing import ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, WORKER_CLUSTER, WORKLOAD
from support.sim.cluster import Doc
from support.sim.history import History

NO_FINALIZERS: Doc = {"metadata": {"finalizers": None}}
WAITS = "PredecessorUnreachable"
SAYS_SECONDS = 10.0
"""A session's first exchange, and the turn of a write that only informs."""


def placed(*, lost: bool = True) -> tuple[History, str]:
    """Return a history in which Job one runs on a cluster, which is lost."""
    history = History(shown=False)
    history.job("one")
    cluster = history.until_runs("one", "Job")
    if lost:
        history.cut(cluster)
        history.until_lost(cluster)
    return history, cluster


def why(history: History) -> tuple[str, str]:
    """Return reason and message with which the newest Workload of Job one waits."""
    workload = history.workload("one", "Job") or {}
    found = [each for each in workload.get("status", {}).get("conditions", []) if each["type"] == "QuotaReserved"]
    return (found[0]["reason"], found[0]["message"]) if found and found[0]["status"] == "False" else ("", "")


def made_again(history: History) -> None:
    """Let the user delete the Job, and create it again as soon as its name is free."""
    history.delete("home", JOB, "one")
    history.until("the name is free", lambda: history.home.look(JOB, "one") is None)
    history.job("one")


def vanishes(history: History) -> str:
    """Let a person take the Workload away, its finalizer first; return its UID."""
    workload = history.workload("one", "Job")
    assert workload is not None
    name, uid = workload["metadata"]["name"], workload["metadata"]["uid"]
    history.edit("home", WORKLOAD, name, NO_FINALIZERS)
    history.delete("home", WORKLOAD, name)
    history.until(
        "it is gone", lambda: all(each["metadata"]["uid"] != uid for each in history.objects("home", WORKLOAD))
    )
    return str(uid)


def waits(history: History, reason: str = WAITS) -> bool:
    """Say whether Job one waits for its predecessor."""
    return why(history)[0] == reason


def goes_on(history: History, uid: str = "") -> bool:
    """Say whether Job one runs by another Workload than that of this UID."""
    workload = history.workload("one", "Job")
    return (
        workload is not None
        and workload["metadata"]["uid"] != uid
        and history.shows("one", "Admitted", "Job")
        and history.containers("one", "Job") > 0
    )


def say_fenced(history: History, cluster: str) -> None:
    """Let a person say that nothing runs on a lost cluster any more, which is true: its machines are off."""
    for resource in (JOB,):
        for each in history.objects(cluster, resource):
            history.edit(cluster, resource, each["metadata"]["name"], {"metadata": {"finalizers": None}})
            history.delete(cluster, resource, each["metadata"]["name"])
    history.until("nothing runs there", lambda: cluster not in history.runs("one", "Job"))
    said = {ANNOTATION_FENCED_THROUGH: str(history.status(cluster)["session"]), ANNOTATION_FENCED_BY: "a person"}
    history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": said}})


def test_hd_41_a_job_made_again_waits_for_its_run_in_a_lost_cluster_and_says_so() -> None:
    history, cluster = placed()
    made_again(history)
    history.until("it says why", lambda: waits(history))
    message = why(history)[1]
    assert f'"{cluster}"' in message
    assert f"gatelift cluster fenced {cluster}" in message
    history.passes(120.0)
    assert history.runs("one", "Job") == {cluster}
    history.mend(cluster)
    history.until("its predecessor was stopped and it runs", lambda: goes_on(history))


def test_hd_41_a_job_made_again_goes_on_when_a_person_says_that_nothing_runs_there() -> None:
    history, cluster = placed()
    made_again(history)
    history.until("it waits", lambda: waits(history))
    say_fenced(history, cluster)
    history.until("it runs elsewhere", lambda: goes_on(history))


@pytest.mark.parametrize("again", [False, True], ids=["the same Job", "the Job made again"])
@pytest.mark.parametrize("restart", [False, True], ids=["", "another leader"])
def test_hd_41_a_workload_that_vanished_with_its_finalizer_is_remembered(again: bool, restart: bool) -> None:
    history, cluster = placed()
    uid = vanishes(history)
    if again:
        made_again(history)
    history.until("it waits", lambda: waits(history))
    history.until("it is remembered", lambda: bool(history.status(cluster).get("predecessors")))
    (said,) = history.status(cluster)["predecessors"]
    assert (said["kind"], said["namespace"], said["name"], said["workloadUID"]) == ("Job", "team", "one", uid)
    assert history.status(cluster)["placements"] == 1, "its WorkerCluster must not be deleted now"
    if restart:
        history.kill_leader()
    history.passes(120.0)
    assert waits(history)
    assert history.runs("one", "Job") == {cluster}
    history.mend(cluster)
    history.until("it runs", lambda: goes_on(history, uid))
    history.until("nothing is remembered", lambda: not history.status(cluster).get("predecessors"))


def test_hd_41_what_vanished_is_written_before_its_manager_can_die() -> None:
    history, cluster = placed()
    workload = history.workload("one", "Job")
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", WORKLOAD, name, NO_FINALIZERS)
    history.delete("home", WORKLOAD, name)
    history.passes(0.3)
    history.kill_leader()
    assert history.status(cluster).get("predecessors")
    history.passes(120.0)
    assert waits(history)


def test_hd_41_what_vanished_goes_on_when_a_person_says_that_nothing_runs_there() -> None:
    history, cluster = placed()
    uid = vanishes(history)
    history.until("it waits", lambda: waits(history))
    say_fenced(history, cluster)
    history.until("it runs elsewhere", lambda: goes_on(history, uid))


def test_hd_41_a_workload_that_vanished_in_a_connected_cluster_is_stopped_there_first() -> None:
    history, cluster = placed(lost=False)
    uid = vanishes(history)
    history.until("its successor runs", lambda: goes_on(history, uid))
    assert not history.status(cluster).get("predecessors")


def test_hd_41_a_job_made_again_waits_until_its_predecessor_has_stopped() -> None:
    history = History()
    history.job("one", stops_in=20.0)
    history.until_runs("one", "Job")
    made_again(history)
    history.until("it waits", lambda: waits(history, "PredecessorNotStopped"))
    history.until("it runs", lambda: goes_on(history))


def test_hd_167_who_waits_for_a_predecessor_says_what_is_so_when_its_cluster_comes_and_goes() -> None:
    """It went on asking a person to say *fenced* of a cluster that was connected and stopped the predecessor."""
    history = History(shown=False)
    history.job("one", stops_in=60.0)
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    history.until_lost(cluster)
    made_again(history)
    history.until("it says why", lambda: waits(history))
    history.mend(cluster)
    history.until_connected(cluster)
    history.passes(SAYS_SECONDS)
    assert history.runs("one", "Job") == {cluster}
    assert why(history)[0] == "PredecessorNotStopped"
    history.cut(cluster)
    history.until("it says that its cluster is not connected", lambda: waits(history))
    for _ in range(60):
        history.passes(1.0)
        assert waits(history), "nor does a lease that is about to run out make it connected"


def test_hd_242_what_lost_its_finalizer_while_it_waited_does_not_vanish_once_it_is_placed() -> None:
    """Drawn seed 8812317. Without a reservation its user may take it off, and nobody led who saw it vanish."""
    history = History(shown=False)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "Hold"}})
    history.job("one")
    history.until("it waits", lambda: bool(why(history)[0]))
    history.edit("home", WORKLOAD, (history.workload("one", "Job") or {})["metadata"]["name"], NO_FINALIZERS)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "None"}})
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    for manager in history.world.managers:
        manager.kill()
    made_again(history)
    history.until("somebody leads", history.leads)
    history.until_lost(cluster)
    history.passes(120.0)
    assert waits(history)
    assert history.runs("one", "Job") == {cluster}
    history.mend(cluster)
    history.until("its predecessor was stopped and it runs", lambda: goes_on(history))
