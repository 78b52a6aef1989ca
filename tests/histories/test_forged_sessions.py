"""Scripted histories (HD-225, HD-226): numbers that nobody has come to stand in the status of a WorkerCluster.

The simulated API server holds each write against the transition rules of the CRD that is deployed, as a real one does.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from support.sim.history import History

HIGHEST = 2**63 - 1
READABLE = 10**18
"""A number of 19 digits can be said by nobody: `gatelift cluster fenced` takes 18."""
NUMBERS = (
    "session",
    "openedSession",
    "restoredSession",
    "replacedSession",
    "takenOverSession",
    "settledSession",
    "fencedThroughSession",
)


def write(history: History, cluster: str, **status: int | str | None) -> None:
    history.edit("home", WORKER_CLUSTER, cluster, {"status": status}, "status")


def numbers(history: History, cluster: str) -> dict[str, int]:
    return {name: history.status(cluster).get(name, 0) for name in NUMBERS}


def cordon_others(history: History, where: str, *, cordoned: bool = True) -> None:
    for other in set(history.workers) - {where}:
        history.edit("home", WORKER_CLUSTER, other, {"spec": {"cordoned": cordoned}})
    history.passes(2.0)


def say_fenced(history: History, cluster: str) -> None:
    """Its machines are off, and a person says so."""
    for each in history.objects(cluster):
        history.edit(cluster, POD, each["metadata"]["name"], {"metadata": {"finalizers": None}})
        history.workers[cluster].delete(POD, each["metadata"]["name"], grace_seconds=0)
    history.until("nothing runs there", lambda: cluster not in history.runs("one"))
    history.say_fenced(cluster)


def goes_on(history: History, where: str) -> None:
    """Its agent gets a session anew, and what is placed there runs."""
    before = history.status(where)["session"]
    history.kill_agent(where)
    history.until("a new session", lambda: history.status(where)["session"] != before, 120.0)
    history.until_connected(where)
    cordon_others(history, where)
    history.pod("two")
    assert history.until_runs("two") == where
    assert all(each < READABLE for each in numbers(history, where).values())
    assert history.containers("one") == history.containers("two") == 1


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("number", [1000, 2**40, HIGHEST], ids=["1000", "2^40", "highest"])
def test_hd_226_a_leader_that_knows_better_writes_its_own_numbers_back(name: str, number: int) -> None:
    """The symptom: 422 at each write, and at `settledSession` no later doubt was ever seen again."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    history.passes(5.0)
    true = numbers(history, where)
    write(history, where, **{name: number})
    history.until("they are written back", lambda: numbers(history, where) == true, 10.0)
    goes_on(history, where)


def test_hd_226_nor_is_a_number_lowered_or_taken_away() -> None:
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    history.kill_agent(where)
    history.passes(60.0)
    true = numbers(history, where)
    assert true["session"] > 1
    for number in (1, None):
        write(history, where, session=number, openedSession=number)
        history.until("they are written back", lambda: numbers(history, where) == true, 10.0)
    goes_on(history, where)


def test_hd_226_what_runs_is_not_over_by_a_word_about_a_session_of_before() -> None:
    """A person has said *fenced* of session 1; it came back and runs work, is cut off, and is shown as session 1."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    history.cut(where)
    history.until_lost(where)
    say_fenced(history, where)
    history.until("one runs elsewhere", lambda: bool(history.runs("one") - {where}))
    history.mend(where)
    history.until_connected(where)
    cordon_others(history, where)
    history.pod("two")
    assert history.until_runs("two") == where
    history.cut(where)
    history.until_lost(where)
    cordon_others(history, where, cordoned=False)
    session = history.status(where)["session"]
    write(history, where, session=history.status(where)["fencedThroughSession"])
    history.passes(60.0)
    assert history.runs("two") == {where}
    assert history.status(where)["session"] == session


def a_leader_begins_with(forged: dict[str, int]) -> None:
    """Let numbers be written while nobody leads: the next leader has readable ones instead, and its work goes on."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    for each in history.world.managers:
        each.kill()
    write(history, where, **forged)
    history.until("somebody leads", history.leads)
    history.until_connected(where)
    history.until("it is readable", lambda: max(numbers(history, where).values()) < READABLE, 60.0)
    goes_on(history, where)


@pytest.mark.parametrize("name", NUMBERS)
def test_hd_226_a_leader_that_begins_believes_no_number_that_nobody_can_have_come_to(name: str) -> None:
    a_leader_begins_with({name: HIGHEST})


def test_hd_226_nor_all_of_them_together_and_the_term_with_them() -> None:
    a_leader_begins_with({"term": HIGHEST, **dict.fromkeys(NUMBERS, HIGHEST)})


def test_hd_226_a_cluster_that_is_gone_for_good_can_still_be_declared_fenced() -> None:
    """A number of 19 digits could not be said by anybody: its work stayed charged for ever."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    history.cut(where)
    history.until_lost(where)
    for each in history.world.managers:
        each.kill()
    write(history, where, session=HIGHEST)
    history.until("somebody leads", history.leads)
    history.until("it is readable", lambda: history.status(where)["session"] < READABLE, 120.0)
    say_fenced(history, where)
    history.until("one runs elsewhere", lambda: bool(history.runs("one") - {where}))


@pytest.mark.parametrize("term", [1000, 2**62])
def test_hd_225_a_forged_term_keeps_no_agent_from_its_session(term: int) -> None:
    """The symptom: 422 *the term never goes back* once a second, and no session any more."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    first = history.status(where)["term"]
    write(history, where, term=term)
    history.kill_agent(where)
    history.until("it is written over", lambda: history.status(where)["term"] == first, 10.0)
    goes_on(history, where)


@pytest.mark.parametrize("term", [1000, 2**62])
def test_hd_225_nor_home_from_its_work_under_the_next_leader(term: int) -> None:
    """The symptom: no queue at home got new work any more, under any leader."""
    history = History()
    for each in history.world.managers:
        each.kill()
    write(history, "local", term=term)
    history.until("somebody leads", history.leads)
    history.pod("one", "stays")
    assert history.until_runs("one") in {"home", "local"}
    assert history.status("local")["term"] == history.leader.elector.term
