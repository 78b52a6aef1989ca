"""Scripted histories: a group whose pods are over, or gone, waits for others over a change of leader."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups as there
from support.sim import groups_at_home as at_home
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, running, says, theirs, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager

WAITING = "WaitingForReplacementPods"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def until_another_leads(history: History) -> None:
    history.kill_leader()
    history.until("another one leads", history.leads, 100.0)
    history.passes(30.0)


def all_have_failed(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=10.0, exit_code=1)
    history.until("all have failed", lambda: at_home.in_phase(history, "Failed") == ["a", "b", "c"], 60.0)
    history.passes(5.0)


def test_hd_410_a_new_leader_waits_for_others_where_all_that_ran_at_home_failed(history: History) -> None:
    all_have_failed(history)
    before = (theirs(history) or {})["metadata"]["uid"]
    until_another_leads(history)
    assert (says(history, "Finished")[0], says(history, "Admitted")[0]) == ("", "True")
    for name in "def":
        make(history, name)
    history.until("the others run", lambda: running(history) == ["d", "e", "f"], 60.0)
    assert (theirs(history) or {})["metadata"]["uid"] == before


def test_hd_410_nor_does_it_end_what_waits_for_one_beside_those_that_succeeded(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=10.0, exit_code=1 if name == "b" else 0)
    history.until("two succeeded", lambda: at_home.in_phase(history, "Succeeded") == ["a", "c"], 60.0)
    history.until("and one failed", lambda: at_home.in_phase(history, "Failed") == ["b"], 60.0)
    until_another_leads(history)
    assert says(history, "Finished")[0] == ""
    make(history, "d", seconds=10.0)
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 60.0)


def test_hd_410_what_waits_without_any_pod_that_runs_can_be_evicted_by_a_new_leader(history: History) -> None:
    all_have_failed(history)
    until_another_leads(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("its quota is back", lambda: says(history, "QuotaReserved")[0] == "False", 60.0)
    assert history.leader.charges("stays") == 0


def test_hd_410_all_that_succeeded_while_nobody_led_have_finished_with_the_next_leader(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=20.0)
    until_all_run(history, *"abc")
    history.kill_leader()
    history.until("another one leads", history.leads, 100.0)
    history.until("it has finished", lambda: says(history, "Finished")[2] == "Pods succeeded: 3/3", 60.0)


def test_hd_410_a_group_at_a_worker_whose_pods_all_failed_waits_over_a_change_of_leader(history: History) -> None:
    for name in "abc":
        there.make(history, name, seconds=10.0, exit_code=1)
    history.until("all have failed", lambda: set(there.phases(history).values()) == {"Failed"}, 60.0)
    history.passes(5.0)
    before, cluster = there.workload(history)["metadata"]["uid"], there.cluster_of(history)
    until_another_leads(history)
    assert there.condition(history, "Finished")[0] == ""
    for name in "def":
        there.make(history, name)
    history.until("the others run", lambda: there.run_there(history) == ["d", "e", "f"], 60.0)
    assert (there.workload(history)["metadata"]["uid"], there.cluster_of(history)) == (before, cluster)


def test_hd_410_nor_where_each_of_them_was_taken_away_at_home(history: History) -> None:
    """The last one is deleted as another one comes, so that there is always one that owns the Workload."""
    for name in "abc":
        make(history, name)
    until_all_run(history, *"abc")
    for name in "abc":
        history.edit("home", POD, name, {"metadata": {"annotations": {"example.com/touched": "1"}}})
    for name in "ab":
        history.delete("home", POD, name)
    history.until("two are gone", lambda: at_home.names(history) == ["c"], 60.0)
    until_another_leads(history)
    assert says(history, "Finished")[0] == ""
    for name in "de":
        make(history, name)
    # Of two that are gone the next leader's agent does not know how they went, until it has heard of each node (P10).
    history.until("all run", lambda: running(history) == ["c", "d", "e"], 150.0)


def test_hd_415_the_workload_says_how_many_lack_by_now_and_of_which_role(history: History) -> None:
    for name, cpu, seconds in (("a", "500m", 0.0), ("b", "500m", 10.0), ("c", "400m", 20.0)):
        make(history, name, cpu=cpu, seconds=seconds, exit_code=1)
    until_all_run(history, *"abc")
    roles = {one["metadata"]["name"]: one["metadata"]["labels"][f"{K}podset"] for one in history.home.all(POD)}
    first, second = roles["b"], roles["c"]
    history.until("one lacks", lambda: says(history, WAITING)[2].startswith(f"1 pod failed or gone ({first}: 1)"), 30.0)
    both = ", ".join(f"{each}: 1" for each in sorted((first, second)))
    history.until("two do", lambda: says(history, WAITING)[2].startswith(f"2 pods failed or gone ({both})"), 30.0)
    make(history, "d", cpu="500m")
    history.until("one does", lambda: says(history, WAITING)[2].startswith(f"1 pod failed or gone ({second}: 1)"), 30.0)
    make(history, "e", cpu="400m")
    history.until("nobody does", lambda: says(history, WAITING)[0] == "False", 30.0)


def test_hd_417_who_comes_to_a_group_that_has_finished_is_told_and_not_held(history: History) -> None:
    for name in "abc":
        make(history, name, seconds=5.0)
    history.until("it has finished", lambda: says(history, "Finished")[0] == "True", 60.0)
    make(history, "d")
    history.passes(10.0)
    assert "d" not in at_home.held(history)
    assert running(history) == []
    assert history.leader.told["GroupFinished"] == 1


def test_hd_527_so_it_waits_for_the_next_group_of_that_name_as_its_event_says(history: History) -> None:
    """As in Kueue: somebody deletes the finished Workload and its pods, and others are made."""
    for name in "abc":
        make(history, name, seconds=5.0)
    history.until("it has finished", lambda: says(history, "Finished")[0] == "True", 60.0)
    make(history, "d")
    history.delete("home", WORKLOAD, GROUP)
    history.passes(30.0)
    for name in "abc":
        history.delete("home", POD, name)
    history.until("the others are gone", lambda: at_home.names(history) == ["d"], 60.0)
    history.passes(30.0)
    assert running(history) == []
    for name in "ef":
        make(history, name)
    until_all_run(history, *"def")
