"""Scripted histories: a group runs at a worker as one, its members are replaced there, and no slot is used twice."""

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


def placed(history: History, *, seconds: float = 0.0, takes: float = 0.0) -> None:
    """Have a group of three run at a worker."""
    for name in ABC:
        groups.make(history, name, seconds=seconds, takes=takes)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)


def test_pg_2_a_group_runs_at_a_worker_as_one_and_ends_once_all_have_succeeded(history: History) -> None:
    """PM-007."""
    placed(history, seconds=20.0)
    assert groups.whose(history) == {name: groups.uid(history, name) for name in ABC}
    history.until("it has finished", lambda: groups.condition(history, "Finished")[0] == "True", 120.0)
    assert groups.condition(history, "Finished")[1:] == ("Succeeded", "Pods succeeded: 3/3")
    assert set(groups.phases(history).values()) == {"Succeeded"}
    history.until("all are let go", lambda: not groups.finalizers(history), 60.0)
    history.until("nothing is left there", lambda: not groups.placed(history), 60.0)


def test_what_runs_there_is_shown_at_home_and_stays_at_its_gate(history: History) -> None:
    """PM-008."""
    placed(history)
    history.until("it is shown", lambda: set(groups.phases(history).values()) == {"Running"}, 30.0)
    assert all(one["spec"].get("schedulingGates") for one in history.home.all(POD))


@pytest.mark.parametrize("step", range(0, 30, 3))
def test_pg_31_a_group_at_a_worker_comes_to_its_end_whenever_its_manager_is_killed(history: History, step: int) -> None:
    for name in ABC:
        groups.make(history, name, seconds=20.0)
    history.passes(step)
    history.kill_leader()
    history.until("it has finished", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3", 400.0)
    history.until("all are let go", lambda: not groups.finalizers(history), 60.0)


@pytest.mark.parametrize("step", range(0, 30, 3))
def test_mc_2_a_group_at_a_worker_comes_to_its_end_whenever_its_agent_is_killed(history: History, step: int) -> None:
    for name in ABC:
        groups.make(history, name, seconds=20.0)
    history.passes(step)
    history.kill_agent(groups.cluster_of(history) or "a")
    history.until("it has finished", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3", 600.0)


def test_mc_4_pg_7_a_member_deleted_at_home_ends_there_and_another_takes_its_slot(history: History) -> None:
    placed(history, takes=5.0)
    before = groups.workload(history)["metadata"]["uid"]
    history.delete("home", POD, "b")
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 60.0)
    assert groups.run_there(history) == ["a", "c"]
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 60.0)
    assert groups.workload(history)["metadata"]["uid"] == before
    assert groups.condition(history, "Evicted")[0] != "True"


def test_pg_9_an_early_replacement_waits_until_the_one_that_leaves_has_stopped(history: History) -> None:
    placed(history, takes=20.0)
    history.delete("home", POD, "b")
    groups.make(history, "d")
    history.passes(10)
    assert groups.run_there(history) == ABC
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 60.0)
    assert groups.names(history) == ["a", "c", "d"]


def test_mc_8_a_replacement_of_the_same_name_is_another_pod_made_after_the_old_one_has_stopped(
    history: History,
) -> None:
    placed(history, takes=10.0)
    first = groups.uid(history, "b")
    history.delete("home", POD, "b")
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 60.0)
    groups.make(history, "b")
    history.until("another runs", lambda: groups.run_there(history) == ABC, 60.0)
    assert groups.whose(history)["b"] == groups.uid(history, "b") != first


def test_pg_7_a_member_that_failed_keeps_its_finalizer_until_another_has_its_slot(history: History) -> None:
    for name in ABC:
        groups.make(history, name, seconds=10.0 if name == "b" else 0.0, exit_code=1)
    history.until("one has failed", lambda: groups.phases(history)["b"] == "Failed", 60.0)
    history.passes(20)
    assert groups.finalizers(history) == ABC
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 60.0)
    history.until("its finalizer goes", lambda: groups.finalizers(history) == ["a", "c", "d"], 60.0)


@pytest.mark.parametrize("step", range(0, 24, 3))
def test_a_member_is_replaced_whenever_its_manager_is_killed(history: History, step: int) -> None:
    placed(history, takes=5.0)
    history.delete("home", POD, "b")
    history.passes(step / 3)
    groups.make(history, "d")
    history.kill_leader()
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 400.0)
    history.until("one has gone", lambda: groups.names(history) == ["a", "c", "d"], 200.0)


@pytest.mark.parametrize("step", range(8))
def test_mc_2_a_member_is_replaced_or_told_of_as_gone_whenever_its_agent_is_killed(history: History, step: int) -> None:
    placed(history, takes=3.0)
    history.delete("home", POD, "b")
    groups.make(history, "d")
    history.passes(step / 2)
    history.kill_agent(groups.cluster_of(history))
    history.until(
        "another runs, or is told of",
        lambda: "d" in groups.run_there(history) or groups.phases(history).get("d") == "Failed",
        600.0,
    )
    assert {"a", "c"} <= set(groups.run_there(history))


def test_mc_5_a_member_removed_at_the_worker_is_shown_as_failed_and_can_be_replaced(history: History) -> None:
    placed(history)
    history.delete(groups.cluster_of(history), POD, "b")
    history.until("it is shown", lambda: groups.phases(history)["b"] == "Failed", 120.0)
    assert groups.run_there(history) == ["a", "c"]
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 200.0)


def test_mc_7_all_members_deleted_while_the_worker_is_cut_off_are_ended_on_its_return(history: History) -> None:
    """Y4. PM-009."""
    placed(history)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until_lost(cluster)
    for name in ABC:
        history.delete("home", POD, name)
    history.passes(60)
    assert groups.names(history) == ABC
    history.mend(cluster)
    history.until("nothing is left", lambda: not groups.names(history) and not groups.placed(history), 400.0)


def test_mc_4_a_member_deleted_while_the_worker_is_cut_off_leaves_on_its_return(history: History) -> None:
    placed(history)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until_lost(cluster)
    history.delete("home", POD, "b")
    history.passes(60)
    assert groups.names(history) == ABC
    history.mend(cluster)
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 400.0)
    assert groups.run_there(history) == ["a", "c"]


def test_pg_17_mc_11_an_evicted_group_is_never_shown_as_failed_and_runs_again_with_the_same_pods(
    history: History,
) -> None:
    placed(history, takes=5.0)
    before = {name: groups.uid(history, name) for name in ABC}
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    for _ in range(60):
        history.passes(0.5)
        assert "Failed" not in groups.phases(history).values()
    assert groups.run_there(history) == []
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("all three run", lambda: groups.run_there(history) == ABC, 300.0)
    assert groups.whose(history) == before


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_hd_406_a_member_is_replaced_in_a_session_that_was_resumed(history: History, seconds: float) -> None:
    """PG-7: what runs is confirmed anew where something of it is to start."""
    placed(history)
    cluster = groups.cluster_of(history)
    if seconds:
        history.cut(cluster)
        history.passes(seconds)
        history.mend(cluster)
    else:
        history.world.net.break_all(cluster)
    history.passes(20)
    history.delete("home", POD, "b")
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 60.0)
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 120.0)


def test_hd_663_nor_is_one_forgotten_whose_lift_was_lost_with_its_session(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PG-7: it waited for ever: nobody asked for the word of the session that was resumed (drawn seed 100,003,016)."""
    placed(history)
    cluster, send, lost = groups.cluster_of(history), ApiPort._send, list[ApiWrite]()

    def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
        named = isinstance(command, Patch) and command.ref.resource == POD and command.ref.key.name == "d"
        if not lost and named and port.cluster.name == cluster:
            lost.append(command)
            history.world.net.break_all(cluster)
            port._timeline.after(0.02, lambda: port._refuse(command))
        else:
            send(port, command, deadline)

    monkeypatch.setattr(ApiPort, "_send", sent)
    monkeypatch.setattr("support.sim.port.REFUSALS", (429,))
    history.delete("home", POD, "b")
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 60.0)
    groups.make(history, "d")
    history.until("another runs", lambda: groups.run_there(history) == ["a", "c", "d"], 120.0)
    assert lost
