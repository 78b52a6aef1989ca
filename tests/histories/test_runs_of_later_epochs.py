"""HD-173: what runs in a later epoch than a restored record has come to is charged until it is over."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from gatelift.core import texts
from gatelift.core.state.recovery_values import ANNOTATION_RECOVER, Finding, RecoverWord, Told, told
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, WORKLOAD
from support.sim.history import History
from support.sim.restoring import Backup, cordon, moved_to_b, restore

QUEUE = "travels"


def moved_and_a_is_lost() -> tuple[History, Backup]:
    """Return a history in which a pod ran on a, was copied in a backup, runs on b since, and a is lost."""
    history = History(shown=False)
    kept = moved_to_b(history)
    history.cut("a")
    history.until_lost("a")
    return history, kept


def finding(history: History) -> Finding | None:
    document = history.home.look(WORKER_CLUSTER, "local")
    assert document is not None
    return (told(msgspec.convert(document, WorkerCluster, strict=False)) or Told()).finding


def restored() -> History:
    """Return a history whose record says (1, a), while a is away, b runs epoch 2, and a person has said: go on."""
    history, kept = moved_and_a_is_lost()
    restore(history, kept)
    history.until("the restore is found", lambda: finding(history) is not None)
    found = finding(history)
    assert found is not None
    word = msgspec.json.encode(RecoverWord(since=found.since, epochs=1000, who="a person")).decode()
    history.edit("home", WORKER_CLUSTER, "local", {"metadata": {"annotations": {ANNOTATION_RECOVER: word}}})
    history.until("the next one leads", history.leads)
    history.until_lost("a")
    assert history.leader.charges(QUEUE) == 500
    return history


def put_back() -> History:
    """Return such a history in which that Workload alone was put back, around all policies: nobody says *restored*."""
    history, kept = moved_and_a_is_lost()
    for manager in history.world.managers:
        manager.kill()
    only = {WORKLOAD: kept.objects[WORKLOAD]}
    restore(history, Backup(only, history.world.manager_lease))
    history.until("somebody leads", history.leads)
    history.passes(60.0)
    assert finding(history) is None
    assert history.leader.charges(QUEUE) == 500
    return history


def is_charged(history: History, seconds: float = 60.0) -> None:
    """Let time pass in which the run on b is charged at each moment in which somebody leads."""
    for _ in range(int(seconds * 5)):
        history.passes(0.2)
        assert not history.leads() or history.leader.charges(QUEUE) == 500
    assert history.runs("one") == {"b"}


def a_is_heard(history: History) -> None:
    history.mend("a")
    history.until("a has said that it is not there", lambda: history.shows("one", "QuotaReserved") is False)


@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_173_what_a_record_has_elsewhere_is_charged_when_it_is_gone_there(begun: Callable[[], History]) -> None:
    history = begun()
    a_is_heard(history)
    is_charged(history)


@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_173_the_next_leader_charges_it_before_its_cluster_was_heard(begun: Callable[[], History]) -> None:
    history = begun()
    a_is_heard(history)
    history.passes(30.0)
    history.world.start_manager()  # a standby sees the Lease move, and waits for nobody
    history.passes(30.0)
    history.cut("b")
    history.kill_leader()
    history.until("another one leads", history.leads)
    is_charged(history, 120.0)
    assert history.lost("b")
    history.mend("b")
    is_charged(history, 120.0)


@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_173_its_object_is_deleted_and_it_is_stopped_and_charged_until_both_are_over(
    begun: Callable[[], History],
) -> None:
    history = begun()
    if begun is restored:  # which says nothing to anybody before a was heard
        a_is_heard(history)
    history.delete("home", POD, "one")
    history.until("it has stopped", lambda: history.containers("one") == 0)
    if begun is put_back:
        history.passes(30.0)
        assert history.leader.charges(QUEUE) == 500
        history.mend("a")
    history.until("its quota is free", lambda: history.leader.charges(QUEUE) == 0)
    history.until("its Workload is gone", lambda: history.workload("one") is None)


def test_hd_173_what_ran_on_ends_and_it_runs_under_its_own_record() -> None:
    history = restored()
    a_is_heard(history)
    history.passes(30.0)
    cordon(history, "b")
    history.delete("b", POD, "one")
    history.until("it runs anew, in an epoch of its own", lambda: history.runs("one") == {"a"})
    assert history.leader.charges(QUEUE) == 500


def test_hd_174_what_runs_since_before_a_recovery_runs_on_when_its_cluster_comes_back_to_another_leader() -> None:
    """HD-174: its agent says *applied* anew in each session: that was taken for a placement that is only gated."""
    history = restored()
    a_is_heard(history)
    history.passes(30.0)
    history.cut("b")
    history.kill_leader()
    history.until_lost("b")
    history.mend("b")
    history.until_connected("b")
    history.passes(60.0)
    assert history.runs("one") == {"b"}


def vanishes(history: History) -> None:
    """Let a person take the finalizer off the Workload, delete it with its pod, and make the pod anew."""
    workload = history.workload("one")
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", POD, "one", {"metadata": {"finalizers": None}})
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": None}})
    history.delete("home", POD, "one")
    history.delete("home", WORKLOAD, name)
    history.until("its pod is gone", lambda: history.home.look(POD, "one") is None)
    history.pod("one")


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_224_what_a_record_never_came_to_is_stopped_as_its_workload_vanishes(
    begun: Callable[[], History], *, cut: bool
) -> None:
    """HD-224: who has its name waits for it. The symptom: for ever, since its cluster was not told before it came anew.

    The outside check sees no overlap: what a cluster lists of a later epoch is remembered from then on.
    """
    history = begun()
    a_is_heard(history)
    history.passes(30.0)
    if cut:
        history.cut("b")
    vanishes(history)
    if cut:
        history.passes(150.0)
        assert history.runs("one") == {"b"}
        assert not history.shows("one", "QuotaReserved")
        history.mend("b")
    history.until("the one made anew is admitted", lambda: history.shows("one", "Admitted"))
    history.until("it runs", lambda: history.containers("one") == 1)


@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_234_also_while_the_cluster_of_its_record_is_lost(begun: Callable[[], History]) -> None:
    """HD-234: what is live by its record, where nobody is heard, kept all others from being told.

    Where a recovery waits for a nothing is stopped before that is heard.
    """
    history = begun()
    history.passes(30.0)
    vanishes(history)
    if begun is put_back:
        history.until("it is stopped", lambda: not history.runs("one"))
    history.passes(60.0)
    history.mend("a")
    history.until("the one made anew is admitted", lambda: history.shows("one", "Admitted"))
    history.until("it runs", lambda: history.containers("one") == 1)


@pytest.mark.parametrize("begun", [restored, put_back])
def test_hd_224_of_what_vanished_while_nobody_led_a_person_is_asked(begun: Callable[[], History]) -> None:
    """HD-224: no leader saw its Workload go, so nothing explains what runs: it is left alone, and waited for."""
    history = begun()
    a_is_heard(history)
    history.passes(30.0)
    history.kill_leader()
    vanishes(history)
    history.until("another leads", history.leads)
    history.passes(200.0)
    assert history.runs("one") == {"b"}
    workload = history.workload("one")
    assert workload is not None
    assert [each["reason"] for each in workload["status"]["conditions"]] == [texts.PREDECESSOR_NOT_STOPPED]


def test_hd_34_one_clusters_word_about_a_later_epoch_holds_that_workload_and_cordons_that_cluster_alone() -> None:
    """HD-34: the symptom: one message of one worker stopped all dispatch, again after each restart."""
    history = put_back()
    history.mend("a")
    history.until_connected("a")
    for cluster in ("a", "b"):
        history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": False}})
    history.pod("other")
    assert history.until_runs("other") == "a", "b gets nothing new"
    assert history.runs("one") == {"b"}
    history.kill_leader()
    history.until("another one leads", history.leads)
    history.pod("more")
    history.until_runs("more")
    assert history.runs("one") == {"b"}
