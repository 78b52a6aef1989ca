"""Who takes another pod's place while its group has quota, and says something else of it, is told at once (HD-525)."""

from __future__ import annotations

import pytest

from gatelift_wire.values.keys import VERSION_OF_CHANGE
from support.manager.api import Doc
from support.manager.group_world import K, a_member, a_world_with_groups, join, pod_ref, warnings
from support.manager.world import World

REASON = "ErrWorkloadCompose"


@pytest.fixture
def world() -> World:
    """Return a world with a group of three at home that has quota, of which one is gone."""
    world = a_world_with_groups()
    world.connect("local", version=VERSION_OF_CHANGE)
    join(world, *(a_member(name, at=at) for at, name in enumerate("abc")), seconds=5.0)
    world.api.delete(pod_ref("b"))
    world.advance(3.0)
    assert warnings(world, REASON) == []
    return world


UNLIKE = [
    pytest.param({"total": 4}, "the size 4, and its group has the size 3", id="size"),
    pytest.param({"labels": {f"{K}queue-name": "other"}}, "the queue other, and its group has the queue", id="queue"),
    pytest.param(
        {"labels": {f"{K}priority-class": "high"}},
        "the priority class high, and its group has the priority class none",
        id="class",
    ),
    pytest.param(
        {"labels": {f"{K}max-exec-time-seconds": "60"}},
        "the execution limit 60, and its group has the execution limit none",
        id="limit",
    ),
]


@pytest.mark.parametrize(("said", "text"), UNLIKE)
def test_hd_525_what_it_says_otherwise_is_told_at_it_once(world: World, said: Doc, text: str) -> None:
    join(world, a_member("d", at=9, **said), seconds=10.0)
    found = warnings(world, REASON)
    assert [name for name, _ in found] == ["d"]
    assert found[0][1].startswith(f"says {text}")
    assert "make it like the others" in found[0][1]
    world.advance(60.0)
    assert len(warnings(world, REASON)) == 1


def test_hd_525_of_one_that_says_the_same_nothing_is_told(world: World) -> None:
    join(world, a_member("d", at=9), seconds=10.0)
    assert warnings(world, REASON) == []
