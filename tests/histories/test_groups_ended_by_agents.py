"""Scripted histories: an agent ends a run of a group by itself, and the same pods of the user's run again."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]


class RefusedLift:
    """While it is entered, no API server takes the lift of this pod."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._context, self._name = monkeypatch.context(), name

    def __enter__(self) -> None:
        refusing = self._context.__enter__()
        send, name = ApiPort._send, self._name

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            is_pod = isinstance(command, Patch) and command.ref.resource == POD and command.ref.key.name == name
            if is_pod and isinstance(command, Patch) and b"schedulingGates" in command.body:
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (422,))

    def __exit__(self, *_: object) -> None:
        self._context.__exit__(None, None, None)


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def placed(history: History, **seconds: float) -> str:
    """Have a group of three run at a worker, each of which takes a while to stop; return where."""
    for name in ABC:
        groups.make(history, name, seconds=seconds.get(name, 0.0), takes=6.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    return groups.cluster_of(history)


def resized(history: History, cluster: str, name: str = "a") -> None:
    """Give a pod at its worker other requests than are charged."""
    containers = groups.placed(history)[name]["spec"]["containers"]
    containers[0]["resources"] = {"requests": {"cpu": "750m"}}
    history.edit(cluster, POD, name, {"spec": {"containers": containers}}, "resize")


def epoch(history: History) -> str:
    return str(groups.workload(history)["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1"))


def never_failed(history: History, seconds: float) -> None:
    for _ in range(int(seconds * 5)):
        history.passes(0.2)
        assert "Failed" not in groups.phases(history).values()


def run_again(history: History, before: dict[str, str], *, names: list[str] = ABC) -> None:
    """Check that a second epoch of the same pods runs, and nobody waits for others."""
    history.until("a second epoch runs", lambda: epoch(history) == "2" and groups.run_there(history) == names, 300.0)
    assert {name: groups.whose(history)[name] for name in names} == {name: before[name] for name in names}
    assert groups.condition(history, "WaitingForReplacementPods")[0] in {"", "False"}
    assert "Failed" not in groups.phases(history).values()


def uids(history: History) -> dict[str, str]:
    return {name: groups.uid(history, name) for name in ABC}


def test_hd_430_mc_11_a_group_that_its_agent_ends_is_not_shown_as_failed_and_runs_again(history: History) -> None:
    cluster = placed(history)
    before = uids(history)
    resized(history, cluster)
    never_failed(history, 12.0)
    run_again(history, before)
    assert "WorkerObjectEdited" in str(history.home.look(WORKLOAD, GROUP))


@pytest.mark.parametrize("after", [0.0, 0.1, 0.5, 1.0, 3.0, 5.9, 6.1, 8.0])
def test_hd_430_mc_11_nor_where_another_agent_goes_on_with_it(history: History, after: float) -> None:
    cluster = placed(history)
    before = uids(history)
    resized(history, cluster)
    history.passes(after)
    history.kill_agent(cluster)
    never_failed(history, 20.0)
    run_again(history, before)


@pytest.mark.parametrize("after", [0.1, 1.0, 5.9, 6.1, 6.3, 8.0])
def test_hd_430_mc_11_nor_where_another_leads(history: History, after: float) -> None:
    cluster = placed(history)
    before = uids(history)
    resized(history, cluster)
    history.passes(after)
    history.kill_leader()
    never_failed(history, 40.0)
    run_again(history, before)


@pytest.mark.parametrize("after", [0.0, 0.1, 1.0, 5.9, 6.1, 8.0])
def test_mc_11_who_is_stopped_for_one_leader_is_not_shown_as_failed_by_the_next(history: History, after: float) -> None:
    """Who leads next sees no reason to stop it, and hears of its end."""
    placed(history)
    before = uids(history)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "HoldAndDrain"}})
    history.passes(after)
    history.kill_leader()
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "None"}})
    never_failed(history, 40.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 300.0)
    assert groups.whose(history) == before
    assert groups.condition(history, "WaitingForReplacementPods")[0] in {"", "False"}


@pytest.mark.parametrize("another_agent", [False, True])
def test_hd_430_mc_11_nor_where_it_is_said_from_a_record_once_its_cluster_is_back(
    history: History, *, another_agent: bool
) -> None:
    """Nobody hears of the end for so long that the pods at the worker are let go."""
    cluster = placed(history)
    before = uids(history)
    history.cut(cluster)
    resized(history, cluster)
    history.until("nothing is left there", lambda: not groups.placed(history), 200.0)
    if another_agent:
        history.kill_agent(cluster)
    history.mend(cluster)
    never_failed(history, 20.0)
    run_again(history, before)


def test_hd_430_mc_11_the_others_do_not_fail_with_one_whose_lift_is_refused(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RefusedLift(monkeypatch, "b"):
        for name in ABC:
            groups.make(history, name, takes=6.0)
        for _ in range(200):
            history.passes(0.2)
            shown = groups.phases(history)
            assert "Failed" not in {shown["a"], shown["c"]}


def test_hd_430_who_came_to_an_end_of_its_own_is_shown_so_and_does_not_run_again(history: History) -> None:
    cluster = placed(history, a=20.0)
    before = uids(history)
    history.until("one has succeeded", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    resized(history, cluster, "b")
    never_failed(history, 12.0)
    run_again(history, before, names=["b", "c"])
    assert groups.phases(history)["a"] == "Succeeded"


@pytest.mark.parametrize("after", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_523_who_stops_first_as_its_manager_stops_all_has_not_failed_where_its_agent_dies(
    history: History, after: float, *, another_leads: bool
) -> None:
    """MC-11: the agent after it finds it deleted, and over, and has deleted it for nobody."""
    for name in ABC:
        groups.make(history, name, takes=1.0 if name == "a" else 40.0, grace=60)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    before, cluster = groups.whose(history), groups.cluster_of(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.passes(after)
    if another_leads:
        history.kill_leader()
    history.kill_agent(cluster)
    never_failed(history, 90.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    run_again(history, before)
