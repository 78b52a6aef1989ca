"""As a placement of a group begins or ends at a worker its members are counted anew, some in each call (PF-3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift.core.works.counting import COUNTED_PER_CALL
from gatelift_kinds.pod_group.gathering import GatheredPods
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Commit, ObjectReport, Stop
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_setting
from support.manager.group_world import THEIRS, a_member, join, says
from support.manager.world import World, a_world

MEMBERS = 150
NAMES = [f"p{number:03}" for number in range(MEMBERS)]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many pods of groups each call of the manager counts."""
    found, put = list[int](), GatheredPods.put

    def counts(self: GatheredPods, *given: Any) -> None:
        if found:
            found[-1] += 1
        put(self, *given)

    monkeypatch.setattr(GatheredPods, "put", counts)
    return found


def a_group(counted: list[int]) -> tuple[World, ScriptedAgent]:
    """Return a world whose only worker runs a group, and which looks at nothing but what it is asked for."""
    world = a_world(
        a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS, debug_invariants=False
    )  # which goes through all members after each call
    agent, handle = world.connect("a", version=VERSION_OF_CHANGE), world.machine.handle

    def handled(event: Any, now: float) -> Any:
        counted.append(0)
        return handle(event, now)

    machine: Any = Handled(world.machine, handled)
    world.machine = machine
    join(world, *(a_member(name, total=MEMBERS, cpu="1m", at=at % 60) for at, name in enumerate(NAMES)), seconds=5.0)
    return world, agent


class Handled:
    """A machine whose door is watched; all else is the machine's own."""

    def __init__(self, machine: Any, handle: Any) -> None:
        self._machine, self.handle = machine, handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)


def test_hd_691_a_group_is_counted_in_parts_as_it_is_placed_and_its_commit_names_all(counted: list[int]) -> None:
    """HD-691: with the write of its winner a thousand members were counted in one call, which took 180 ms."""
    world, _ = a_group(counted)
    ((_, commit),) = world.messages(Commit)
    assert sorted(one.name for one in commit.objects) == NAMES
    assert max(counted) <= COUNTED_PER_CALL + 1


def test_hd_691_a_group_is_counted_in_parts_as_it_is_over_and_its_end_is_that_of_all(counted: list[int]) -> None:
    world, agent = a_group(counted)
    uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in world.all("Pod")}
    for name in NAMES:
        status = json.dumps({"phase": "Succeeded"}).encode()
        agent.say(
            ObjectReport(
                key=agent.commits[-1], kind="PodGroup", name=name, uid="w", status=status, owner_uid=uids[name]
            )
        )
    world.advance(20.0)
    assert len(world.messages(Stop)) == 1, "its worker is asked whether nothing of it runs"
    assert says(world, "Finished") == ("True", "Succeeded")
    assert max(counted) <= COUNTED_PER_CALL + 1


def test_hd_691_who_asks_before_all_are_counted_has_the_others_counted_first(counted: list[int]) -> None:
    world, _ = a_group(counted)
    work = world.machine.core.knowledge.works.gathered_at(THEIRS.key)
    assert work is not None
    gathered: Any = work.gathered
    assert gathered.may_run
    gathered.is_home()
    assert not gathered.is_counted
    assert not gathered.may_run, "none of them was let go at home"
    assert gathered.is_counted
