"""Scripted histories: quota of a group's members, as they succeed (KEP-78) and as they are stopped (KEP-6143)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups_at_home as groups
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, running, says, theirs, until_all_run
from support.sim.history import ON_TERMINAL, History
from support.sim.manager import SimManager
from support.sim.objects import is_released

TERMINAL = {"gatelift.dev/release": "OnTerminal"}
PARTIAL = TERMINAL | {"gatelift.dev/release-partial": "true"}
GATE_OFF = "featureGates: {ReclaimablePods: false}"


@pytest.fixture(autouse=True)
def with_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)


def a_world(annotations: dict[str, str] | None = None, **told: Any) -> History:
    history = History(shown=False, **told)
    history.edit("home", CLUSTER_QUEUE, "stays", {"metadata": {"annotations": annotations or {}}})
    return history


def charges(history: History) -> int:
    return history.leader.charges("stays")


def deactivate(history: History) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})


def stops_in(history: History, **seconds: float) -> None:
    """Have a group of pods run that take so long to stop."""
    for name, long in seconds.items():
        make(history, name, stops_in=long, grace=90)
    until_all_run(history, *seconds)
    assert charges(history) == 1500


def reclaimed(history: History) -> list[int]:
    return [one["count"] for one in (theirs(history) or {})["status"].get("reclaimablePods", [])]


def test_re_10_a_member_that_succeeds_gives_its_quota_back_while_the_others_run_and_a_failed_one_does_not() -> None:
    history = a_world()
    make(history, "a", seconds=10.0)
    make(history, "b", seconds=15.0, exit_code=1)
    make(history, "c")
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    history.passes(2.0)
    assert (charges(history), reclaimed(history)) == (1000, [1])
    history.until("one has failed", lambda: groups.in_phase(history, "Failed") == ["b"], 60.0)
    history.passes(5.0)
    assert (charges(history), reclaimed(history)) == (1000, [1]), "who replaces it has its quota"
    history.pod("waits", "stays", cpu="1000m")
    history.until("another one has got what was free", lambda: history.containers("waits") == 1, 30.0)


def test_re_10_by_role() -> None:
    history = a_world()
    make(history, "a", cpu="300m", total=2, seconds=10.0)
    make(history, "b", cpu="700m", total=2)
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    history.passes(2.0)
    assert charges(history) == 700


def test_re_10_a_serving_group_gives_nothing_back() -> None:
    history = a_world()
    for name in "abc":
        make(history, name, seconds=5.0, notes={f"{K}pod-group-serving": "true"})
    history.until("all have succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a", "b", "c"], 60.0)
    history.passes(5.0)
    assert charges(history) == 1500


@pytest.mark.parametrize("file", ["", GATE_OFF], ids=["RE-10", "RE-12 gate off"])
def test_re_10_another_leader_counts_as_much_and_lets_go_no_more_than_were_granted(file: str) -> None:
    history = a_world(file=file)
    make(history, "a", seconds=10.0)
    make(history, "b")
    make(history, "c")
    history.until("one has succeeded", lambda: groups.in_phase(history, "Succeeded") == ["a"], 60.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.passes(30.0)
    assert charges(history) == (1500 if file else 1000)
    deactivate(history)
    history.until("they have stopped", lambda: running(history) == [], 60.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    for name in "de":
        make(history, name)
    history.until("they run", lambda: running(history) == ["d", "e"], 60.0)
    assert charges(history) == (1500 if file else 1000)
    make(history, "f")
    history.until("who is one too many goes", lambda: "f" not in groups.names(history), 30.0)


def test_qr_1_of_a_group_that_is_evicted_all_is_free_once_each_deletion_is_accepted() -> None:
    history = a_world()
    stops_in(history, a=20.0, b=30.0, c=40.0)
    deactivate(history)
    history.until("it is free", lambda: charges(history) == 0, 5.0)
    assert (running(history), is_released(theirs(history) or {})) == (["a", "b", "c"], True)
    history.until("they have stopped", lambda: running(history) == [], 60.0)
    history.until("its reservation goes then", lambda: says(history, "QuotaReserved")[0] == "False", 10.0)


@pytest.mark.parametrize(
    ("annotations", "file"), [(TERMINAL, ""), ({}, ON_TERMINAL)], ids=["QR-5 by its queue", "QR-5 as pods by the file"]
)
def test_qr_4_one_member_that_runs_keeps_the_quota_of_all(annotations: dict[str, str], file: str) -> None:
    history = a_world(annotations, file=file)
    stops_in(history, a=5.0, b=5.0, c=40.0)
    deactivate(history)
    history.until("one is left", lambda: running(history) == ["c"], 20.0)
    history.passes(10.0)
    assert (charges(history), is_released(theirs(history) or {})) == (1500, False)
    history.until("it has stopped", lambda: charges(history) == 0, 60.0)
    assert running(history) == []


def test_qr_7_where_its_queue_says_partial_each_member_gives_its_own_share_back_as_it_is_over() -> None:
    history = a_world(PARTIAL)
    stops_in(history, a=5.0, b=20.0, c=40.0)
    deactivate(history)
    history.until("one is over", lambda: running(history) == ["b", "c"], 20.0)
    history.until("its share is free", lambda: charges(history) == 1000, 2.0)
    make(history, "d")
    assert charges(history) == 1000, "who comes now runs in no epoch before the next"
    history.until("another one is over", lambda: running(history) == ["c"], 30.0)
    history.until("its share is free, too", lambda: charges(history) == 500, 2.0)
    assert not is_released(theirs(history) or {})
    history.until("all is free", lambda: charges(history) == 0, 60.0)
    assert running(history) == []


def test_qr_7_who_failed_before_the_end_has_no_share_to_give_back_twice() -> None:
    """The next epoch's pods run where failed ones of the epoch before are still there."""
    history = a_world(PARTIAL)
    stops_in(history, a=1.0, b=1.0, c=1.0)
    deactivate(history)
    history.until("all are over", lambda: running(history) == [], 30.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": True}})
    for name in "def":
        make(history, name, stops_in=30.0, grace=90)
    history.until("they run", lambda: running(history) == ["d", "e", "f"], 60.0)
    assert charges(history) == 1500
    deactivate(history)
    history.passes(10.0)
    assert (running(history), charges(history)) == (["d", "e", "f"], 1500)


def test_qr_7_another_leader_frees_no_more_than_it_sees_to_be_over() -> None:
    history = a_world(PARTIAL)
    stops_in(history, a=5.0, b=60.0, c=80.0)
    deactivate(history)
    history.until("one is over", lambda: running(history) == ["b", "c"], 20.0)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    assert charges(history) >= 500 * len(running(history))
    history.until("all is free", lambda: charges(history) == 0, 120.0)
    assert running(history) == []
