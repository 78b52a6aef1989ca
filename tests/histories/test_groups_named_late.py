"""Scripted histories: who has come to a group is named by its Workload late, as that write is refused for a while."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups, groups_at_home
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


class NotNamed:
    """While it is entered, the API server is too busy to have a Workload name anybody more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._context = monkeypatch.context()

    def __enter__(self) -> None:
        refusing = self._context.__enter__()
        send = ApiPort._send

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            is_one = isinstance(command, Patch) and command.ref.resource == WORKLOAD
            if is_one and isinstance(command, Patch) and b"ownerReferences" in command.body:
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (429,))

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)


def gates(history: History) -> dict[str, bool]:
    """Return of each pod at home whether it stands at its gate."""
    return {one["metadata"]["name"]: bool(one["spec"].get("schedulingGates")) for one in history.home.all(POD)}


def test_hd_433_who_is_not_named_yet_is_not_let_go_at_home(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    history.pod("before", queue="stays", cpu="2")
    history.until_runs("before")
    for name in ABC:
        groups_at_home.make(history, name)
    history.until("it waits", lambda: groups_at_home.owners(history) == ABC, 30.0)
    with NotNamed(monkeypatch):
        history.delete("home", POD, "a")
        groups_at_home.make(history, "d")
        history.delete("home", POD, "before")
        history.passes(60.0)
        assert gates(history) == {"b": False, "c": False, "d": True}
    groups_at_home.until_all_run(history, "b", "c", "d")
    assert sorted(groups_at_home.owners(history)) == ["b", "c", "d"]


def test_hd_433_where_none_of_those_that_wait_is_named_the_group_waits_for_that(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ABC:
        groups_at_home.make(history, name, seconds=5.0 if name == "a" else 0.0)
    history.until("one has succeeded", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.passes(10.0)
    with NotNamed(monkeypatch):
        for name in ("d", "e"):
            groups_at_home.make(history, name)
        history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
        history.passes(90.0)
        assert {name: gated for name, gated in gates(history).items() if name in {"d", "e"}} == {"d": True, "e": True}
        assert not groups.condition(history, "Finished")[0]
    groups_at_home.until_all_run(history, "d", "e")
