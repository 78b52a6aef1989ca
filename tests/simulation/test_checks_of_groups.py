"""The outside check of the simulation, where writes that land late and hands come to groups of pods."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, a_member
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.surplus import Groups

EPOCH = "gatelift.dev/epoch"


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def a_pod(name: str, phase: str, *, going: bool = False) -> Doc:
    document = a_member(name, total=2)
    document["metadata"]["uid"] = name
    if going:
        document["metadata"]["deletionTimestamp"] = "2026-11-21T00:01:00Z"
    return document | {"status": {"phase": phase}}


@pytest.mark.parametrize(("phase", "is_so"), [("Succeeded", True), ("Failed", False)])
def test_a_late_write_takes_no_success_back_from_who_counts_the_pods_of_a_group(phase: str, *, is_so: bool) -> None:
    """It did (drawn seed 2,002,219): who was one too many beside it was none, and its deletion broke a promise."""
    judge = Groups(History().home)
    others = a_pod("b", "Pending"), a_pod("c", "Pending")
    for document in (a_pod("a", phase), a_pod("a", "Running", going=True), *others):
        judge.pod(document, removed=False)
    assert judge.was_surplus("c") is is_so


def test_what_an_epoch_has_given_back_stays_so_whatever_number_a_person_writes(history: History) -> None:
    """All of it counted as charged (drawn seed 2,002,230), so that a queue seemed to have admitted too much."""
    groups.make(history, "a", total=1, cpu="1", seconds=300.0)
    history.until("it runs", lambda: groups.run_there(history) == ["a"], 60.0)
    uid = groups.workload(history)["metadata"]["uid"]
    booked = {(uid, 1): 400}
    assert history.world.truth.used() == {"travels": 1000}
    assert history.world.truth.used(booked) == {"travels": 400}
    history.edit("home", WORKLOAD, GROUP, {"metadata": {"annotations": {EPOCH: "1001"}}})
    assert history.world.truth.used(booked) == {"travels": 400}
    assert history.world.truth.used(booked | {(uid, 1001): 700}) == {"travels": 700}


def test_who_joins_a_group_at_home_runs_in_the_epoch_of_the_others_whatever_number_a_person_writes(
    history: History,
) -> None:
    """It counted as a second run (drawn seed 2,002,230)."""
    for name in ("a", "b"):
        groups.make(history, name, total=2, seconds=300.0, queue="stays")
    history.until("both run", lambda: _running(history) == ["a", "b"], 60.0)
    history.edit("home", WORKLOAD, GROUP, {"metadata": {"annotations": {EPOCH: "1001"}}})
    history.delete("home", POD, "b")
    groups.make(history, "c", total=2, seconds=300.0, queue="stays")
    history.until("who took its place runs", lambda: _running(history) == ["a", "c"], 120.0)


def _running(history: History) -> list[str]:
    return sorted(name for name, phase in groups.phases(history).items() if phase == "Running")
