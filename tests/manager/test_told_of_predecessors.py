"""HD-246: what a cluster says is left alone is told to those who stand in its place already, whatever they wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.clusters.link_values import ClusterChanged
from gatelift.core.state.predecessors import REMEMBERED_MAX, left_alone
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.world import World, a_world

QUOTA, PLACE = "ExceedsMaxQuota", "PredecessorNotStopped"
RUNS = InventoryEntry(key=PlacementKey("before", 1), namespace=NAMESPACE, name="one", state="RUNNING", lifted=True)


def why(world: World) -> str:
    (workload,) = world.all("Workload")
    return str(workload["status"]["conditions"][0]["reason"])


def who_waits_for_quota() -> World:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_pod("one").document())
    world.settle()
    world.advance(5.0)
    assert why(world) == QUOTA
    return world


def listed(world: World, entry: InventoryEntry) -> None:
    left_alone(world.machine.core, "a", entry)
    world.upcall(ClusterChanged(cluster="a"))
    world.settle()
    world.advance(5.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({}, PLACE), ({"name": "two"}, QUOTA), ({"key": PlacementKey("?", 1)}, PLACE)],
    ids=["in its place", "in another's", "in anybody's"],
)
def test_hd_246_who_waits_for_quota_says_what_it_waits_for_now(change: dict[str, Any], reason: str) -> None:
    world = who_waits_for_quota()
    listed(world, replace(RUNS, **change))
    assert why(world) == reason


def test_hd_246_also_by_what_is_one_too_many_to_be_remembered_by_its_name() -> None:
    world = who_waits_for_quota()
    for number in range(REMEMBERED_MAX):
        left_alone(world.machine.core, "a", replace(RUNS, key=PlacementKey(f"w{number}", 1), name=f"other-{number}"))
    listed(world, replace(RUNS, name="two"))
    assert why(world) == PLACE
