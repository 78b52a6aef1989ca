"""HD-264: a cluster that ends what it gets does not get the same work again while another one has room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.state import dispatch_values
from gatelift.core.state.dispatch_values import DispatchFailures
from gatelift_wire.values.messages import Evicted
from support.manager.world import World, a_running_pod


def shows(world: World, name: str, *, used: int, cordoned: bool = False) -> None:
    """Let a cluster of eight CPU say how much of that is used."""
    room = {"cpu": ResourceRoom(nominal=8000, used=1000 * used, largest_fit=2000)}
    world.links.views[name] = replace(world.links.views[name], capacity=room, cordoned=cordoned)


def is_evicted(world: World, cluster: str) -> None:
    """Let a cluster end what it was given last, by itself."""
    agent = world.agents[cluster]
    key = agent.commits[-1]
    world.stopped(key, cluster)
    agent.placements.pop(key)
    agent.say(Evicted(key=key, reason="WorkerObjectDeleted", message="by somebody"))
    world.advance(20.0)


@pytest.mark.parametrize(("cordoned", "goes_to"), [(False, "b"), (True, "a")], ids=["b has room", "b is cordoned"])
def test_hd_264_what_its_cluster_ended_goes_to_another_one_that_has_room(*, cordoned: bool, goes_to: str) -> None:
    """HD-264: the emptiest cluster was the best one each time, however often the work had ended there."""
    world, _ = a_running_pod()
    shows(world, "a", used=0)
    shows(world, "b", used=6, cordoned=cordoned)
    is_evicted(world, "a")
    assert world.find("Workload")["status"]["clusterName"] == goes_to
    assert [run[1] for run in world.runs] == [1, 2]


def test_hd_264_what_ends_on_all_clusters_is_tried_on_each_in_turn() -> None:
    """HD-264: where it ended least often comes first."""
    world, _ = a_running_pod()
    shows(world, "a", used=0)
    shows(world, "b", used=6)
    went_to = []
    for cluster in ("a", "b", "a"):
        is_evicted(world, cluster)
        went_to.append(world.find("Workload")["status"]["clusterName"])
    assert went_to == ["b", "a", "b"]


def test_hd_264_where_a_workload_ended_fades_and_goes_with_it() -> None:
    failures = DispatchFailures(half_life=100.0)
    for _ in range(3):
        failures.failed("u", "a", 0.0)
    assert [failures.ended("u", "a", at) for at in (0.0, 100.0, 200.0)] == [3, 2, 1]
    assert failures.ended("u", "b", 0.0) == failures.ended("other", "a", 0.0) == 0
    assert failures.ended("u", "a", 1000.0) == 0
    failures.forget("u")
    assert failures.ended("u", "a", 0.0) == 3, "it was placed, and may end there again"
    failures.gone("u")
    assert failures.ended("u", "a", 0.0) == 0


def test_hd_264_no_more_workloads_are_remembered_than_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_values, "ENDED_MAX", 2)
    failures = DispatchFailures()
    for uid in ("one", "two", "three"):
        failures.failed(uid, "a", 0.0)
    assert [failures.ended(uid, "a", 0.0) for uid in ("one", "two", "three")] == [0, 1, 1]
