"""HD-163, HD-164: whoever deletes a ClusterQueue or a ResourceFlavor, or moves one, frees nothing that is in use."""

from __future__ import annotations

from functools import partial

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, POD, RESOURCE_FLAVOR
from support.manager.builders import kueue_object
from support.sim.cohort_history import (
    BORROWED,
    FINALIZER,
    LONG,
    OWN,
    a_borrower_at_work,
    a_history,
    active,
    make_queue,
    quota,
    running,
    take_finalizer_off,
)
from support.sim.history import History


def test_hd_163_a_queue_that_borrows_stays_charged_until_its_work_has_ended() -> None:
    history = a_borrower_at_work()
    history.delete("home", CLUSTER_QUEUE, "travels")
    history.passes(LONG)
    assert running(history, BORROWED) == list(BORROWED)
    assert not running(history, OWN), "what it borrowed is lent again"
    assert active(history) == ("False", "Terminating")
    local = history.home.look(LOCAL_QUEUE, "travels")
    assert local is not None
    assert [one["reason"] for one in local["status"]["conditions"]] == ["ClusterQueueIsInactive"]

    history.delete("home", POD, BORROWED[0])
    history.until("one of the lender's runs", lambda: len(running(history, OWN)) == 1)
    assert active(history) == ("False", "Terminating")
    history.delete("home", POD, BORROWED[1])
    history.until("the other runs, too", lambda: len(running(history, OWN)) == 2)
    history.until("the queue is gone", lambda: history.home.look(CLUSTER_QUEUE, "travels") is None)


def test_hd_163_a_queue_that_is_being_deleted_admits_nothing_more() -> None:
    history = a_borrower_at_work()
    history.delete("home", CLUSTER_QUEUE, "travels")
    history.passes(3)
    history.pod("late", cpu="100m")
    history.delete("home", POD, BORROWED[0])
    history.passes(LONG)
    assert not running(history, ("late",))
    found = history.workload("late")
    assert found is not None
    assert [one["message"] for one in found["status"]["conditions"]] == ["ClusterQueue travels is inactive"]


def test_hd_163_the_next_leader_keeps_it_as_well() -> None:
    history = a_borrower_at_work()
    history.delete("home", CLUSTER_QUEUE, "travels")
    history.kill_leader()
    history.passes(2 * LONG)
    assert running(history, BORROWED) == list(BORROWED)
    assert not running(history, OWN)
    for name in BORROWED:
        history.delete("home", POD, name)
    history.until("the queue is gone", lambda: history.home.look(CLUSTER_QUEUE, "travels") is None)


def test_hd_163_an_idle_queue_goes_at_once() -> None:
    history = a_borrower_at_work()
    history.delete("home", CLUSTER_QUEUE, "stays")
    history.passes(3)
    assert history.home.look(CLUSTER_QUEUE, "stays") is None


def test_hd_163_a_flavor_stays_while_a_queue_names_it_or_work_holds_quota_of_it() -> None:
    history = a_history()
    history.home.create(RESOURCE_FLAVOR, kueue_object("ResourceFlavor", "other", {}))
    history.home.create(RESOURCE_FLAVOR, kueue_object("ResourceFlavor", "unused", {}))
    history.pod("one")
    history.until_runs("one")
    assert _finalizers(history, "default") == [FINALIZER]
    history.delete("home", RESOURCE_FLAVOR, "unused")
    history.delete("home", RESOURCE_FLAVOR, "default")
    history.passes(LONG)
    assert history.home.look(RESOURCE_FLAVOR, "unused") is None
    for name in ("travels", "stays"):
        history.edit("home", CLUSTER_QUEUE, name, {"spec": {"resourceGroups": quota("3000m", "other")}})
    history.passes(LONG)
    assert _finalizers(history, "default") == [FINALIZER], "no queue names it, and its quota is in use"
    history.delete("home", POD, "one")
    history.until("it is gone", lambda: history.home.look(RESOURCE_FLAVOR, "default") is None)


def _as_many_run(history: History, number: int) -> bool:
    return len(running(history, OWN)) == number


def taken_away(history: History) -> None:
    """Let a person delete the queue that borrows, finalizer and all."""
    history.delete("home", CLUSTER_QUEUE, "travels")
    take_finalizer_off(history)
    history.passes(3)
    assert history.home.look(CLUSTER_QUEUE, "travels") is None


def lent_only_as_it_ends(history: History) -> None:
    """Check that the lender's own pods run one by one, each after one that had borrowed."""
    history.passes(2 * LONG)
    assert running(history, BORROWED) == list(BORROWED)
    assert not running(history, OWN), "what was borrowed is lent again"
    for number, name in enumerate(BORROWED, start=1):
        history.delete("home", POD, name)
        history.until("one more of the lender's runs", partial(_as_many_run, history, number))


@pytest.mark.parametrize("leader_dies", [False, True])
def test_hd_164_without_its_finalizer_a_queue_frees_nothing_either(*, leader_dies: bool) -> None:
    history = a_borrower_at_work()
    taken_away(history)
    if leader_dies:
        history.kill_leader()
    lent_only_as_it_ends(history)


@pytest.mark.parametrize("cohort", [None, "elsewhere"])
def test_hd_164_made_anew_under_its_name_it_pays_no_debt(cohort: str | None) -> None:
    history = a_borrower_at_work()
    taken_away(history)
    make_queue(history, "travels", "3000m", cohort)
    lent_only_as_it_ends(history)


@pytest.mark.parametrize("leader_dies", [False, True])
def test_hd_164_a_queue_that_is_put_into_another_cohort_pays_no_debt(*, leader_dies: bool) -> None:
    history = a_borrower_at_work()
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"cohortName": "elsewhere"}})
    if leader_dies:
        history.kill_leader()
    lent_only_as_it_ends(history)
    history.until("nothing is owed any more", lambda: charged_in(history) == "elsewhere")


def charged_in(history: History) -> str:
    """Return what the queue that borrows says of where it is charged."""
    found = history.home.look(CLUSTER_QUEUE, "travels")
    assert found is not None
    return str(found["metadata"]["annotations"]["gatelift.dev/charged-in"])


def test_hd_164_that_its_work_outlives_a_queue_is_said_in_the_log() -> None:
    history = a_borrower_at_work()
    taken_away(history)
    history.kill_leader()
    history.passes(LONG)
    notes = [line for line in history.world.time.trace if "ClusterQueue travels is gone" in line]
    assert len(notes) == 2, "by the next leader as well"


def _finalizers(history: History, name: str) -> list[str]:
    found = history.home.look(RESOURCE_FLAVOR, name)
    assert found is not None
    return list(found["metadata"].get("finalizers", []))
