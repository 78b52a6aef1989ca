"""Scripted histories of elastic Jobs that end while they are resized: deleted, finished, evicted, fenced (KEP-77)."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from support.sim.sized_history import NAME, SizedHistory

STEPS = pytest.mark.parametrize("step", range(0, 26, 3))
QUEUES = pytest.mark.parametrize("queue", ["travels", "stays"])


def is_clean(history: SizedHistory) -> bool:
    """Say whether nothing of the Job is anywhere."""
    places = ("home", *history.workers)
    return not any(history.objects(name, kind) for name in places for kind in (JOB, POD)) and not history.objects(
        "home", WORKLOAD
    )


@STEPS
@QUEUES
@pytest.mark.parametrize("wanted", [10, 1])
def test_sl_59_its_user_deletes_the_job_at_each_step(
    monkeypatch: pytest.MonkeyPatch, step: int, queue: str, wanted: int
) -> None:
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3)
    history.account.first = set()
    history.resize(wanted)
    history.passes(step / 100)
    history.delete("home", JOB, NAME)
    history.until("nothing is left", lambda: is_clean(history), 400.0)
    assert history.leader.charges(queue) == 0


@STEPS
def test_sl_59_it_finishes_at_each_step(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Its pods succeed while it grows: the slice that waits ends with what ran."""
    history = SizedHistory(monkeypatch)
    history.begins(3, runs=4.0, completions=3)
    history.account.first = set()
    history.resize(10)
    history.passes(step / 8)
    history.until("it is over", lambda: history.shows(NAME, "Finished", "Job"), 100.0)
    history.until("all slices are", lambda: all(one[3] for one in history.slices()), 60.0)


@STEPS
def test_sl_58_a_person_says_fenced_with_a_growth_under_way(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """SL-58: what ran is gone with its machines; the chain is queued whole, and runs elsewhere with what is wanted."""
    history = SizedHistory(monkeypatch)
    where = history.begins(3)
    history.resize(10)
    history.passes(step / 100)
    history.cut(where)
    history.until_lost(where)
    history.account.first = set()
    history.delete(where, JOB, NAME, propagation="Foreground")
    history.until("nothing runs there", lambda: not history.objects(where), 60.0)
    history.say_fenced(where)
    history.rests(10, 400.0)
    assert not history.objects(where)
    history.mend(where)
    history.passes(60.0)
    history.rests(10)
    assert not history.objects(where), "who comes back starts nothing"


@STEPS
def test_sl_34_an_evicted_chain_is_queued_with_its_size(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """SL-34, EJ-020: all pods drain, then the quota goes; who asked for more is not worse off."""
    history = SizedHistory(monkeypatch)
    history.begins(3)
    history.resize(10)
    history.passes(step / 100)
    history.account.first = set()
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "HoldAndDrain"}})
    history.until("all is stopped", lambda: history.account.may_run() == 0, 120.0)
    history.passes(20.0)
    assert (history.account.charged(), history.running()) == (0, 0)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "None"}})
    history.rests(10, 400.0)
