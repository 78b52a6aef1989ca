"""Scripted histories: a driver at a worker makes its workers there, through cuts, restarts and evictions."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import drivers, groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

FINISHED = "Finished"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups, and whose agents take in what drivers make."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False, agents={"adopts": True})


def end_of(history: History) -> str:
    return groups.condition(history, FINISHED)[2]


def test_dw_6_a_driver_and_its_workers_run_as_one_group_and_end_as_one(history: History) -> None:
    drivers.drive(history, 2, seconds=60.0)
    for name in ("w1", "w2"):
        drivers.makes(history, name, seconds=10.0)
    history.until("both run", lambda: drivers.workers_run(history) == ["w1", "w2"], 30.0)
    history.until("home tells of them", lambda: "2 active" in drivers.told_of(history), 60.0)
    history.until("it has finished", lambda: end_of(history) == "Pods succeeded: 3/3", 200.0)
    history.until("nothing is left there", lambda: not groups.placed(history), 120.0)
    assert groups.names(history) == ["driver"]


def test_dw_6_dw_2_workers_beyond_the_count_are_turned_away(history: History) -> None:
    drivers.drive(history, 2)
    for name in ("w1", "w2", "w3"):
        drivers.makes(history, name)
        history.passes(1.0)
    history.until("two run", lambda: drivers.workers_run(history) == ["w1", "w2"], 30.0)
    history.until("one is gone", lambda: drivers.workers(history) == ["w1", "w2"], 30.0)
    history.until("home tells", lambda: "1 turned away" in drivers.told_of(history), 60.0)


def test_dw_6_dw_5_a_driver_for_good_ends_with_the_last_of_its_workers(history: History) -> None:
    drivers.drive(history, 2, seconds=20.0, notes=drivers.FOR_GOOD)
    drivers.makes(history, "w1", seconds=60.0)
    history.until("it is over", lambda: groups.phases(history)["driver"] == "Succeeded", 60.0)
    assert drivers.workers_run(history) == ["w1"]
    assert end_of(history) == ""
    history.until("it has finished", lambda: end_of(history) == "Pods succeeded: 2/3, gone: 1", 200.0)


def test_dw_6_a_group_that_is_deactivated_stops_its_workers_and_the_next_epoch_starts_from_the_driver(
    history: History,
) -> None:
    drivers.drive(history, 2)
    for name in ("w1", "w2"):
        drivers.makes(history, name, takes=20.0)
    history.until("both run", lambda: drivers.workers_run(history) == ["w1", "w2"], 30.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.passes(5.0)
    assert groups.condition(history, "QuotaReserved")[0] == "True", "its quota is kept while they stop"
    history.until("nothing is left there", lambda: not groups.placed(history), 120.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("the driver runs again", lambda: groups.run_there(history) == ["driver"], 200.0)
    drivers.makes(history, "w3")
    history.until("its worker runs", lambda: drivers.workers_run(history) == ["w3"], 60.0)


@pytest.mark.parametrize("step", range(0, 24, 2))
def test_dw_8_whenever_the_agent_is_killed_between_two_workers_no_more_run_than_were_granted(
    history: History, step: int
) -> None:
    drivers.drive(history, 2)
    where = groups.cluster_of(history)
    drivers.makes(history, "w1")
    history.passes(step / 8)
    history.kill_agent(where)
    for name in ("w2", "w3"):
        drivers.makes(history, name, cluster=where)
        history.passes(0.5)
    for _ in range(80):
        history.passes(5.0)
        assert len(drivers.workers_run(history)) <= 2
    assert drivers.workers_run(history) == ["w1", "w2"]
    assert drivers.workers(history) == ["w1", "w2"]


@pytest.mark.parametrize("step", range(0, 16, 2))
def test_dw_6_whenever_the_manager_is_killed_the_group_comes_to_its_end(history: History, step: int) -> None:
    """HD-384."""
    drivers.drive(history, 2, seconds=25.0, notes=drivers.FOR_GOOD)
    drivers.makes(history, "w1", seconds=70.0)
    drivers.makes(history, "w2", seconds=50.0)
    history.passes(step * 2.0)
    history.kill_leader()
    history.until("it has finished", lambda: end_of(history) == "Pods succeeded: 3/3", 600.0)
    history.until("all are let go", lambda: not groups.finalizers(history), 60.0)


def test_dw_6_through_a_cut_workers_run_on_and_none_is_let_go_that_came_meanwhile(history: History) -> None:
    """R1."""
    drivers.drive(history, 2)
    where = groups.cluster_of(history)
    drivers.makes(history, "w1")
    history.until("one runs", lambda: drivers.workers_run(history) == ["w1"], 30.0)
    history.cut(where)
    history.until_lost(where)
    drivers.makes(history, "w2", cluster=where)
    history.passes(30.0)
    assert drivers.workers_run(history) == ["w1"]
    history.mend(where)
    history.until("both run", lambda: drivers.workers_run(history) == ["w1", "w2"], 120.0)


def test_dw_6_a_group_that_ends_while_its_worker_is_cut_off_is_stopped_there_on_its_return(history: History) -> None:
    drivers.drive(history, 2)
    where = groups.cluster_of(history)
    drivers.makes(history, "w1")
    history.until("one runs", lambda: drivers.workers_run(history) == ["w1"], 30.0)
    history.cut(where)
    history.until_lost(where)
    history.delete("home", POD, "driver")
    drivers.makes(history, "w2", cluster=where)
    history.passes(60.0)
    assert drivers.workers_run(history) == ["w1"]
    history.mend(where)
    history.until("nothing is left there", lambda: not groups.placed(history), 300.0)


def test_dw_8_the_agent_is_killed_as_the_group_stops_and_all_are_stopped_before_that_is_said(history: History) -> None:
    drivers.drive(history, 2)
    where = groups.cluster_of(history)
    for name in ("w1", "w2"):
        drivers.makes(history, name, takes=15.0)
    history.until("both run", lambda: drivers.workers_run(history) == ["w1", "w2"], 30.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.passes(1.0)
    history.kill_agent(where)
    history.until("its quota is free", lambda: groups.condition(history, "QuotaReserved")[0] == "False", 300.0)
    assert groups.run_there(history) == []


def test_dw_7_a_driver_that_failed_is_replaced_while_its_workers_run_on(history: History) -> None:
    drivers.drive(history, 2)
    drivers.makes(history, "w1")
    history.until("one runs", lambda: drivers.workers_run(history) == ["w1"], 30.0)
    history.delete(groups.cluster_of(history), POD, "driver")
    history.until("it is shown", lambda: groups.phases(history)["driver"] == "Failed", 120.0)
    assert drivers.workers_run(history) == ["w1"]


@pytest.mark.parametrize("number", range(1, 8))
def test_dw_8_whenever_the_agent_dies_after_a_write_of_its_own_each_worker_gets_one_place(
    history: History, number: int
) -> None:
    """HD-382."""
    drivers.drive(history, 2)
    where = groups.cluster_of(history)
    history.agent(where).dies_after_write(number)
    for name in ("w1", "w2", "w3"):
        drivers.makes(history, name, cluster=where)
        history.passes(0.5)
    if not history.world.alive(where):
        history.world.start_agent(where)
    for _ in range(60):
        history.passes(5.0)
        assert len(drivers.workers_run(history)) <= 2
    assert len(drivers.workers_run(history)) == 2
    assert drivers.workers(history) == drivers.workers_run(history)


@pytest.mark.parametrize("killed", ["", "agent", "manager", "both"])
def test_dw_6_workers_of_home_and_those_made_there_share_the_places(history: History, killed: str) -> None:
    """HD-383: also where both begin anew."""
    drivers.drive(history, 3)
    where = groups.cluster_of(history)
    drivers.makes(history, "w1")
    history.until("one runs", lambda: drivers.workers_run(history) == ["w1"], 30.0)
    drivers.home_makes(history, "h1", 4)
    history.until("home's runs, too", lambda: drivers.workers_run(history) == ["h1", "w1"], 60.0)
    if killed in {"agent", "both"}:
        history.kill_agent(where)
    if killed in {"manager", "both"}:
        history.kill_leader()
    drivers.makes(history, "w2", cluster=where)
    drivers.home_makes(history, "h2", 4)
    drivers.makes(history, "w3", cluster=where)
    for _ in range(60):
        history.passes(5.0)
        assert len(drivers.workers_run(history)) <= 3
    assert len(drivers.workers_run(history)) == 3
    assert {"h1", "w1"} <= set(drivers.workers_run(history))


def test_dw_6_a_worker_that_failed_is_replaced_by_its_driver_in_its_place(history: History) -> None:
    drivers.drive(history, 1)
    drivers.makes(history, "w1", seconds=5.0, exit_code=1)
    history.until("it has failed", lambda: "1 failed" in drivers.told_of(history), 60.0)
    drivers.makes(history, "w2")
    history.until("another runs", lambda: drivers.workers_run(history) == ["w2"], 60.0)
    drivers.makes(history, "w3")
    history.until("a third is turned away", lambda: "w3" not in drivers.workers(history), 60.0)


def test_dw_6_a_worker_whose_node_is_lost_keeps_its_place_until_nothing_of_it_can_run(history: History) -> None:
    """P10."""
    drivers.drive(history, 1)
    where = groups.cluster_of(history)
    drivers.makes(history, "w1", takes=60.0)
    history.until("it runs", lambda: drivers.workers_run(history) == ["w1"], 30.0)
    history.delete(where, POD, "w1")
    drivers.makes(history, "w2", cluster=where)
    history.passes(20.0)
    assert "w2" not in groups.run_there(history)
    history.until("another runs", lambda: drivers.workers_run(history) == ["w2"], 120.0)
