"""A Workload that its user deletes: what runs is stopped, a Job gets another one, and nothing turns in circles."""

from __future__ import annotations

from typing import Any

from gatelift.core.api import events
from gatelift_kube.deciding.writes import ObjectGone, WriteDone
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Finished, Forget, Stopped
from support.manager.api import seen
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world

STEPS_MAX = 100
"""More than what is left to do needs; a circle needs more than any number."""


def the_workload(world: World) -> ObjectRef:
    meta = world.find("Workload")["metadata"]
    return ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))


def with_a_pod(*, cpu: int = 0, clusters: tuple[str, ...] = ("a",)) -> World:
    world = a_world(a_setting(cpu=cpu), clusters=clusters)
    world.api.apply(a_pod().document())
    world.settle()
    return world


def with_a_job() -> World:
    world = a_world(a_setting(cpu=0), clusters=("a",))
    world.api.apply(a_job())
    world.settle()
    return world


def test_a_new_workload_is_made_though_the_end_of_the_old_one_is_seen_before_the_answer_to_its_last_write() -> None:
    world = with_a_job()
    old = world.find("Workload")["metadata"]["uid"]
    ref = the_workload(world)
    answers: list[WriteDone] = []
    put = world.put

    def watch_is_faster(event: events.Event) -> None:
        if isinstance(event, WriteDone) and event.object is not None and _is_over(event.object):
            answers.append(event)
            world.give(ObjectGone(WORKLOAD, event.object))
        else:
            put(event)

    world.put = watch_is_faster  # type: ignore[method-assign]  # the one place where answers and watch part
    world.api.delete(ref)
    world.settle()
    assert answers, "its last finalizer is dropped by us"
    world.give(answers[0])
    world.settle()
    assert world.find("Workload")["metadata"]["uid"] != old


def test_the_answer_that_shows_the_last_state_is_enough_where_no_watch_ever_tells_of_the_end() -> None:
    world = with_a_job()
    old = world.find("Workload")["metadata"]["uid"]
    world.api.delete(the_workload(world))
    _, ref, document = world.api.changes.popleft()
    world.watch_late = True
    world.give(seen(ref, document))
    world.settle()
    assert old not in world.machine.core.attempts
    assert world.machine.core.knowledge.workload_of(old) is None
    assert world.find("Workload")["metadata"]["uid"] != old, "its object gets another one"


def _is_over(obj: Any) -> bool:
    return obj.metadata.deletion_timestamp is not None and not obj.metadata.finalizers


def test_a_deleted_workload_of_an_object_that_has_ended_is_not_looked_at_without_end() -> None:
    world = with_a_pod(cpu=5)
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    world.settle()
    world.api.edit(the_workload(world), lambda workload: workload["metadata"]["finalizers"].append("foreign"))
    world.agents["a"].silent = True
    world.api.delete(the_workload(world))
    world.settle()
    world.report("a", world.agents["a"].session, Finished(key=key, succeeded=True))
    for _ in range(STEPS_MAX):
        if not world.step():
            break
    else:
        raise AssertionError(f"not quiet after {STEPS_MAX} steps")
    assert [(cluster, message.key) for cluster, message in world.messages(Forget)] == [("a", key)]


def test_what_stopped_elsewhere_is_forgotten_though_the_deleted_workload_was_placed_nowhere() -> None:
    world = with_a_pod()
    key = PlacementKey(world.find("Workload")["metadata"]["uid"], 1)
    world.api.edit(the_workload(world), lambda workload: workload["metadata"]["finalizers"].append("foreign"))
    world.api.delete(the_workload(world))
    world.settle()
    world.report("a", world.agents["a"].session, Stopped(key=key, reason="ClusterQueueStopped"))
    world.settle()
    assert [(cluster, message.key) for cluster, message in world.messages(Forget)] == [("a", key)]


def test_the_log_says_once_that_what_a_user_deleted_holds_no_quota_any_more() -> None:
    world = with_a_pod(cpu=5)
    meta = world.find("Workload")["metadata"]
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    world.settle()
    (pod,) = [ref for ref in world.api.objects if ref.resource == POD]
    world.api.delete(pod)
    world.settle()
    world.settle()
    told = [note for note in world.notes if note.text.startswith("quota released")]
    assert [(note.text, note.workload, note.epoch, note.cluster) for note in told] == [
        ("quota released: the user deleted it", f"{meta['namespace']}/{meta['name']}", 1, "a")
    ]
    assert not world.machine.core.ledger.engine.charged(meta["uid"])
