"""HD-181: a Workload that is held while it has a reservation says so, and why, and the way out; so does its cluster."""

from __future__ import annotations

from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.restoring import Backup, cordon, moved_to_b, restore

HELD = "gatelift.dev/Held"
NO_NEW_WORK = "NoNewWork"
HEARD_OF_ALL_NODES = 300.0
"""Seconds after which an agent that does not list a placement is believed."""
SOON = 30.0
"""Seconds within which people are told."""


def said(status: Doc, type_: str) -> Doc | None:
    return next((one for one in status.get("conditions", []) if one["type"] == type_), None)


def held(history: History) -> Doc | None:
    workload = history.workload("one")
    assert workload is not None
    return said(workload["status"], HELD)


def placed_where_nobody_knows_of_it() -> History:
    """Return a history whose record says (1, a), of which a knows nothing, while b runs epoch 2."""
    history = History()
    kept = moved_to_b(history)
    history.passes(HEARD_OF_ALL_NODES)
    for manager in history.world.managers:
        manager.kill()
    restore(history, Backup({WORKLOAD: kept.objects[WORKLOAD]}, history.world.manager_lease))
    history.until("somebody leads", history.leads)
    history.until_connected("a")
    history.until_connected("b")
    history.passes(SOON)
    return history


def test_hd_181_it_shows_as_admitted_and_says_that_it_is_held_and_why_and_the_way_out() -> None:
    history = placed_where_nobody_knows_of_it()
    assert history.shows("one", "Admitted")
    told = held(history)
    assert told is not None, "only an event says it"
    assert (told["status"], told["reason"]) == ("True", "EpochAhead")
    assert "cluster b names epoch 2" in told["message"]
    assert "gatelift.dev/epoch to 3 or above" in told["message"]
    assert history.runs("one") == {"b"}


def test_hd_181_the_cluster_that_gets_no_new_work_says_so() -> None:
    history = placed_where_nobody_knows_of_it()
    told = said(history.status("b"), NO_NEW_WORK)
    assert told is not None, "it is cordoned without a word"
    assert (told["status"], told["reason"]) == ("True", "EpochAhead")
    assert "Workload team/" in told["message"]
    assert "epoch 2" in told["message"]
    assert said(history.status("a"), NO_NEW_WORK) is None


def test_hd_181_all_of_it_is_taken_back_when_a_person_has_done_as_it_says() -> None:
    history = placed_where_nobody_knows_of_it()
    workload = history.workload("one")
    assert workload is not None
    cordon(history, "a", on=False)
    raised = {"metadata": {"annotations": {"gatelift.dev/epoch": "3"}}}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], raised)
    history.until("nothing says it any more", lambda: held(history) is None)
    history.until(
        "its cluster gets work again", lambda: (said(history.status("b"), NO_NEW_WORK) or {}).get("status") == "False"
    )
    history.until_runs("one")


def test_hd_181_the_next_leader_goes_on_saying_it() -> None:
    history = placed_where_nobody_knows_of_it()
    before = held(history)
    history.kill_leader()
    history.until("another one leads", history.leads)
    history.until_connected("b")
    history.passes(SOON)
    assert held(history) == before
    told = said(history.status("b"), NO_NEW_WORK)
    assert told is not None
    assert told["status"] == "True"


def test_hd_181_nothing_is_written_while_nothing_changes() -> None:
    history = placed_where_nobody_knows_of_it()
    workload = history.workload("one")
    assert workload is not None
    history.passes(120.0)
    after = history.workload("one")
    assert after is not None
    assert after["metadata"]["resourceVersion"] == workload["metadata"]["resourceVersion"]


def test_hd_181_what_was_over_there_is_not_started_anew_by_the_word_of_a_worker_alone() -> None:
    """It may have ended as its user wanted it, and later epochs may have been elsewhere: a person decides."""
    history = placed_where_nobody_knows_of_it()
    history.delete("b", POD, "one")
    history.until("it is over on b", lambda: not history.runs("one"))
    history.passes(120.0)
    assert not history.runs("one")
    told = held(history)
    assert told is not None
    assert "has ended there" in told["message"]
    workload = history.workload("one")
    assert workload is not None
    raised = {"metadata": {"annotations": {"gatelift.dev/epoch": "3"}}}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], raised)
    history.until_runs("one")
    assert held(history) is None
