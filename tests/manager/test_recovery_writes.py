"""What a recovery writes on `local`: on the version that it was decided on, and no faster than its watch tells."""

from __future__ import annotations

import json

from gatelift.core.counter import Proof
from gatelift.core.link_values import CounterShown
from gatelift.core.recovery_values import ANNOTATION_RECOVERY, Stage
from gatelift_kube.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_kube.writes import Create, Delete, Patch, WriteError
from support.builders_manager import a_setting
from support.manager_world import World, a_world

LOCAL = ObjectRef(WORKER_CLUSTER, ObjectKey("", "local"))


def a_world_with_local() -> World:
    world = a_world(a_setting())
    document = {"apiVersion": WORKER_CLUSTER.api_version, "kind": "WorkerCluster", "metadata": {"name": "local"}}
    world.api.apply({**document, "status": {"session": 1}})
    world.settle()
    return world


def restored(world: World, counter: int = 7) -> None:
    world.upcall(CounterShown(cluster="b", proof=Proof.RESTORED, counter=counter, term=1))


def written(world: World) -> str:
    annotations = world.api.objects[LOCAL]["metadata"].get("annotations", {})
    return str(json.loads(annotations.get(ANNOTATION_RECOVERY, "{}")).get("stage", ""))


def asked(world: World) -> int:
    return sum(isinstance(one, Patch) and one.ref == LOCAL for one in world.history)


def test_a_finding_is_written_on_the_version_that_it_was_decided_on() -> None:
    """A write of a leader before that lands late fails, whatever it says: it was decided on an older version."""
    world = a_world_with_local()
    version = world.api.objects[LOCAL]["metadata"]["resourceVersion"]
    restored(world)
    world.settle()
    assert written(world) == Stage.HALTED
    (write,) = [one for one in world.history if isinstance(one, Patch) and one.ref == LOCAL]
    assert json.loads(write.body)["metadata"]["resourceVersion"] == version


def test_a_finding_is_written_again_when_the_watch_has_told_what_was_in_its_way() -> None:
    world = a_world_with_local()
    world.watch_late = True
    world.api.edit(LOCAL, lambda one: one["status"].update(lastSeen="2026-01-01T00:00:00Z"))
    restored(world)
    world.settle()
    assert (written(world), asked(world)) == ("", 1), "it waits for the watch"
    world.watch_late = False
    world.settle()
    assert (written(world), asked(world)) == (Stage.HALTED, 2)


def test_where_the_watch_stands_still_it_is_read_and_asked_again() -> None:
    world = a_world_with_local()
    world.watch_late = True
    world.api.edit(LOCAL, lambda one: one["status"].update(lastSeen="2026-01-01T00:00:00Z"))
    restored(world)
    world.advance(5.0)
    assert (written(world), asked(world)) == (Stage.HALTED, 2)


def test_a_finding_that_is_refused_is_asked_again_after_a_growing_pause() -> None:
    world = a_world_with_local()

    def refuse(command: Create | Patch | Delete) -> WriteError | None:
        return WriteError.FORBIDDEN if command.ref == LOCAL else None

    world.fail = refuse
    restored(world)
    world.advance(10.0)
    assert 2 <= asked(world) <= 6
    world.fail = None
    world.advance(60.0)
    assert written(world) == Stage.HALTED
