"""Scripted histories: who replaces a pod that home shows as failed is not too many; who is too many is turned away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Delete, Patch
from gatelift_kube.values.resources import POD
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]
UNANSWERED_SECONDS = 9.0
"""Almost as long as who writes waits for an answer."""


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def shows_an_end(command: ApiWrite) -> bool:
    return isinstance(command, Patch) and command.ref.resource == POD and b'"Failed"' in command.body


def leave_unanswered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each write that shows a failure land, and its answer be lost: who wrote it is told nothing for long."""
    send = ApiPort._send

    def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
        if not shows_an_end(command):
            send(port, command, deadline)
            return
        port._timeline.after(0.01, lambda: port._land(command, answered=False))
        port._timeline.after(UNANSWERED_SECONDS, lambda: port._unsure(command))

    monkeypatch.setattr(ApiPort, "_send", sent)


def test_hd_473_who_replaces_one_that_is_shown_as_failed_is_not_too_many_before_that_write_is_answered(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PG-7."""
    for name in ABC:
        groups.make(history, name, seconds=20.0 if name == "b" else 0.0, exit_code=1)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    leave_unanswered(monkeypatch)
    history.until("it is shown", lambda: groups.phases(history)["b"] == "Failed", 60.0)
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 30.0)


def test_hd_518_who_takes_the_place_of_one_that_was_deleted_is_not_too_many_in_a_list_anew(history: History) -> None:
    """A list is in the order of names: the new pod came before the deletion of the old one, and was turned away."""
    for name in ("b", "c"):
        groups.make(history, name, queue="nowhere")
    groups.make(history, "d", queue="nowhere")
    history.until("it waits", lambda: bool(groups.workload(history)), 30.0)
    history.leader.stall(60.0, (POD,))
    history.delete("home", POD, "d")
    first = groups.make(history, "a", queue="nowhere")["metadata"]["uid"]
    for each in history.leader._watches:
        if each.resource == POD:
            each.list_anew()
    history.passes(10.0)
    assert groups.uid(history, "a") == first
    assert groups.names(history) == ["a", "b", "c"]


def is_deletion_of(command: ApiWrite, name: str) -> bool:
    return isinstance(command, Delete) and command.ref.resource == POD and command.ref.key.name == name


def lose_deletions(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], bool]:
    """Let no deletion of a pod at home land while this lasts; return whether one was asked for."""
    send, asked = ApiPort._send, list[ApiWrite]()

    def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
        if port.cluster.name == "home" and is_deletion_of(command, name):
            asked.append(command)
        else:
            send(port, command, deadline)

    monkeypatch.setattr(ApiPort, "_send", sent)
    return lambda: bool(asked)


def test_hd_521_who_is_too_many_at_a_worker_is_turned_away_by_another_leader_too(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PG-6: it waited for one that was leaving and had succeeded; its deletion was lost with the leader."""
    for name in ABC:
        groups.make(history, name, seconds=30.0 if name == "b" else 0.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.passes(60.0)
    with monkeypatch.context() as patch:
        was_asked = lose_deletions(patch, "d")
        history.delete("home", POD, "b")
        groups.make(history, "d")
        history.mend(cluster)
        history.until("it is to be turned away", was_asked, 300.0)
        history.kill_leader()
    history.until("it is turned away", lambda: "d" not in groups.names(history), 120.0)
    history.passes(20.0)
    assert "d" not in groups.placed(history)
    assert groups.run_there(history) == ["a", "c"]


def test_hd_521_who_waits_there_for_one_that_may_run_is_none_of_them(history: History) -> None:
    """P10: it was removed by force; who replaces it has its slot once its node was heard of."""
    for name in ABC:
        groups.make(history, name)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=True)
    history.edit("home", POD, "b", {"metadata": {"finalizers": None}})
    history.delete("home", POD, "b")
    groups.make(history, "d")
    history.passes(60.0)
    assert "d" in groups.names(history)
    history.cluster(cluster).cut_node(f"{cluster}-node", lost=False)
    history.until("it runs", lambda: groups.run_there(history) == ["a", "c", "d"], 200.0)
