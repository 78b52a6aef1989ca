"""A placement of many objects is gone through in parts and at a pace: no call takes long, nothing is left undone."""

from __future__ import annotations

from typing import Any

import pytest

from agent.test_agent_several_objects import MARKS, SPEC, an_order, blob
from gatelift_agent.core.advancing import progress
from gatelift_agent.core.machine import LOOK_AGAIN_SECONDS_MAX, LOOK_AGAIN_SECONDS_MIN
from gatelift_agent.core.state.world import MANY_OBJECTS
from gatelift_kube.deciding.writes import Create, Delete, Patch
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage
from support.agent.stage import Stage
from support.agent.values import KEY

NAMES = tuple(f"p{number:03}" for number in range(100))


def a_crowd() -> tuple[Stage, list[int]]:
    """Return a stage with a hundred pods of one placement, and how many writes each call has asked for."""
    stage, asked = Stage(), list[int]()
    stage.start()
    handle = type(stage.machine).handle

    def counted(event: Any, now: float) -> Any:
        commands = handle(stage.machine, event, now)
        asked.append(sum(isinstance(each, Create | Patch | Delete) for each in commands))
        return commands

    stage.machine.handle = counted  # type: ignore[method-assign]
    stage.offer(name=NAMES[0])
    stage.send(blob(SPEC), blob(MARKS), an_order(*NAMES))
    stage.pass_seconds(5.0)
    return stage, asked


def test_pf_3_many_objects_are_made_and_let_go_some_in_each_call_and_all_of_them_in_the_end() -> None:
    stage, asked = a_crowd()
    assert max(asked) <= MANY_OBJECTS
    assert all(not stage.pod(name)["spec"].get("schedulingGates") for name in NAMES)
    assert len(stage.peer.of(m.GatesLifted)) == 1


def test_pf_3_what_changes_of_many_at_once_is_told_of_each() -> None:
    stage, _ = a_crowd()
    for name in NAMES:
        stage.run(name)
    stage.pass_seconds(5.0)
    assert {each.name for each in stage.peer.of(m.ObjectReport)} == set(NAMES)


def test_pf_3_a_stop_of_many_is_begun_at_once_whenever_they_were_looked_at_last() -> None:
    stage, asked = a_crowd()
    stage.run(NAMES[0])
    before = len(asked)
    stage.send(m.Stop(key=KEY, reason="Deactivated"))
    assert any(asked[before:])
    stage.pass_seconds(2.0)
    assert all(stage.pod(name)["metadata"].get("deletionTimestamp") for name in NAMES), "the kubelet has to end them"


def test_pf_2_what_changes_of_many_one_after_the_other_has_them_looked_at_at_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever of them rests: each event of a few that do not was a look at these."""
    stage, _ = a_crowd()
    looks, drive = list[float](), progress.drive

    def counted(*given: Any) -> None:
        looks.append(stage.now)
        drive(*given)

    monkeypatch.setattr(progress, "drive", counted)
    began = stage.now
    for name in NAMES:
        stage.run(name)
        stage.pass_seconds(0.01)
    assert len(looks) <= (stage.now - began) / (len(NAMES) * LOOK_AGAIN_SECONDS_MIN) + 2 < len(NAMES)
    stage.pass_seconds(LOOK_AGAIN_SECONDS_MAX)
    assert {each.name for each in stage.peer.of(m.ObjectReport)} == set(NAMES), "the last one is told of as well"


def test_hd_692_the_call_that_takes_a_commit_of_many_looks_at_as_many_as_one_call_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HD-692: the call that took a thousand objects in went through all of them once more, to make the first few."""
    stage, looked, tend = GroupStage(), list[str](), progress._tend
    stage.start()

    def tended(world: Any, placement: Any, tracked: Any, now: float) -> None:
        looked.append(tracked.name)
        tend(world, placement, tracked, now)

    monkeypatch.setattr(progress, "_tend", tended)
    stage.hold = lambda _: True
    stage.group(*NAMES)
    assert looked == list(NAMES[:MANY_OBJECTS])
    stage.hold = lambda _: False
    while stage.held:
        stage.land()
        stage.pass_seconds(5.0)
    assert stage.let_go() == list(NAMES)
