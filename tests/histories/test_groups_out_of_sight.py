"""Scripted histories (HD-610): who still runs loses the marks by which it is watched, and is the last of its group."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from support.manager.group_world import K
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

MARK = (f"{K}managed",)
BOTH = (*MARK, f"{K}queue-name")
PLACES = {"home": "stays", "worker": "travels"}
places = pytest.mark.parametrize("place", PLACES)
led = pytest.mark.parametrize("led", [True, False], ids=["while a leader sees it", "while nobody leads"])
marks = pytest.mark.parametrize("labels", [MARK, BOTH], ids=["mark", "both labels"])


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def running(history: History, place: str) -> list[str]:
    return groups_at_home.running(history) if place == "home" else groups.run_there(history)


def one_runs_and_another_has_ended_for_good(history: History, place: str) -> None:
    """Have a group of two run, of which `a` has failed and says that nobody is to replace it; `b` runs for long."""
    make = groups_at_home.make if place == "home" else groups.make
    final = {f"{K}retriable-in-group": "false"}
    make(history, "a", seconds=20.0, exit_code=1, total=2, notes=final)
    make(history, "b", seconds=300.0, total=2)
    history.until("one has failed", lambda: groups_at_home.in_phase(history, "Failed") == ["a"], 60.0)
    history.passes(5.0)
    assert running(history, place) == ["b"]


@places
@led
@marks
def test_hd_610_a_group_goes_on_with_who_runs_and_has_lost_its_marks(
    history: History, place: str, led: bool, labels: tuple[str, ...]
) -> None:
    """HD-610: it was finished, its quota free, while that one ran at home. The outside check looks at each write."""
    one_runs_and_another_has_ended_for_good(history, place)
    if not led:
        history.kill_leader()
    history.edit("home", POD, "b", {"metadata": {"labels": dict.fromkeys(labels)}})
    if not led:
        history.until("another leads", history.leads)
    for _ in range(100):
        history.passes(1.0)
        assert running(history, place) == ["b"]
    assert history.leader.charges(PLACES[place]) > 0
    history.until("it has ended", lambda: groups_at_home.says(history, "Finished")[1] == "Failed", 400.0)
    history.passes(5.0)
    assert history.leader.charges(PLACES[place]) == 0
    assert groups_at_home.says(history, "Finished")[2]


@places
@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_hd_610_also_where_the_one_watch_calls_it_gone_before_the_other_shows_it(
    monkeypatch: pytest.MonkeyPatch, place: str, seed: int
) -> None:
    """HD-610: drawn seed 2,003,026. A watch by the mark says of it that it is gone, which is no proof of that."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    history = History(seed, shown=False)
    one_runs_and_another_has_ended_for_good(history, place)
    history.edit("home", POD, "b", {"metadata": {"labels": dict.fromkeys(MARK)}})
    history.passes(20.0)
    assert running(history, place) == ["b"]
    assert history.leader.charges(PLACES[place]) > 0


@places
def test_hd_610_who_runs_and_lost_its_marks_is_not_ended_with_all_others_that_are_deleted(
    history: History, place: str
) -> None:
    """HD-610: all that any watch shows are deleted by their users, so the group seemed to be left by all."""
    one_runs_and_another_has_ended_for_good(history, place)
    history.kill_leader()
    history.edit("home", POD, "b", {"metadata": {"labels": dict.fromkeys(BOTH)}})
    history.delete("home", POD, "a")
    history.until("another leads", history.leads)
    history.passes(60.0)
    assert running(history, place) == ["b"]
    assert history.leader.charges(PLACES[place]) > 0


@places
def test_hd_610_a_group_of_which_each_one_has_left_its_queue_ends(history: History, place: str) -> None:
    """HD-610: who counts on after it was taken out of its queue does not keep the others in it."""
    one_runs_and_another_has_ended_for_good(history, place)
    for name in ("a", "b"):
        history.edit("home", POD, name, {"metadata": {"labels": dict.fromkeys(BOTH)}})
    history.until("nothing runs", lambda: running(history, place) == [], 200.0)
    history.until("nothing is charged", lambda: history.leader.charges(PLACES[place]) == 0, 60.0)


@pytest.mark.parametrize("seed", [3, 4, 6])
def test_hd_611_who_lost_its_mark_for_a_moment_is_still_known_to_run_at_its_worker(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """HD-611: called gone by the watch by its mark it had never run; deleted, it went at once, and ran there on."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    history = History(seed, shown=False)
    for name in ("a", "b"):
        groups.make(history, name, total=2, grace=30, takes=20.0)
    history.until("both run", lambda: groups.run_there(history) == ["a", "b"], 60.0)
    history.passes(5.0)
    history.edit("home", POD, "b", {"metadata": {"labels": dict.fromkeys(MARK)}})
    history.passes(3.0)
    history.delete("home", POD, "b")
    history.passes(10.0)
    assert groups.run_there(history) == ["a", "b"]
    assert groups.names(history) == ["a", "b"]
    history.until("it has gone", lambda: groups.names(history) == ["a"], 60.0)
    assert groups.run_there(history) == ["a"]
