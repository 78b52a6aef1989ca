"""Scripted histories: an API server takes the lift of one pod of a group not, for good, and the others run on."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD
from support.sim import groups as there
from support.sim import groups_at_home as at_home
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, running, says, theirs, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

TROUBLE = "gatelift.dev/PodTrouble"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


class Refused:
    """While it is entered, no write that takes the gates off these pods is taken by the API server, for good."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str, at_home: bool = True) -> None:
        self._context, self._names, self._at_home = monkeypatch.context(), names, at_home

    def __enter__(self) -> None:
        refusing = self._context.__enter__()
        send, names, home = ApiPort._send, self._names, self._at_home

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            of_pod = isinstance(command, Patch) and command.ref.resource == POD and not command.subresource
            here = command.ref.key.name in names and (port.cluster.name == "home") == home
            if of_pod and here and isinstance(command, Patch) and b"schedulingGates" in command.body:
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (422,))

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_hd_411_at_home_the_others_run_and_the_workload_says_why_one_does_not(
    history: History, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with Refused(monkeypatch, name):
        for each in "abc":
            make(history, each)
        history.passes(60.0)
        others = sorted({"a", "b", "c"} - {name})
        assert running(history) == others
        status, reason, message = says(history, TROUBLE)
        assert (status, reason) == ("True", "StartRefused")
        assert f"Pod {name} " in message
        assert "answered 422" in message
        assert says(history, "Admitted")[0] == "True"
    until_all_run(history, *"abc")
    history.until("it is over", lambda: says(history, TROUBLE)[0] == "", 60.0)


def test_hd_411_a_new_leader_ends_them_as_little(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    with Refused(monkeypatch, "b"):
        for each in "abc":
            make(history, each)
        history.passes(20.0)
        before = (theirs(history) or {})["metadata"]["uid"]
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
        history.passes(60.0)
        assert running(history) == ["a", "c"]
        assert says(history, TROUBLE)[:2] == ("True", "StartRefused")
    until_all_run(history, *"abc")
    assert (theirs(history) or {})["metadata"]["uid"] == before


def test_hd_411_who_replaces_one_is_tried_again_too(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in "abc":
        make(history, each, seconds=10.0 if each == "a" else 0.0, exit_code=1)
    history.until("one has failed", lambda: at_home.in_phase(history, "Failed") == ["a"], 60.0)
    with Refused(monkeypatch, "d"):
        make(history, "d")
        history.passes(60.0)
        assert running(history) == ["b", "c"]
        assert says(history, TROUBLE)[:2] == ("True", "StartRefused")
        assert at_home.names(history) == ["b", "c", "d"] or "d" in at_home.names(history)
    until_all_run(history, *"bcd")


def test_hd_411_where_none_is_let_go_its_quota_is_given_back(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    with Refused(monkeypatch, *"abc"):
        for each in "abc":
            make(history, each)
        history.until("it is given back", lambda: says(history, "QuotaReserved")[0] == "False", 60.0)
        assert says(history, TROUBLE)[:2] == ("True", "StartRefused")


def test_hd_411_one_whose_user_deletes_it_can_be_replaced(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    with Refused(monkeypatch, "b"):
        for each in "abc":
            make(history, each)
        history.passes(20.0)
        history.delete("home", POD, "b")
        history.until("it has gone", lambda: at_home.names(history) == ["a", "c"], 60.0)
        make(history, "d")
        until_all_run(history, *"acd")


@pytest.mark.parametrize("name", ["a", "c"])
def test_hd_411_at_a_worker_one_is_shown_as_failed_and_the_others_run_on(
    history: History, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with Refused(monkeypatch, name, at_home=False):
        for each in "abc":
            there.make(history, each)
        history.passes(90.0)
        others = sorted({"a", "b", "c"} - {name})
        assert there.run_there(history) == others
        assert there.phases(history)[name] == "Failed"
        assert (there.at_home(history, name) or {})["status"]["reason"] == "Invalid"
    there.make(history, "d")
    history.until("all run", lambda: there.run_there(history) == sorted([*others, "d"]), 100.0)
