"""Scripted histories: what drawn histories with groups (PG-32) have found, each as small as it could be made."""

from __future__ import annotations

import json

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K, a_member
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]
DEF = ["d", "e", "f"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def evict(history: History) -> None:
    """Evict the group, and wait until nothing of it runs."""
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("nothing runs", lambda: not groups.run_there(history), 100.0)
    history.passes(10.0)


def one_has_succeeded(history: History, *, takes: float = 0.0) -> None:
    """Have a group of three run at a worker, of which `b` has succeeded."""
    for name in ABC:
        groups.make(history, name, seconds=5.0 if name == "b" else 0.0, takes=takes)
    history.until("one has succeeded", lambda: groups.phases(history)["b"] == "Succeeded", 60.0)
    history.passes(5.0)


def test_hd_385_who_has_succeeded_is_not_let_go_again_in_the_next_epoch(history: History) -> None:
    one_has_succeeded(history)
    evict(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("the others run", lambda: groups.run_there(history) == ["a", "c"], 200.0)
    history.passes(20.0)
    assert sorted(groups.placed(history)) == ["a", "c"]
    assert groups.phases(history)["b"] == "Succeeded"


def test_hd_385_nor_by_a_leader_that_finds_the_next_epoch(history: History) -> None:
    one_has_succeeded(history)
    evict(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("the others run", lambda: groups.run_there(history) == ["a", "c"], 200.0)
    history.kill_leader()
    history.until("another one leads", history.leads, 100.0)
    history.passes(60.0)
    assert sorted(groups.placed(history)) == ["a", "c"]


def test_hd_387_who_has_succeeded_goes_on_to_show_it_while_the_group_waits(history: History) -> None:
    one_has_succeeded(history)
    evict(history)
    history.edit("home", POD, "b", {"metadata": {"annotations": {"example.com/touched": "1"}}})
    history.passes(5.0)
    assert groups.phases(history)["b"] == "Succeeded"


def test_hd_386_a_driver_and_its_workers_run_at_home_as_what_was_declared(history: History) -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": "250m"}}}
    workers = {"name": "workers", "count": 2, "template": {"spec": {"containers": [container]}}}
    sets = json.dumps([{"name": "driver", "count": 1}, workers])
    groups_at_home.make(history, "driver", notes={f"{K}pod-group-sets": sets}, total=3)
    for name in ("w0", "w1"):
        groups_at_home.make(history, name, cpu="250m", total=3, labels={f"{K}pod-group-role": "workers"})
    groups_at_home.until_all_run(history, "driver", "w0", "w1")
    sets_of = {one["metadata"]["name"]: one["metadata"]["labels"][f"{K}podset"] for one in history.home.all(POD)}
    assert sets_of == {"driver": "driver", "w0": "workers", "w1": "workers"}


def test_hd_388_at_home_who_comes_under_the_name_of_one_that_is_gone_is_let_go(history: History) -> None:
    for name in ABC:
        groups_at_home.make(history, name)
    groups_at_home.until_all_run(history, *ABC)
    history.delete("home", POD, "b")
    history.until("it is gone", lambda: groups_at_home.names(history) == ["a", "c"], 60.0)
    groups_at_home.make(history, "b")
    groups_at_home.until_all_run(history, *ABC)


def test_hd_389_what_runs_is_charged_when_no_pod_of_its_group_is_left_at_home(history: History) -> None:
    """In a second epoch, that was granted less than is asked for. The account judges each write."""
    one_has_succeeded(history, takes=20.0)
    evict(history)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    history.until("the others run", lambda: groups.run_there(history) == ["a", "c"], 200.0)
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": None}})
        history.delete("home", POD, name)
    history.passes(1.0)
    history.edit("home", WORKLOAD, GROUP, {"metadata": {"annotations": {"example.com/touched": "1"}}})
    history.delete("home", WORKLOAD, GROUP)
    history.passes(5.0)
    assert groups.names(history) == []
    assert history.leader.charges("travels") >= 1000
    history.until("nothing is left", lambda: not groups.placed(history) and not groups.workload(history), 200.0)


def test_hd_389_hd_210_nor_does_a_strangers_write_free_its_quota_between_two_leaders(history: History) -> None:
    """No pod of the group is left at home by which it could be counted, and its worker is away."""
    for name in ABC:
        groups.make(history, name, takes=20.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    history.cut(groups.cluster_of(history))
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"finalizers": None}})
        history.delete("home", POD, name)
    history.until("they are gone", lambda: groups.names(history) == [], 30.0)
    history.kill_leader()
    freed = [{"name": each["name"], "count": 3} for each in groups.workload(history)["spec"]["podSets"]]
    history.edit("home", WORKLOAD, GROUP, {"status": {"reclaimablePods": freed}}, "status")
    history.until("another one leads", history.leads, 100.0)
    history.passes(2.0)
    assert history.leader.charges("travels") == 1500


def test_hd_390_what_is_over_is_shown_while_another_is_not_let_go_yet(history: History) -> None:
    """RE-10: by a gate of the user's own on one of them."""
    for name in ("a", "b"):
        groups_at_home.make(history, name, seconds=5.0 if name == "b" else 0.0)
    document = a_member("c", cpu="500m")
    document["spec"]["schedulingGates"].append({"name": "example.com/own"})
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"][f"{K}queue-name"] = "stays"
    del document["status"], document["metadata"]["creationTimestamp"]
    history.home.create(POD, document)
    history.until("one is over", lambda: groups_at_home.in_phase(history, "Succeeded") == ["b"], 60.0)
    history.passes(5.0)
    shown = (groups_at_home.theirs(history) or {})["status"].get("reclaimablePods", [])
    assert [one["count"] for one in shown] == [1]


def test_hd_391_who_replaces_all_that_was_never_let_go_is_made_once_its_agent_is_back(history: History) -> None:
    for name in ABC[:2]:
        groups.make(history, name)
    for cluster in history.workers:
        history.agent(cluster).dies_after_write(3)
    groups.make(history, "c")
    history.until("all three are at their gates", lambda: sorted(groups.placed(history)) == ABC, 60.0)
    for name in ABC:
        history.delete("home", POD, name)
    for name in DEF:
        groups.make(history, name)
    history.kill_leader()
    history.until("another one leads", history.leads, 100.0)
    for cluster in history.workers:
        if not history.world.alive(cluster):
            history.world.start_agent(cluster)
    history.until("the others run", lambda: groups.run_there(history) == DEF, 400.0)
    history.until("the first ones are gone", lambda: groups.names(history) == DEF, 100.0)


def test_hd_392_a_success_that_nobody_heard_of_is_shown_although_the_pod_is_deleted(history: History) -> None:
    """Its slot is taken for good: who was to replace it is too many."""
    for name in ABC:
        groups.make(history, name, seconds=30.0 if name == "b" else 0.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.passes(60.0)
    history.delete("home", POD, "b")
    groups.make(history, "d")
    history.mend(cluster)
    history.until("it is shown", lambda: groups.phases(history).get("b") == "Succeeded", 300.0)
    history.until("the other one has gone", lambda: "d" not in groups.names(history), 100.0)
    assert groups.run_there(history) == ["a", "c"]


def test_hd_393_who_was_deleted_while_nobody_led_is_told_to_leave_with_the_next_session(history: History) -> None:
    for name in ABC:
        groups.make(history, name)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until_lost(cluster)
    history.kill_leader()
    history.delete("home", POD, "b")
    history.until("another one leads", history.leads, 100.0)
    history.passes(60.0)
    history.mend(cluster)
    history.until("it has gone", lambda: groups.names(history) == ["a", "c"], 100.0)
    assert groups.run_there(history) == ["a", "c"]


def test_hd_425_a_group_goes_on_without_who_is_deleted_in_the_foreground_and_ends_with_its_last_pod(
    history: History,
) -> None:
    for name in ABC:
        groups.make(history, name, takes=1.0)
    history.until("all run", lambda: groups.run_there(history) == ABC, 60.0)
    history.delete("home", POD, "a", propagation="Foreground")
    history.until("it has gone", lambda: groups.names(history) == ["b", "c"], 60.0)
    history.passes(10.0)
    assert groups.run_there(history) == ["b", "c"]
    assert not groups.workload(history)["metadata"].get("deletionTimestamp")
    for name in ("b", "c"):
        history.delete("home", POD, name, propagation="Foreground")
    history.until("all is gone", lambda: not groups.names(history) and not groups.workload(history), 120.0)
    assert not groups.placed(history)
