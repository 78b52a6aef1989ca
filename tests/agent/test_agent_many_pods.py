"""HD-685: a Job of many pods is looked at at a pause, as a group of many is: one pod costs no more for the others."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.advancing import progress
from gatelift_agent.core.machine import LOOK_AGAIN_SECONDS_MAX, LOOK_AGAIN_SECONDS_MIN
from gatelift_agent.core.state.world import MANY_OBJECTS
from support.agent.size_stage import SizeStage

MANY = 100
WRITE_SECONDS = 0.0025


def looked_at(stage: SizeStage, patch: pytest.MonkeyPatch) -> list[float]:
    """Return what will hold when its placement was looked at."""
    looks, drive = list[float](), progress.drive

    def counted(*given: Any) -> None:
        looks.append(stage.now)
        drive(*given)

    patch.setattr(progress, "drive", counted)
    return looks


def test_hd_685_pods_that_come_one_after_the_other_are_let_go_all_of_them_by_looks_at_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The symptom: each event of each pod was a walk through all, three of them for each that was let go."""
    stage = SizeStage()
    stage.begin(MANY_OBJECTS)
    stage.resize(2, main=MANY)
    looks, began = looked_at(stage, monkeypatch), stage.now
    for _ in range(MANY - MANY_OBJECTS):
        stage.make_of("main")
        stage.pass_seconds(WRITE_SECONDS)
    assert len(looks) <= (stage.now - began) / (MANY_OBJECTS * LOOK_AGAIN_SECONDS_MIN) + 20
    stage.pass_seconds(LOOK_AGAIN_SECONDS_MAX)
    assert (len(stage.lifted()), stage.waiting(), stage.answers[-1]) == (MANY, [], 2)


def test_hd_685_a_size_is_set_at_once_and_what_waits_at_a_pause_is_let_go_after_it() -> None:
    stage = SizeStage()
    stage.begin(MANY)
    stage.make_of("main")
    stage.resize(2, main=MANY + 1)
    assert stage.job()["spec"]["parallelism"] == MANY + 1
    stage.pass_seconds(LOOK_AGAIN_SECONDS_MAX)
    assert len(stage.lifted()) == MANY + 1
