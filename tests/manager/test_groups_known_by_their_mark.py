"""HD-405: of several objects a placement is known by the mark that it was given, whoever of them is there (P1, R3).

An agent that begins anew calls it after one of its objects, which may have gone at home meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.conclusions import belief
from gatelift.core.records.attempt_states import AttemptState
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import ANNOTATION_GIVEN, VERSION_OF_CHANGE, PlacementKey
from gatelift_wire.values.messages import Commit, TemplateBlob
from support.manager.builders import a_setting
from support.manager.group_world import a_member, join
from support.manager.world import World, a_world


@pytest.fixture
def world() -> World:
    """Return a world whose only worker runs a group of three, under a key that makes marks."""
    made = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    made.links.seal_key = b"a key"
    made.connect("a", version=VERSION_OF_CHANGE)
    join(made, *(a_member(name, at=at) for at, name in enumerate("abc")), seconds=5.0)
    return made


def listed(world: World, name: str, given: str) -> InventoryEntry:
    key = world.agents["a"].commits[-1]
    return InventoryEntry(key=key, namespace="team", name=name, state="Running", lifted=True, given=given)


def mark(world: World) -> str:
    """Return the mark that all objects bear, which travels with their labels and annotations."""
    ((_, commit),) = world.messages(Commit)
    (marks,) = {one.marks for one in commit.objects}
    blobs = {blob.hash: json.loads(blob.content) for _, blob in world.messages(TemplateBlob)}
    annotations: dict[str, Any] = blobs[marks]["annotations"]
    return str(annotations[ANNOTATION_GIVEN])


def stands(world: World, entry: InventoryEntry) -> bool:
    core = world.machine.core
    known = core.knowledge.workload_of(entry.key.uid)
    assert known is not None
    return belief.stands(core, known, "a", entry)


def test_hd_405_what_bears_its_mark_is_this_placement_whatever_it_is_called(world: World) -> None:
    entry = listed(world, "gone", mark(world))
    assert stands(world, entry)
    assert not belief.is_nobodys(world.machine.core, "a", entry)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"given": ""}, id="without one"),
        pytest.param({"given": "0" * 32}, id="another one"),
        pytest.param({"namespace": "theirs"}, id="in another namespace"),
    ],
)
def test_hd_405_what_does_not_bear_it_there_is_nobodys(world: World, change: dict[str, str]) -> None:
    entry = replace(listed(world, "gone", mark(world)), **change)  # type: ignore[arg-type]
    assert not stands(world, entry)
    assert belief.is_nobodys(world.machine.core, "a", entry)


def test_hd_405_a_mark_is_of_one_epoch(world: World) -> None:
    entry = listed(world, "gone", mark(world))
    later = replace(entry, key=PlacementKey(entry.key.uid, entry.key.epoch + 1))
    assert not stands(world, later)


def test_a_present_member_names_it_without_a_mark(world: World) -> None:
    assert stands(world, listed(world, "b", ""))


def lists_what_nobody_knows(world: World, **facts: Any) -> PlacementKey:
    """Have the cluster be lost, and come back with nothing of the group by which it is known; return its key."""
    key = world.agents["a"].commits[-1]
    world.cut("a", lost=True)
    world.settle()
    assert world.machine.core.attempts[key.uid].state is AttemptState.LOST
    world.agents["a"].placements[key].called = "gone"
    world.connect("a", version=VERSION_OF_CHANGE, **facts)
    world.settle()
    return key


def test_hd_528_a_lost_group_that_is_listed_without_a_mark_is_told_who_is_meant(world: World) -> None:
    """Nothing is said to what counts as lost, and it did so until it was listed by a name that home knows."""
    key = lists_what_nobody_knows(world)
    assert world.machine.core.attempts[key.uid].state is AttemptState.RUNNING
    assert [commit.key for _, commit in world.messages(Commit)] == [key, key]


def test_hd_528_what_wears_its_labels_shows_nothing_where_the_cluster_may_not_know_of_it(world: World) -> None:
    doubted: dict[str, Any] = {"unproven": True, "unproven_through": world.sessions["a"]}
    key = lists_what_nobody_knows(world, **doubted)
    for _ in range(2):
        attempt = world.machine.core.attempts[key.uid]
        assert (attempt.state, attempt.listed_session) == (AttemptState.LOST, 0)
        assert len(world.messages(Commit)) == 1
        world.cut("a")
        world.connect("a", version=VERSION_OF_CHANGE, **doubted)
        world.settle()
