"""Scripted histories (HD-516): a success vanishes from home, and another pod comes in its place."""

from __future__ import annotations

import pytest

from gatelift.core import texts
from gatelift.core.works.standstills import STANDS_SECONDS
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.history import History

QUEUES = ("travels", "stays")


def vanishes(history: History, name: str) -> None:
    """Have a pod vanish from home: somebody takes its finalizer off, and it is deleted."""
    history.edit("home", POD, name, {"metadata": {"finalizers": None}})
    history.home.delete(POD, name, grace_seconds=0)
    history.passes(1.0)
    assert groups.at_home(history, name) is None


def shows(history: History, name: str, phase: str) -> bool:
    return groups.phases(history).get(name) == phase


def of_two(history: History, queue: str, *, second: float = 40.0) -> None:
    """Have one of two succeed, and vanish, while the other one runs."""
    groups.make(history, "a", seconds=3.0, queue=queue, total=2)
    groups.make(history, "b", seconds=second, queue=queue, total=2)
    history.until("one has succeeded", lambda: shows(history, "a", "Succeeded"), 60.0)
    history.passes(2.0)
    vanishes(history, "a")


def epoch(history: History) -> str:
    return str(groups.workload(history)["metadata"]["annotations"]["gatelift.dev/epoch"])


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_516_who_comes_in_the_place_of_a_success_that_vanished_runs_once_the_others_are_over(queue: str) -> None:
    """The group stood still for ever, with its quota."""
    history = History(shown=False)
    of_two(history, queue)
    groups.make(history, "c", seconds=5.0, queue=queue, total=2)
    history.passes(20.0)
    assert shows(history, "b", "Running"), "nobody is ended for it"
    assert shows(history, "c", "Pending")
    history.until("the other one succeeds", lambda: shows(history, "b", "Succeeded"), 60.0)
    history.until("it runs", lambda: shows(history, "c", "Running"), STANDS_SECONDS + 60.0)
    assert history.leader.charges(queue) == 500, "it alone is charged"
    assert epoch(history) == "2"
    history.until("all is finished", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 2/2", 60.0)
    history.until("nothing is charged", lambda: history.leader.charges(queue) == 0, 60.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_516_it_is_told_why_the_quota_was_given_back(queue: str) -> None:
    history = History(shown=False)
    of_two(history, queue, second=8.0)
    groups.make(history, "c", queue=queue, total=2)
    history.edit("home", CLUSTER_QUEUE, queue, {"spec": {"stopPolicy": "Hold"}})
    history.until("it is evicted", lambda: groups.condition(history, "Evicted")[0] == "True", STANDS_SECONDS + 60.0)
    assert groups.condition(history, "Evicted")[1:] == (texts.NO_MATCHING_WORKLOAD, texts.NO_SLOT_LEFT)
    assert history.leader.charges(queue) == 0
    assert shows(history, "b", "Succeeded"), "what succeeded stays"


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_516_a_standstill_ends_also_where_its_leader_is_killed_meanwhile(queue: str) -> None:
    history = History(shown=False)
    of_two(history, queue, second=8.0)
    groups.make(history, "c", seconds=5.0, queue=queue, total=2)
    history.passes(60.0)
    history.kill_leader()
    history.until("all is finished", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 2/2", 600.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_516_a_success_of_before_the_admission_that_vanishes_is_admitted_anew(queue: str) -> None:
    """It was granted nothing, so who comes in its place has no slot in what was."""
    history = History(shown=False)
    groups.make(history, "a", seconds=3.0, queue=queue, total=2)
    groups.make(history, "b", queue=queue, total=2)
    history.until("one has succeeded", lambda: shows(history, "a", "Succeeded"), 60.0)
    history.passes(2.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("it has no quota", lambda: history.leader.charges(queue) == 0, 60.0)
    if queue == "stays":
        groups.make(history, "d", seconds=30.0, queue=queue, total=2)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    runs = "d" if queue == "stays" else "b"
    history.until("the other one runs", lambda: shows(history, runs, "Running"), 60.0)
    vanishes(history, "a")
    groups.make(history, "c", seconds=5.0, queue=queue, total=2)
    history.passes(10.0)
    assert shows(history, runs, "Running")
    if queue == "travels":
        history.delete("home", POD, "b")
        groups.make(history, "e", seconds=5.0, queue=queue, total=2)
    history.until("all is finished", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 2/2", 600.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_516_while_one_runs_or_none_waits_nothing_is_given_back(queue: str) -> None:
    history = History(shown=False)
    for name, seconds in (("a", 3.0), ("b", 6.0), ("c", 2 * STANDS_SECONDS)):
        groups.make(history, name, seconds=seconds, queue=queue)
    history.until("two have succeeded", lambda: shows(history, "a", "Succeeded") and shows(history, "b", "Succeeded"))
    vanishes(history, "a")
    groups.make(history, "d", queue=queue)
    history.passes(1.5 * STANDS_SECONDS)
    assert shows(history, "c", "Running"), "nobody is ended for it"
    history.delete("home", POD, "d")
    history.until("the last one succeeds", lambda: shows(history, "c", "Succeeded"), 300.0)
    history.passes(1.5 * STANDS_SECONDS)
    assert epoch(history) == "1"
