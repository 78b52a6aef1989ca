"""HD-353: a person says that a cluster in doubt takes work again: what is placed there after that is not in doubt.

The word is about new work alone. What was placed before and is not listed stays charged, whoever leads.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.clusters.identity import ANNOTATION_RESTORED_ACCEPTED
from gatelift.core.records import record
from gatelift_kube.objects.kueue import AdmissionCheckState, PodSetUpdate, Workload, WorkloadStatus
from gatelift_kube.values.resources import CONFIG_MAP, POD, WORKER_CLUSTER, WORKLOAD
from gatelift_wire.values.keys import ANNOTATION_PLACED_IN, ANNOTATION_TERM
from histories.test_which_cluster import enrol_another, shown, start_agent, unheard
from support.sim.cluster import SYSTEM
from support.sim.election import SimLease
from support.sim.history import History

Doubts = Callable[[History, str], None]


def restored(history: History, cluster: str) -> None:
    """Let a worker come back from a backup, in which neither its pod is nor what its agent remembers."""
    history.kill_agent(cluster, again=False)
    forget(history, cluster)
    history.world.start_agent(cluster)


def forget(history: History, cluster: str) -> None:
    worker = history.workers[cluster]
    worker.change(POD, "before", {"metadata": {"finalizers": None}})
    worker.delete(POD, "before")
    for each in worker.all(CONFIG_MAP):
        worker.delete(CONFIG_MAP, each["metadata"]["name"], namespace=SYSTEM)


def replaced(history: History, cluster: str) -> None:
    unheard(history, cluster)
    enrol_another(history, cluster)


def taken_over(history: History, cluster: str) -> None:
    """Let another agent of the same cluster take over, by another Lease, with nothing of before."""
    unheard(history, cluster)
    forget(history, cluster)
    start_agent(history, history.workers[cluster], SimLease(name="elsewhere/another"))


def in_doubt(doubts: Doubts) -> tuple[History, str]:
    """Return a world in which `before` is charged to a cluster that does not know of it; no other one takes work."""
    history = History()
    history.pod("before")
    cluster = history.until_runs("before")
    history.edit("home", WORKER_CLUSTER, "b" if cluster == "a" else "a", {"spec": {"cordoned": True}})
    doubts(history, cluster)
    history.until("it is in doubt", lambda: history.status(cluster).get("unexplained", 0) == 1)
    history.until_connected(cluster)
    return history, cluster


def accept(history: History, cluster: str) -> None:
    """Say what `gatelift cluster cordon NAME --off` says."""
    status = history.status(cluster)
    doubted = max(status.get(each, 0) for each in ("restoredSession", "replacedSession", "takenOverSession"))
    annotations = {ANNOTATION_RESTORED_ACCEPTED: str(doubted)}
    history.edit("home", WORKER_CLUSTER, cluster, {"metadata": {"annotations": annotations}})


@pytest.mark.parametrize("doubts", [restored, replaced, taken_over])
def test_hd_353_what_is_placed_on_a_cluster_in_doubt_after_a_persons_word_runs_there(doubts: Doubts) -> None:
    """HD-353: it was admitted, charged, sent to nobody, and counted as lost."""
    history, cluster = in_doubt(doubts)
    history.pod("after")
    history.passes(20.0)
    assert not history.shows("after", "QuotaReserved")
    accept(history, cluster)
    assert history.until_runs("after") == cluster
    history.passes(60.0)
    assert history.status(cluster)["unexplained"] == 1, "and what was placed before stays as it is"
    assert history.shows("before", "QuotaReserved")
    assert not history.shows("before", "Evicted")
    history.delete("home", POD, "after")
    history.until("it is stopped by its word", lambda: not history.runs("after"))
    history.until("it is gone", lambda: history.workload("after") is None)


def test_hd_353_what_a_leader_recorded_after_the_word_and_had_no_time_to_send_is_sent_by_the_next_one() -> None:
    """HD-353: the record says in which session it was placed; the next leader knows nothing else of it."""
    history, cluster = in_doubt(restored)
    accept(history, cluster)
    history.passes(5.0)
    leader = history.leader
    leader.dies_after_write(2, kind=WORKLOAD)  # it is made, and its winner is written
    history.pod("after")
    history.until("the leader is dead", lambda: leader.process.dead)
    history.until("the next one leads", history.leads)
    assert history.until_runs("after") == cluster


def test_hd_353_restored_once_more_what_was_placed_since_is_in_doubt_as_well() -> None:
    """HD-353: the word is about one doubt, and so is the session in which something was placed."""
    history, cluster = in_doubt(restored)
    accept(history, cluster)
    history.pod("after")
    assert history.until_runs("after") == cluster
    history.passes(20.0)
    former = history.workers[cluster]
    unheard(history, cluster)
    enrol_another(history, cluster)
    history.until("it is in doubt anew", lambda: shown(history, cluster, "Replaced") == "AnotherCluster")
    history.until_connected(cluster)
    history.until("nothing of it is listed", lambda: history.status(cluster).get("unexplained", 0) == 2)
    for _ in range(2):
        accept(history, cluster)
        history.passes(60.0)
        assert history.runs("after") == {former.name}
        assert not history.shows("after", "Evicted")
        history.kill_leader()
        history.until("the next one leads", history.leads)


@pytest.mark.parametrize(
    ("said", "session"),
    [("6/one", 6), ("6/two", 0), ("6", 0), ("6/", 0), ("", 0), ("x/one", 0)],
    ids=["this object", "an object before, which counted for itself", "no object", "none", "nothing", "no number"],
)
def test_hd_353_the_session_in_which_it_was_placed_is_of_one_worker_cluster_object(said: str, session: int) -> None:
    """HD-353: one that is made anew counts its sessions anew, so that a later doubt may have a lower number."""
    update = PodSetUpdate(name="main", annotations={ANNOTATION_TERM: "1", ANNOTATION_PLACED_IN: said})
    states = (AdmissionCheckState(name="workers", pod_set_updates=(update,)),)
    assert record.placed_session(Workload(status=WorkloadStatus(admission_checks=states)), "one") == session


@pytest.mark.parametrize("doubts", [restored, replaced, taken_over])
def test_hd_354_what_waits_for_a_cluster_in_doubt_is_not_told_that_somebody_has_cordoned_it(doubts: Doubts) -> None:
    """HD-354: nobody had, so nobody found out what to do."""
    history, cluster = in_doubt(doubts)
    history.pod("after")
    history.until("it says why it waits", lambda: why_it_waits(history).startswith("No worker cluster"))
    assert f"{cluster}: who serves it is in doubt" in why_it_waits(history)
    assert f"{cluster}: cordoned" not in why_it_waits(history)
    history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": True}})
    history.until("it says what a person did", lambda: f"{cluster}: cordoned" in why_it_waits(history), 400.0)


def why_it_waits(history: History) -> str:
    known = history.workload("after")
    conditions = known.get("status", {}).get("conditions", []) if known is not None else []
    return next((str(each["message"]) for each in conditions if each["type"] == "QuotaReserved"), "")
