"""Scripted histories: a group that runs at a worker ends with its Workload, there too, whoever dies or is cut off."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]
MOMENTS = [0.0, 0.02, 0.05, 0.08, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0]
KEPT = "example.com/kept"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def placed(history: History, **takes: float) -> str:
    """Have a group of three run at a worker, each of which takes so long to stop; return where."""
    for name in ABC:
        groups.make(history, name, takes=takes.get(name, 2.0))
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    return groups.cluster_of(history)


def all_is_gone(history: History) -> bool:
    return not groups.names(history) and not groups.placed(history) and not groups.workload(history)


def ends_with_it(history: History) -> None:
    history.until("all is gone", lambda: all_is_gone(history), 300.0)
    history.passes(60.0)
    assert all_is_gone(history), "nothing makes it anew"
    assert history.leader.charges("travels") == 0


def test_pg_15_a_group_at_a_worker_ends_with_its_workload(history: History) -> None:
    placed(history, a=1.0, b=10.0, c=1.0)
    history.delete("home", WORKLOAD, GROUP)
    history.passes(5.0)
    assert groups.run_there(history) == ["b"]
    assert groups.names(history) == ABC, "nothing goes at home before all have ended"
    assert groups.workload(history), "it is charged and shown"
    ends_with_it(history)


def test_pg_15_26_each_says_at_home_why_it_goes(history: History) -> None:
    placed(history)
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": [f"{K}managed", KEPT]}})
    history.delete("home", WORKLOAD, GROUP)
    history.until("ours are off", lambda: set(groups.finalizers_of(history).values()) == {(KEPT,)}, 120.0)
    told = {
        one["metadata"]["name"]: [
            each["reason"] for each in one["status"]["conditions"] if each["type"] == "TerminationTarget"
        ]
        for one in history.home.all(POD)
    }
    assert told == {name: ["WorkloadDeleted"] for name in ABC}
    assert "Failed" not in groups.phases(history).values()


@pytest.mark.parametrize("after", MOMENTS)
def test_pg_15_another_leader_ends_what_the_one_before_it_has_begun_to(history: History, after: float) -> None:
    placed(history)
    history.delete("home", WORKLOAD, GROUP)
    history.passes(after)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    ends_with_it(history)


@pytest.mark.parametrize("after", MOMENTS)
def test_pg_15_another_agent_ends_what_the_one_before_it_has_begun_to(history: History, after: float) -> None:
    cluster = placed(history)
    history.delete("home", WORKLOAD, GROUP)
    history.passes(after)
    history.kill_agent(cluster)
    ends_with_it(history)


@pytest.mark.parametrize("another_leads", [False, True])
@pytest.mark.parametrize("another_agent", [False, True])
def test_pg_15_while_the_worker_is_away_it_stays_charged_and_ends_on_its_return(
    history: History, *, another_leads: bool, another_agent: bool
) -> None:
    cluster = placed(history)
    history.cut(cluster)
    history.delete("home", WORKLOAD, GROUP)
    history.until_lost(cluster)
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    if another_agent:
        history.kill_agent(cluster)
    history.passes(60.0)
    assert groups.names(history) == ABC
    assert groups.run_there(history) == ABC
    assert history.leader.charges("travels") > 0
    history.mend(cluster)
    ends_with_it(history)


def unheard(history: History, *, seconds: float = 10.0) -> str:
    """Have a and b succeed, and c fail or run on, at a worker that is cut off, and the Workload deleted."""
    for name in ABC:
        groups.make(history, name, seconds=seconds if name != "c" else 0.0, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    return _cut(history)


def _cut(history: History) -> str:
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.passes(15.0)
    history.delete("home", WORKLOAD, GROUP)
    history.passes(2.0)
    return cluster


@pytest.mark.parametrize("another_leads", [False, True])
@pytest.mark.parametrize("another_agent", [False, True])
def test_hd_362_a_group_all_of_which_succeeded_unheard_shows_that_and_stays(
    history: History, *, another_leads: bool, another_agent: bool
) -> None:
    for name in ABC:
        groups.make(history, name, seconds=10.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = _cut(history)
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    if another_agent:
        history.kill_agent(cluster)
    history.mend(cluster)
    history.until("its Workload is gone", lambda: not groups.workload(history), 300.0)
    history.passes(60.0)
    assert groups.phases(history) == dict.fromkeys(ABC, "Succeeded")
    assert groups.finalizers(history) == []
    assert groups.workload(history) == {}
    assert groups.placed(history) == {}
    assert history.leader.charges("travels") == 0


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_362_who_succeeded_unheard_shows_it_before_it_goes_with_the_others(
    history: History, *, another_leads: bool
) -> None:
    cluster = unheard(history)
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": [f"{K}managed", KEPT]}})
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    history.mend(cluster)
    history.until("ours are off", lambda: set(groups.finalizers_of(history).values()) == {(KEPT,)}, 300.0)
    assert {name: groups.phases(history)[name] for name in "ab"} == {"a": "Succeeded", "b": "Succeeded"}
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": []}})
    ends_with_it(history)


@pytest.mark.parametrize("after", [0.0, 0.05, 0.5, 3.0, 10.0])
@pytest.mark.parametrize("goes_on", [False, True], ids=["all", "some"])
def test_hd_362_whoever_leads_next_shows_it_when_the_one_before_has_heard_of_it(
    history: History, after: float, monkeypatch: pytest.MonkeyPatch, *, goes_on: bool
) -> None:
    """No cluster forgets how members ended before they show it."""
    for name in ABC:
        groups.make(history, name, seconds=0.0 if goes_on and name == "c" else 10.0, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": [f"{K}managed", KEPT]}})
    cluster = _cut(history)
    with monkeypatch.context() as refusing:
        send = ApiPort._send

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            if isinstance(command, Patch) and command.ref.resource == POD and command.subresource == "status":
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (429,))
        history.mend(cluster)
        history.until("its cluster is heard", lambda: history.connected(cluster), 60.0)
        history.passes(1.0 + after)
        assert "Succeeded" not in groups.phases(history).values()
        history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.until("ours are off", lambda: set(groups.finalizers_of(history).values()) == {(KEPT,)}, 300.0)
    ended = "ab" if goes_on else "abc"
    assert {name: groups.phases(history)[name] for name in ended} == dict.fromkeys(ended, "Succeeded")
    deleted = {one["metadata"]["name"] for one in history.home.all(POD) if "deletionTimestamp" in one["metadata"]}
    assert deleted == (set(ABC) if goes_on else set())
