"""A person's word and what *lost* means, on both real cores: leaders change, agents greet, words come at any time."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import ApiWrite, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, ObjectKey, ObjectRef
from support.sim.history import History

MINUTES = 120.0
"""Enough for a loss, and for whatever would wrongly be dispatched after it."""


def lost_with_a_pod() -> tuple[History, str]:
    """Return a world in which a pod runs on a worker that is shown as lost."""
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    history.cut(cluster)
    history.until_lost(cluster)
    return history, cluster


def switch_off(history: History, cluster: str) -> None:
    """Let a person switch off the machines of a worker: nothing of ours runs there any more."""
    history.kill_agent(cluster, again=False)
    for pod in history.objects(cluster, POD):
        name = pod["metadata"]["name"]
        history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
        history.delete(cluster, POD, name)
    history.until("nothing runs there", lambda: not history.runs("one"))


def test_hd_10_a_standby_of_a_time_when_the_cluster_was_lost_goes_on_from_what_is_written_now() -> None:
    history, cluster = lost_with_a_pod()
    history.world.start_manager()
    history.passes(5.0)
    history.mend(cluster)
    history.until_connected(cluster)
    history.passes(5.0)
    before = history.status(cluster)
    history.kill_leader()
    shown: list[bool] = []

    def looked() -> bool:
        status = history.status(cluster)
        assert status["openedSession"] >= before["openedSession"]
        assert status["session"] >= before["session"]
        shown.append(history.lost(cluster))
        return status["term"] > before["term"] and history.connected(cluster)

    history.until("the standby serves it", looked)
    assert not any(shown), "it was never lost again"
    assert history.runs("one") == {cluster}


def test_hd_11_a_word_that_comes_when_the_cluster_is_back_does_not_fire_at_its_next_loss() -> None:
    history, cluster = lost_with_a_pod()
    session = history.status(cluster)["session"]
    history.mend(cluster)
    history.until_connected(cluster)
    history.say_fenced(cluster, session)
    history.passes(5.0)
    history.kill_leader()
    history.passes(30.0)
    history.until_connected(cluster)
    history.cut(cluster)
    history.until_lost(cluster)
    history.passes(MINUTES)
    assert history.runs("one") == {cluster}


def test_hd_11_a_word_about_the_present_session_before_its_loss_does_not_fire_at_the_loss() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    history.say_fenced(cluster)
    history.passes(5.0)
    history.cut(cluster)
    history.until_lost(cluster)
    history.passes(MINUTES)
    assert history.runs("one") == {cluster}


def test_hd_12_the_work_runs_elsewhere_though_the_leader_dies_when_the_word_is_in_the_status() -> None:
    history, cluster = lost_with_a_pod()
    switch_off(history, cluster)
    history.say_fenced(cluster)
    session = history.status(cluster)["session"]
    time = history.world.time
    while history.status(cluster).get("fencedThroughSession") != session:
        assert time.step(time.now + MINUTES), "the word is written"
    history.kill_leader()  # before it has the answer
    history.until("it runs elsewhere", lambda: bool(history.runs("one") - {cluster}))


def test_hd_13_a_word_whose_write_fails_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-13: it is taken as the object has changed; its cluster comes back, and its work has never stopped there."""
    history, cluster = lost_with_a_pod()
    leader, home = history.leader, history.home
    refused: list[ApiWrite] = []

    class Changing:
        """The management cluster, in which somebody is always first with that WorkerCluster."""

        def __getattr__(self, name: str) -> Any:
            return getattr(home, name)

        def carry_out(self, command: ApiWrite) -> WriteDone | WriteFailed:
            if command.ref != ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster)):
                return home.carry_out(command)
            refused.append(command)
            return WriteFailed(write_id=command.write_id, error=WriteError.CONFLICT, message="it has changed")

    with monkeypatch.context() as patched:
        patched.setattr(leader.port, "cluster", Changing())
        history.say_fenced(cluster)
        history.passes(60.0)
        assert len(refused) > 10
        assert history.shows("one", "QuotaReserved")
        assert not history.shows("one", "Evicted")
        history.mend(cluster)
        history.passes(30.0)
    history.until_connected(cluster)
    history.passes(60.0)
    assert history.runs("one") == {cluster}
    assert not history.status(cluster).get("fencedThroughSession")
