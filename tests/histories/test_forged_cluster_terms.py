"""Scripted histories (HD-207): a term above the leader's is written into the status of a WorkerCluster."""

from __future__ import annotations

import pytest

from gatelift.core.api import events
from gatelift_kube.values.resources import WORKER_CLUSTER
from support.sim.history import History

TERMS = [1000, 2**31 - 1, 2**62]


def write(history: History, cluster: str, term: int) -> None:
    history.edit("home", WORKER_CLUSTER, cluster, {"status": {"term": term}}, "status")


def steps_down(history: History) -> list[str]:
    return [line for line in history.world.time.trace if "steps down" in line]


@pytest.mark.parametrize("term", TERMS)
def test_hd_207_a_term_that_the_lease_does_not_confirm_ends_no_leader_and_is_written_over(term: int) -> None:
    """The symptom: the leader was deposed three of three times, and the term never lowered again."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    leader, first = history.leader, history.leader.elector.term
    for more in range(3):
        write(history, where, term + more)
        history.until("it is written over", lambda: history.status(where)["term"] == first, 60.0)
    history.passes(60.0)
    assert (history.leader, leader.elector.term) == (leader, first)
    assert not steps_down(history)
    assert history.connected(where)
    history.pod("two")
    history.until_runs("two")
    assert history.containers("one") == history.containers("two") == 1


@pytest.mark.parametrize("term", TERMS)
def test_hd_207_nor_does_it_keep_the_next_one_from_leading(term: int) -> None:
    """The symptom: at 2^62 the next leader patched one record fifty times a second, and never placed it."""
    history = History()
    history.pod("one")
    where = history.until_runs("one")
    for each in history.world.managers:
        each.kill()
    write(history, where, term)
    history.until("somebody leads", history.leads)
    history.until_connected(where)
    history.until("it is written over", lambda: history.status(where)["term"] == history.leader.elector.term, 120.0)
    leader = history.leader
    history.pod("two")
    history.until_runs("two")
    history.passes(120.0)
    assert history.leader is leader
    assert not steps_down(history)
    assert leader.elector.term < 2**31
    assert history.containers("one") == history.containers("two") == 1
    written: list[object] = []
    history.home.store.listen(lambda *change: written.append(change))
    history.passes(10.0)
    assert len(written) < 50, "it comes to rest"


def test_hd_207_a_higher_term_that_the_lease_confirms_ends_a_leader_who_does_not_know_it() -> None:
    history = History(shown=False)
    history.pod("one")
    where = history.until_runs("one")
    deposed, leader = history.leader, history.world.start_manager()
    history.passes(10.0)
    deposed.elector.over = True
    deposed.elector.valid_until = 1e9
    deposed.process.post(events.LeadershipExtended(valid_until=1e9))
    history.until("somebody else leads", leader.elector.leads)
    history.until("it has ended", lambda: deposed.process.dead, 60.0)
    (why,) = steps_down(history)
    assert f"the Lease is in term {leader.elector.term}, held by {leader.name}" in why
    history.passes(60.0)
    assert leader.elector.leads()
    assert history.status(where)["term"] == leader.elector.term
    assert history.containers("one") == 1
