"""HD-7: a write that only informs has pauses of its own, and keeps no transition, deletion or eviction waiting."""

from __future__ import annotations

import pytest

from gatelift.core.api.purposes import Purpose
from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values import resources
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

REFUSALS = [WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN, WriteError.NOT_DONE]


def workload_ref(world: World) -> ObjectRef:
    return ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, world.find("Workload")["metadata"]["name"]))


def refused(world: World, error: WriteError, *purposes: Purpose) -> list[float]:
    """Let the world refuse writes of these purposes alone; return the times of the refusals, which is filled later."""
    struck: list[float] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        if world.machine.core.inflight.purpose(command.ref) not in purposes:
            return None
        struck.append(world.now)
        return error

    world.fail = fail
    return struck


@pytest.mark.parametrize("error", REFUSALS)
def test_hd_7_a_refused_write_of_reclaimable_pods_keeps_no_eviction_waiting(error: WriteError) -> None:
    world = a_world(a_setting(cpu=8))
    struck = refused(world, error, Purpose.RECLAIM)
    world.api.apply(a_job(parallelism=4, completions=8))
    world.settle()
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=2, succeeded=6, reclaimable=2)
    world.advance(40.0)
    assert 4 < len(struck) < 10, "it is tried again, with a growing pause"
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(active=False))
    world.advance(0.5)
    assert world.condition(world.find("Workload"), "Evicted")["status"] == "True"
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"


def test_hd_7_a_refused_write_of_pods_ready_keeps_no_eviction_waiting_and_ready_pods_are_not_timed_out() -> None:
    world = a_world(a_setting(), readiness=ReadinessSettings(timeout=20.0))
    struck = refused(world, WriteError.INVALID, Purpose.PODS_READY)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(40.0)
    assert struck
    assert world.condition(world.find("Workload"), "Evicted") == {}, "its pods are ready, whatever could not be written"
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(active=False))
    world.advance(0.5)
    assert world.condition(world.find("Workload"), "Evicted")["status"] == "True"


def test_hd_7_a_mirror_that_is_refused_keeps_no_deletion_waiting() -> None:
    world = a_world(a_setting())
    struck = refused(world, WriteError.DENIED, Purpose.MIRROR)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(40.0)
    assert struck
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(0.5)
    assert world.all("Pod") == []


def test_hd_7_the_end_is_shown_at_once_though_the_mirror_before_it_was_refused() -> None:
    world = a_world(a_setting())
    refused(world, WriteError.INVALID, Purpose.MIRROR)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(40.0)
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(0.5)
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"
    assert world.find("Pod")["status"]["phase"] == "Succeeded"


def test_hd_7_an_end_that_cannot_be_shown_keeps_no_deletion_of_its_object_waiting() -> None:
    world = a_world(a_setting())
    struck = refused(world, WriteError.FORBIDDEN, Purpose.MIRROR_END, Purpose.SHOW_END)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(40.0)
    assert struck
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(0.5)
    assert world.all("Pod") == []


def test_hd_7_a_job_that_cannot_be_shown_as_running_is_taken_back_at_once() -> None:
    world = a_world(a_setting(cpu=8))
    struck = refused(world, WriteError.INVALID, Purpose.MIRROR)
    world.api.apply(a_job())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], {"active": 2, "ready": 2})
    world.advance(40.0)
    assert struck
    world.api.edit(workload_ref(world), lambda one: one["spec"].update(active=False))
    world.advance(0.5)
    assert world.find("Job")["spec"]["suspend"] is True


def test_hd_7_nothing_of_a_pause_is_kept_of_objects_that_are_gone() -> None:
    world = a_world(a_setting())
    refused(world, WriteError.DENIED, Purpose.MIRROR)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(5.0)
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(2.0)
    assert not world.machine.core.resting.pauses
    assert not world.machine.core.inflight.trouble
    assert world.all(resources.WORKLOAD.kind) == []
