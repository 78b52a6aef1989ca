"""Scripted histories (HD-171): a term above the leader's is in a record, forged around the policy or a leader's."""

from __future__ import annotations

from functools import partial

from gatelift.core.api import events
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD
from support.sim.history import History
from support.sim.manager import SimManager

FORGED = 999_999


def running(*names: str) -> History:
    history = History(shown=False)
    for name in names:
        history.pod(name)
        history.until_runs(name)
        history.until("it says so", partial(history.shows, name, "Admitted"))
    return history


def marked_term(history: History, name: str) -> int:
    workload = history.workload(name)
    assert workload is not None
    return int(workload["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]["gatelift.dev/term"])


def write(history: History, name: str, term: int) -> None:
    workload = history.workload(name)
    assert workload is not None
    checks = workload["status"]["admissionChecks"]
    checks[0]["podSetUpdates"][0]["annotations"]["gatelift.dev/term"] = str(term)
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": {"admissionChecks": checks}}, "status")


def term_of(manager: SimManager) -> int:
    return manager.elector.term


def test_hd_171_a_forged_term_ends_no_leader_and_is_put_back() -> None:
    history = running("one", "two")
    leader, where = history.leader, history.runs("one")
    for _ in range(5):
        write(history, "one", FORGED)
        history.until("it is put back", lambda: marked_term(history, "one") == term_of(leader))
    history.pod("three", seconds=5.0)
    history.until("others run and end", lambda: history.shows("three", "Finished"))
    assert (history.leader, history.runs("one")) == (leader, where)
    assert leader.charges("travels") == 1000


def test_hd_171_so_it_is_for_a_leader_who_finds_it() -> None:
    history = running("one", "two")
    where = history.runs("one")
    for each in history.world.managers:
        each.kill()
    write(history, "one", FORGED)
    write(history, "two", FORGED)
    history.until("somebody leads", history.leads)
    leader = history.leader
    history.until(
        "it is put back", lambda: {marked_term(history, each) for each in ("one", "two")} == {term_of(leader)}
    )
    history.passes(60.0)
    assert (history.leader, history.runs("one")) == (leader, where)
    assert leader.charges("travels") == 1000


def test_hd_171_a_leader_who_was_deposed_and_does_not_know_it_ends_by_the_term_that_it_reads() -> None:
    """Its looks at its Lease hang, and its watch of clusters: only a record tells it that somebody else leads."""
    history = running("one")
    deposed, leader = history.leader, history.world.start_manager()
    history.passes(10.0)
    deposed.stall(600.0, [WORKER_CLUSTER])  # which would tell it by themselves
    deposed.elector.over = True
    deposed.elector.valid_until = 1e9
    deposed.process.post(events.LeadershipExtended(valid_until=1e9))
    history.until("somebody else leads", leader.elector.leads)
    history.passes(20.0)
    assert not deposed.process.dead
    assert deposed.machine.core.leads(deposed.process.now), "as far as it knows"
    write(history, "one", term_of(leader))
    history.until("it has ended", lambda: deposed.process.dead, 5.0)
    (why,) = [line for line in history.world.time.trace if "steps down" in line]
    assert f"the Lease is in term {term_of(leader)}, held by {leader.name}" in why
    assert marked_term(history, "one") == term_of(leader)
    history.passes(60.0)
    assert leader.elector.leads()
    assert history.containers("one") == 1
