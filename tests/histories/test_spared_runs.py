"""HD-189: what runs since before a recovery is left alone whatever becomes of the word that it was gone on with."""

from __future__ import annotations

import pytest

from gatelift.core.state.recovery_values import ANNOTATION_RECOVER, ANNOTATION_RECOVERY, ANNOTATION_STOP_UNEXPLAINED
from gatelift_kube.values.resources import WORKER_CLUSTER
from histories.test_recovery import found, placed_between, recovered, say, until_found
from support.sim.history import History

NAMES = ("stayed", "moved", "made")


def recovered_beside_them() -> History:
    """Return a history whose recovery is over: `moved` and `made` run on b under epochs of before."""
    history = placed_between()
    history.world.judges_shown = False
    say(history, until_found(history))
    history.until("dispatch goes on", lambda: recovered(history))
    history.passes(60.0)
    assert [history.runs(name) for name in NAMES] == [{"a"}, {"b"}, {"b"}]
    return history


def take_off(history: History) -> None:
    annotations = {ANNOTATION_RECOVER: None, ANNOTATION_RECOVERY: None}
    history.edit("home", WORKER_CLUSTER, "local", {"metadata": {"annotations": annotations}})


def delete_local(history: History) -> None:
    history.delete("home", WORKER_CLUSTER, "local")


def make_b_anew(history: History) -> None:
    """Delete the WorkerCluster of b and make it again, with the key that its agent has."""
    key = history.status("b")["keyDigest"]
    history.delete("home", WORKER_CLUSTER, "b")
    history.passes(2.0)
    history.home.create(WORKER_CLUSTER, {"metadata": {"name": "b"}, "spec": {}})
    history.edit("home", WORKER_CLUSTER, "b", {"status": {"keyDigest": key}}, "status")


def told_to_stop(history: History, cluster: str) -> list[str]:
    return [line for line in history.world.time.trace if f" to {cluster}: " in line and " Stop " in line]


@pytest.mark.parametrize("changed", [take_off, delete_local, make_b_anew])
def test_hd_189_what_is_spared_is_known_when_the_word_is_gone(changed: object) -> None:
    """HD-189: the next leader told b to stop both."""
    history = recovered_beside_them()
    assert callable(changed)
    changed(history)
    history.passes(10.0)
    history.kill_leader()
    history.until("another leads", history.leads)
    history.passes(120.0)
    assert [history.runs(name) for name in NAMES] == [{"a"}, {"b"}, {"b"}]
    assert not told_to_stop(history, "b")
    assert not found(history).finding


def test_hd_189_a_person_stops_them_all_the_same() -> None:
    history = recovered_beside_them()
    take_off(history)
    history.kill_leader()
    history.until("another leads", history.leads)
    history.until_connected("b")
    history.passes(60.0)
    session = str(history.status("b")["session"])
    history.edit("home", WORKER_CLUSTER, "b", {"metadata": {"annotations": {ANNOTATION_STOP_UNEXPLAINED: session}}})
    history.until("b is told", lambda: len(told_to_stop(history, "b")) >= 2)
