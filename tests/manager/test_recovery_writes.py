"""What a recovery writes on `local`: on the version that it was decided on, and no faster than its watch tells."""

from __future__ import annotations

import json

from gatelift.core.api.counter import Proof
from gatelift.core.clusters.link_values import CounterProved
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVERY,
    ANNOTATION_RESTORED,
    SAID_CHARACTERS_MAX,
    RecoveryStage,
)
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from support.manager.builders import a_setting
from support.manager.world import World, a_world

LOCAL = ObjectRef(WORKER_CLUSTER, ObjectKey("", "local"))


def a_world_with_local() -> World:
    world = a_world(a_setting())
    document = {"apiVersion": WORKER_CLUSTER.api_version, "kind": "WorkerCluster", "metadata": {"name": "local"}}
    world.api.apply({**document, "status": {"session": 1}})
    world.settle()
    return world


def restored(world: World, counter: int = 7) -> None:
    world.upcall(CounterProved(cluster="b", proof=Proof.RESTORED, counter=counter, term=1))


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
    assert written(world) == RecoveryStage.HALTED
    (write,) = [one for one in world.history if isinstance(one, Patch) and one.ref == LOCAL]
    assert json.loads(write.body)["metadata"]["resourceVersion"] == version


def test_hd_244_a_persons_word_that_it_was_restored_is_taken_off_by_the_write_that_has_the_finding() -> None:
    """HD-244: never before, so that no leader dies between; and a long one is known by how it begins."""
    world = a_world_with_local()
    text = "jane " * SAID_CHARACTERS_MAX
    world.api.edit(LOCAL, lambda one: one["metadata"].update(annotations={ANNOTATION_RESTORED: text}))
    world.settle()
    assert written(world) == RecoveryStage.HALTED
    (write,) = [one for one in world.history if isinstance(one, Patch) and one.ref == LOCAL]
    annotations = json.loads(write.body)["metadata"]["annotations"]
    assert annotations[ANNOTATION_RESTORED] is None
    finding = json.loads(annotations[ANNOTATION_RECOVERY])["finding"]
    assert finding["said"].startswith("jane jane")
    assert len(finding["said"]) <= SAID_CHARACTERS_MAX
    assert "a person says that the management cluster was restored" in world.machine.core.caution.halted


def test_hd_244_who_takes_over_halts_at_the_word_from_the_moment_in_which_it_leads() -> None:
    """HD-244: it has listed `local` before, and hears of it again some time later."""
    world = a_world_with_local()
    world.watch_late = True
    world.api.edit(LOCAL, lambda one: one["metadata"].update(annotations={ANNOTATION_RESTORED: "jane"}))
    world.settle()
    assert not world.machine.core.caution.halted
    world.restart()
    while not world.machine.core.term:
        assert world.step()
    assert "restored from a backup (jane)" in world.machine.core.caution.halted


def test_hd_244_an_empty_word_says_nothing_and_is_taken_off() -> None:
    world = a_world_with_local()
    world.api.edit(LOCAL, lambda one: one["metadata"].update(annotations={ANNOTATION_RESTORED: " "}))
    world.settle()
    assert not world.machine.core.caution.halted
    assert ANNOTATION_RESTORED not in world.api.objects[LOCAL]["metadata"]["annotations"]


def test_a_finding_is_written_again_when_the_watch_has_told_what_was_in_its_way() -> None:
    world = a_world_with_local()
    world.watch_late = True
    world.api.edit(LOCAL, lambda one: one["status"].update(lastSeen="2026-01-01T00:00:00Z"))
    restored(world)
    world.settle()
    assert (written(world), asked(world)) == ("", 1), "it waits for the watch"
    world.watch_late = False
    world.settle()
    assert (written(world), asked(world)) == (RecoveryStage.HALTED, 2)


def test_where_the_watch_stands_still_it_is_read_and_asked_again() -> None:
    world = a_world_with_local()
    world.watch_late = True
    world.api.edit(LOCAL, lambda one: one["status"].update(lastSeen="2026-01-01T00:00:00Z"))
    restored(world)
    world.advance(5.0)
    assert (written(world), asked(world)) == (RecoveryStage.HALTED, 2)


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
    assert written(world) == RecoveryStage.HALTED
