"""What the manager remembers of clusters and objects goes when they go."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.clusters.link_values import ClusterChanged
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import UNSENT_SECONDS
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import DispatchFailures
from gatelift_kube.deciding.writes import Create, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import a_pod, a_setting
from support.manager.world import SUCCEEDED, THE_POD, World, a_world


def kept(core: Core, cluster: str) -> list[str]:
    """Return where something of a cluster is kept."""
    sessions = core.sessions
    places: dict[str, object] = {
        "placements": core.placements.clusters(),
        "heard since": sessions._heard,
        "resynced": sessions._resynced,
        "owed": sessions._owed,
        "of a session": {name for name, _ in (*sessions._blobs, *sessions._strays)},
        "open_offers": core.open_offers.clusters(),
        "failures": core.failures._weight,
    }
    return [name for name, place in places.items() if cluster in place]  # type: ignore[operator]  # mappings and sets


def remove(world: World, cluster: str) -> None:
    """Take the WorkerCluster away, and with it the session."""
    world.cut(cluster)
    del world.links.views[cluster]
    world.upcall(ClusterChanged(cluster=cluster))
    world.settle()


def one_pod(world: World) -> None:
    world.api.apply(a_pod().document())
    world.settle()


def finished(world: World) -> None:
    one_pod(world)
    world.agents["a"].finish(world.agents["a"].commits[-1], SUCCEEDED)
    world.settle()


def refused(world: World) -> None:
    world.agents["a"].refuse_commit = Refusal.NAME_CONFLICT
    one_pod(world)
    world.advance(5.0)


def fenced(world: World) -> None:
    one_pod(world)
    world.cut("a", lost=True)
    for key in world.agents["a"].commits:
        world.stopped(key, "a")
    world.fence("a")
    world.advance(5.0)


@pytest.mark.parametrize("live", [finished, refused, fenced])
def test_nothing_is_kept_of_a_cluster_that_is_gone(live: Callable[[World], None]) -> None:
    world = a_world(a_setting())
    live(world)
    remove(world, "a")
    assert kept(world.machine.core, "a") == []


def test_the_last_placement_of_a_cluster_that_is_gone_takes_everything_with_it() -> None:
    world = a_world(a_setting())
    one_pod(world)
    (key,) = world.agents["a"].commits
    remove(world, "a")
    core = world.machine.core
    assert "placements" in kept(core, "a"), "it may be running there"
    world.connect("a")
    world.settle()
    world.agents["a"].finish(key, SUCCEEDED)
    world.settle()
    remove(world, "a")
    assert kept(core, "a") == []


def test_a_cluster_without_work_has_no_empty_lists() -> None:
    world = a_world(a_setting())
    finished(world)
    core = world.machine.core
    assert not core.placements.clusters()


def test_failures_of_a_cluster_that_is_gone_are_forgotten() -> None:
    failures = DispatchFailures()
    failures.failed("uid", "a", 0.0)
    failures.avoid("uid", "a", 100.0, "why")
    failures.forget_cluster("a")
    assert failures.weight("a", 0.0) == 0.0
    assert failures.avoided("uid", "a", 0.0) == ""


@pytest.mark.parametrize("error", [WriteError.INVALID, WriteError.NOT_DONE, WriteError.NAMESPACE_MISSING])
def test_the_trouble_of_a_create_goes_with_the_object_that_wanted_it(error: WriteError) -> None:
    world = a_world(a_setting())
    core = world.machine.core

    world.fail = lambda command: error if isinstance(command, Create) else None
    one_pod(world)
    assert core.inflight.trouble
    world.api.delete(THE_POD)
    world.advance(120.0)
    assert not world.all("Pod")
    assert not core.inflight.trouble
    assert not core.creations


def test_a_write_that_found_no_turn_pauses_nothing_and_is_decided_anew_when_there_is_one() -> None:
    world = a_world(a_setting())
    core = world.machine.core
    world.fail = lambda command: WriteError.NOT_SENT if isinstance(command, Patch) else None
    one_pod(world)
    assert core.unsent
    assert not core.inflight.trouble, "nothing is wrong with the object"
    world.fail = None
    world.advance(UNSENT_SECONDS)
    assert world.find("Workload")["status"]["clusterName"]
    assert not core.unsent


def test_those_without_a_turn_are_looked_at_in_order_as_other_writes_end() -> None:
    core = a_world(a_setting()).machine.core
    refs = [ObjectRef(WORKLOAD, ObjectKey("ns", name)) for name in ("a", "b", "c")]
    for ref in [*refs, refs[0]]:
        api_requests.stand_in_line(core, ref, 0.0)
    assert core.unsent.next() == refs[:1]
    assert core.unsent.next(5) == refs[1:]
    assert core.unsent.next() == []


def test_the_trouble_of_a_create_goes_when_a_pod_of_the_same_name_takes_its_place() -> None:
    world = a_world(a_setting())
    core = world.machine.core
    world.fail = lambda command: WriteError.INVALID if isinstance(command, Create) else None
    one_pod(world)
    world.api.delete(THE_POD)
    world.advance(120.0)
    world.fail = None
    one_pod(world)
    world.settle()
    assert world.find("Workload")["status"]["clusterName"]
    assert not core.inflight.trouble
    assert not core.creations


def test_a_write_that_meets_an_object_that_is_gone_leaves_nothing() -> None:
    world = a_world(a_setting())
    core = world.machine.core
    one_pod(world)
    world.fail = lambda command: WriteError.NOT_FOUND if isinstance(command, Patch) else None
    world.api.edit(THE_POD, lambda pod: pod["metadata"].update(finalizers=[]))
    world.api.delete(THE_POD)
    world.agents["a"].finish(world.agents["a"].commits[-1], SUCCEEDED)
    world.advance(5.0)
    world.fail = None
    world.advance(120.0)
    assert not core.inflight.trouble
