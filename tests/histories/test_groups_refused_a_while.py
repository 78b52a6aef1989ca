"""Scripted histories: what all pods of a group wait for is refused for a while: to name one, to delete one too many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Delete, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.embedded.watches import StoreChange
from support.manager.group_world import GROUP
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.objects import holds
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def names_more(command: ApiWrite) -> bool:
    return isinstance(command, Patch) and command.ref.resource == WORKLOAD and b"ownerReferences" in command.body


def deletes_pod(command: ApiWrite) -> bool:
    return isinstance(command, Delete) and command.ref.resource == POD


class TooBusy:
    """While it is entered, the API server is too busy for such writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, which: Callable[[ApiWrite], bool]) -> None:
        self._context, self._which = monkeypatch.context(), which

    def __enter__(self) -> None:
        refusing = self._context.__enter__()
        send, which = ApiPort._send, self._which

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            if which(command):
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
    with TooBusy(monkeypatch, names_more):
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
    with TooBusy(monkeypatch, names_more):
        for name in ("d", "e"):
            groups_at_home.make(history, name)
        history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
        history.passes(90.0)
        assert {name: gated for name, gated in gates(history).items() if name in {"d", "e"}} == {"d": True, "e": True}
        assert not groups.condition(history, "Finished")[0]
    groups_at_home.until_all_run(history, "d", "e")


def test_hd_434_who_is_too_many_goes_once_a_deletion_that_failed_may_be_tried_again(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.pod("before", queue="stays", cpu="2")
    history.until_runs("before")
    with TooBusy(monkeypatch, deletes_pod):
        for name in [*ABC, "d"]:
            groups_at_home.make(history, name)
        history.passes(10.0)
        assert groups_at_home.names(history) == ["a", "b", "before", "c", "d"]
    history.until("it is gone", lambda: groups_at_home.names(history) == ["a", "b", "before", "c"], 120.0)


def test_hd_435_what_was_given_back_with_all_pods_names_no_others_before_its_record_says_so(history: History) -> None:
    """One of them stays for somebody's finalizer, and others come under the group's name."""
    for name in ABC:
        groups.make(history, name, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    history.edit("home", POD, "a", {"metadata": {"finalizers": ["kueue.x-k8s.io/managed", "example.com/kept"]}})
    for name in ABC:
        history.delete("home", POD, name)
    history.until("it is given back", lambda: history.leader.charges("travels") == 0, 120.0)
    history.passes(5.0)
    wrong: list[str] = []

    def looked_at(storage: tuple[str, str], change: StoreChange) -> None:
        document = change.after.view()
        if storage == (WORKLOAD.group, WORKLOAD.plural) and holds(document, "QuotaReserved"):
            owners = {one["name"] for one in document["metadata"].get("ownerReferences", [])}
            epoch = document["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1")
            wrong.extend(owners & {"d", "e", "f"} if epoch == "1" and "a" in owners else ())

    history.home.store.listen(looked_at)
    for name in "def":
        groups.make(history, name)
    history.until("others run", lambda: groups.run_there(history) == ["d", "e", "f"], 120.0)
    assert wrong == []
