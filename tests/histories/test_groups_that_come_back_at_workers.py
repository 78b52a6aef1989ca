"""Scripted histories: a group runs a second time at a worker, and who succeeded in the first time does not."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


class Refused:
    """While it is entered, the API server takes no status of a pod at home, or none with this in it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, code: int = 429, which: bytes = b"") -> None:
        self._context, self._code, self._which = monkeypatch.context(), code, which

    def __enter__(self) -> None:
        refusing = self._context.__enter__()
        send, which = ApiPort._send, self._which

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            of_pod = isinstance(command, Patch) and command.ref.resource == POD and command.subresource == "status"
            if of_pod and isinstance(command, Patch) and which in command.body:
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (self._code,))

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)


def placed(history: History, *, seconds: float = 10.0) -> str:
    """Have a group of three run at a worker, of which `a` succeeds after so long; return where."""
    for name in ABC:
        groups.make(history, name, seconds=seconds if name == "a" else 0.0, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    return groups.cluster_of(history)


def active(history: History, *, value: bool) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": value}})


def second_time(history: History) -> None:
    """Check that b and c run again, and a does not."""
    history.until("the others run", lambda: groups.run_there(history) == ["b", "c"], 300.0)
    for _ in range(30):
        history.passes(2.0)
        assert "a" not in groups.placed(history)
    assert groups.phases(history)["a"] == "Succeeded"


def test_hd_367_only_the_others_run_again(history: History) -> None:
    placed(history)
    history.until("one has succeeded", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    active(history, value=False)
    history.until("nothing runs", lambda: not groups.run_there(history), 60.0)
    active(history, value=True)
    second_time(history)


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_366_who_succeeded_does_not_run_again_where_that_is_not_shown_before_all_has_stopped(
    history: History, monkeypatch: pytest.MonkeyPatch, *, another_leads: bool
) -> None:
    placed(history)
    with Refused(monkeypatch):
        history.passes(15.0)
        assert groups.run_there(history) == ["b", "c"]
        active(history, value=False)
        history.passes(30.0)
        active(history, value=True)
        history.passes(30.0)
        if another_leads:
            history.kill_leader()
    second_time(history)


def test_hd_366_who_succeeded_while_its_worker_was_cut_off_does_not_run_again(history: History) -> None:
    cluster = placed(history)
    history.cut(cluster)
    history.passes(15.0)
    active(history, value=False)
    history.until_lost(cluster)
    history.mend(cluster)
    history.passes(30.0)
    active(history, value=True)
    second_time(history)


def test_hd_366_an_end_that_home_does_not_take_whole_is_shown_by_the_smallest_status(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = placed(history)
    history.cut(cluster)
    history.passes(15.0)
    active(history, value=False)
    with Refused(monkeypatch, code=422, which=b"exitCode"):
        history.mend(cluster)
        history.until("nothing runs", lambda: not groups.run_there(history), 120.0)
        history.passes(10.0)
        active(history, value=True)
        second_time(history)


def test_hd_366_an_end_that_home_never_takes_keeps_no_quota_for_ever(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = placed(history)
    history.cut(cluster)
    history.passes(15.0)
    active(history, value=False)
    with Refused(monkeypatch, code=422):
        history.mend(cluster)
        history.until("it is given back", lambda: groups.condition(history, "QuotaReserved")[0] == "False", 120.0)


@pytest.mark.parametrize("another_leads", [False, True])
@pytest.mark.parametrize("stopped", [False, True])
def test_hd_368_who_succeeded_and_went_with_its_node_while_nobody_heard_does_not_run_again(
    history: History, *, another_leads: bool, stopped: bool
) -> None:
    """Also where another agent begins before it is heard: the one before has written it down."""
    cluster = placed(history)
    history.cut(cluster)
    history.passes(15.0)
    assert groups.run_there(history) == ["b", "c"]
    history.delete(cluster, POD, "a")
    history.until("it is gone", lambda: "a" not in groups.placed(history), 90.0)
    if stopped:
        active(history, value=False)
    history.kill_agent(cluster)
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    history.mend(cluster)
    history.until("it is shown", lambda: groups.phases(history)["a"] == "Succeeded", 300.0)
    if stopped:
        active(history, value=True)
    second_time(history)
    assert groups.condition(history, "WaitingForReplacementPods")[0] != "True"
