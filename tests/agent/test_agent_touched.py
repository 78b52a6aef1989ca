"""What one member of a group costs an agent while the others run does not depend on how many they are (PF-2, PF-3).

Counted in lines of code that are executed for an event and all that follows from it, so no load of a machine matters.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest

from gatelift_agent.core.advancing import resting, room
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage
from support.agent.values import KEY
from support.touched import Counted, Touched

FEW, MANY = 50, 1000
RATIO_MAX = 1.2


def names(members: int) -> list[str]:
    return [f"p{number:04}" for number in range(members)]


def a_crew(members: int) -> GroupStage:
    """Return a stage with a group of so many that runs, and of which all is told."""
    stage = GroupStage()
    stage.start()
    stage.group(*names(members))
    stage.pass_seconds(10.0)
    for name in names(members):
        stage.run(name)
    stage.pass_seconds(10.0)
    assert len({each.name for each in stage.peer.of(m.ObjectReport)}) == members
    return stage


@functools.cache
def gone_through(members: int) -> dict[str, int]:
    """Return what is gone through for each event."""
    stage, touched, found = a_crew(members), Touched(), {}
    counted: Any = Counted(stage.machine, touched)
    stage.machine = counted

    def after(what: str, seconds: float = 3.0) -> None:
        stage.pass_seconds(seconds)
        found[what] = touched.taken()

    stage.edit("p0001", {"metadata": {"annotations": {"note": "1"}}})
    after("one changes")
    stage.edit("p0002", {"metadata": {"labels": {"gatelift.dev/epoch": "7"}}})
    after("the labels of one are put back")
    stage.finish("p0003", "Failed")
    after("one fails")
    stage.finish("p0004")
    after("one succeeds")
    stage.say(leave=["p0003"])
    after("one leaves")
    stage.say(join=["late"])
    after("another one joins")
    stage.run("late")
    after("and runs")
    assert stage.pod("late")["status"]["phase"] == "Running"
    assert stage.pod("p0002")["metadata"]["labels"]["gatelift.dev/epoch"] != "7"
    return found


def test_pf_2_what_one_member_costs_the_agent_does_not_grow_with_the_others() -> None:
    """HD-444: each look went through all of them, several times."""
    few, many = gone_through(FEW), gone_through(MANY)
    ratios = {name: round(many[name] / few[name], 2) for name in few}
    assert max(ratios.values()) <= RATIO_MAX, ratios


def placement_of(stage: GroupStage) -> Any:
    return stage.machine.world.placements[KEY]


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {"gatelift.dev/epoch": "7"}}},
        {"spec": {"activeDeadlineSeconds": 5}},
        {"metadata": {"deletionTimestamp": "2026-11-21T00:00:00Z"}},
    ],
)
def test_who_is_at_rest_is_looked_at_as_soon_as_something_else_is_known_of_it(patch: dict[str, Any]) -> None:
    stage = a_crew(3)
    assert not placement_of(stage).calm.restless
    stage.edit("p0001", patch)
    stage.pass_seconds(0.0)
    assert [each.name for each in placement_of(stage).to_look_at] in (["p0001"], [])
    assert_right(stage)


def test_what_is_at_rest_keeps_its_slot_as_long_as_it_runs() -> None:
    stage = a_crew(3)
    stage.say(join=["late"])
    stage.pass_seconds(5.0)
    assert stage.pod("late")["spec"].get("schedulingGates"), "all slots are taken by those at rest"
    assert_right(stage)
    stage.finish("p0001", "Failed")
    stage.pass_seconds(5.0)
    assert not stage.pod("late")["spec"].get("schedulingGates")
    assert_right(stage)


def test_in_another_session_nobody_is_at_rest_before_all_is_told_anew() -> None:
    stage = a_crew(3)
    told = len(stage.peer.of(m.ObjectReport))
    stage.cut_stream()
    stage.mend(resume=False)
    stage.again(*names(3), count=3)
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.ObjectReport)) - told >= 3
    assert_right(stage)


def assert_right(stage: GroupStage) -> None:
    """Hold what is said to be at rest against each object by itself."""
    placement, world = placement_of(stage), stage.machine.world
    resting_now = placement.objects.keys() - {each.name for each in placement.to_look_at}
    for name in resting_now:
        assert resting.is_at_rest(world, placement, placement.objects[name])
    every = placement.objects.values()
    slots = sum(room.has_slot(world, placement, each, stage.now) for each in every)
    assert room.free(world, placement, stage.now)["main"] == placement.pod_sets[0].count - slots
