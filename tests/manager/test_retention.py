"""What is over is deleted after a while, if the deployment says so, and not before its object shows the end."""

from __future__ import annotations

from typing import Any

from gatelift.core.state.readiness_values import ReadinessSettings, RetentionSettings
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting, a_workload
from support.manager.world import SUCCEEDED, World

AN_HOUR = 3600.0


def a_world_that_forgets(retention: RetentionSettings, **settings: Any) -> World:
    world = World(settings={"retention": retention, **settings})
    for document in a_setting():
        world.api.apply(document)
    world.settle()
    world.connect("a")
    world.advance(3.0)
    return world


def a_finished_pod(retention: RetentionSettings) -> World:
    world = a_world_that_forgets(retention)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.finish(agent.commits[0], SUCCEEDED)
    world.settle()
    return world


def a_deactivated_job(*, by_us: bool) -> World:
    """Return a world whose Job was deactivated: it did not get ready, or somebody said so."""
    readiness = ReadinessSettings(timeout=60.0, backoff_limit=0)
    world = a_world_that_forgets(RetentionSettings(after_deactivated=AN_HOUR), readiness=readiness)
    world.api.apply(a_job())
    world.settle()
    if by_us:
        world.advance(70.0)
    else:
        meta = world.find("Workload")["metadata"]
        ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
        world.api.edit(ref, lambda workload: workload["spec"].update(active=False))
        world.advance(2.0)
    assert world.find("Workload")["spec"]["active"] is False
    return world


def test_a_finished_workload_is_kept_for_its_time_and_its_pod_for_ever() -> None:
    world = a_finished_pod(RetentionSettings(after_finished=AN_HOUR))
    world.advance(AN_HOUR - 5.0)
    assert len(world.all("Workload")) == 1
    world.advance(10.0)
    assert world.all("Workload") == []
    assert world.find("Pod")["status"]["phase"] == "Succeeded"
    world.advance(60.0)
    assert world.all("Workload") == [], "what is over gets no Workload again"


def test_without_a_setting_everything_is_kept() -> None:
    world = a_finished_pod(RetentionSettings())
    world.advance(100 * AN_HOUR)
    assert len(world.all("Workload")) == 1


def test_zero_means_at_once() -> None:
    world = a_finished_pod(RetentionSettings(after_finished=0.0))
    world.advance(1.0)
    assert world.all("Workload") == []


def test_what_finished_before_the_manager_started_goes_too() -> None:
    world = a_finished_pod(RetentionSettings(after_finished=AN_HOUR))
    world.advance(AN_HOUR / 2)
    world.restart()
    world.advance(AN_HOUR / 2 - 10.0)
    assert len(world.all("Workload")) == 1
    world.advance(20.0)
    assert world.all("Workload") == []


def test_a_workload_without_owner_goes_as_well() -> None:
    world = a_world_that_forgets(RetentionSettings(after_finished=AN_HOUR))
    world.api.apply(a_workload().document())
    world.settle()
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
    wall = "2026-11-18T11:23:20Z"
    over = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": wall}
    world.api.edit(ref, lambda workload: workload.setdefault("status", {}).update(conditions=[over]))
    world.advance(AN_HOUR + 60.0)
    assert world.all("Workload") == []


def test_what_we_deactivated_goes_with_its_job_after_its_time() -> None:
    world = a_deactivated_job(by_us=True)
    world.advance(AN_HOUR - 30.0)
    assert len(world.all("Job")) == 1
    world.advance(60.0)
    assert world.all("Job") == []
    assert world.all("Workload") == []
    assert [one.reason for one in world.emitted if one.ref.resource.kind == "Job"][-1] == "Deleted"


def test_what_a_person_deactivated_stays() -> None:
    world = a_deactivated_job(by_us=False)
    world.advance(3 * AN_HOUR)
    assert len(world.all("Job")) == 1


def test_what_was_reactivated_in_time_stays() -> None:
    world = a_deactivated_job(by_us=True)
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
    world.api.edit(ref, lambda workload: workload["spec"].update(active=True))
    world.advance(50.0)
    agent = world.agents["a"]
    agent.show(agent.commits[-1], {"active": 2, "ready": 2})
    world.advance(3 * AN_HOUR)
    assert len(world.all("Job")) == 1
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
