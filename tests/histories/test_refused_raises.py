"""HD-236: a Workload whose epoch cannot be raised after a restore holds itself, and nobody else's recovery."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD, WORKLOAD
from histories.test_recovery import cordon, found, recovered, say, set_active, until_found
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.restoring import backup, restore

ANNOTATION_BYTES_MAX = 256 * 1024
"""Kubernetes' limit for the annotations of an object."""


def name_of(history: History) -> str:
    workload = history.workload("mine")
    assert workload is not None
    return str(workload["metadata"]["name"])


def fill(history: History, size: int) -> None:
    """Write an annotation of that size to a Workload, 0: take it off. Whoever may patch it may do so."""
    text: Doc = {"metadata": {"annotations": {"x": "y" * size if size else None}}}
    history.edit("home", WORKLOAD, name_of(history), text)


def restored_with_full_annotations() -> History:
    """Return a history whose recovery a person has begun; the annotations of `mine`, which waits, have no room."""
    history = History(shown=False)
    for name in ("a", "b"):
        cordon(history, name)
    history.pod("mine")
    history.passes(10.0)
    set_active(history, "mine", active=False)
    workload = history.workload("mine")
    assert workload is not None
    used = sum(len(key) + len(value) for key, value in workload["metadata"]["annotations"].items())
    fill(history, ANNOTATION_BYTES_MAX - used - 11)
    history.passes(10.0)
    kept = backup(history)
    cordon(history, "a", on=False)
    history.pod("other")
    history.until_runs("other")
    history.passes(90.0)
    restore(history, kept)
    say(history, until_found(history))
    for name in ("a", "b"):
        cordon(history, name, on=False)
    history.pod("someone-elses")
    history.until("others go on", lambda: history.containers("someone-elses") == 1)
    set_active(history, "mine", active=True)
    history.passes(30.0)
    return history


def test_hd_236_it_is_raised_when_there_is_room_and_the_recovery_ends() -> None:
    """HD-236: the symptom: nobody's work was placed, for as long as one tenant liked."""
    history = restored_with_full_annotations()
    assert found(history).finding is not None
    assert history.containers("mine") == 0, "its epoch may have been used"
    fill(history, 0)
    history.until("it is recovered", lambda: recovered(history))
    history.until("it runs", lambda: history.containers("mine") == 1)


def test_hd_236_the_next_leader_holds_it_and_nobody_else_as_well() -> None:
    history = restored_with_full_annotations()
    history.kill_leader()
    history.until("another leads", history.leads)
    history.pod("later")
    history.until("others go on", lambda: history.containers("later") == 1)
    history.passes(60.0)
    assert history.containers("mine") == 0


@pytest.mark.parametrize("what", ["its object", "its Workload"])
def test_hd_236_it_can_be_deleted(what: str) -> None:
    history = restored_with_full_annotations()
    if what == "its object":
        history.delete("home", POD, "mine")
        history.until("it is gone", lambda: history.workload("mine") is None)
    else:
        history.delete("home", WORKLOAD, name_of(history))
    history.until("it is recovered", lambda: recovered(history))
