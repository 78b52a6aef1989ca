"""The manager dies at every step of an end that a check, a clock or unready pods decide: the next one finishes it."""

from __future__ import annotations

from functools import partial
from typing import Any

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, Doc, a_job, a_pod, a_setting, kueue_object
from support.manager.crashing import Act, crashes, over_and_clean
from support.manager.world import RUNNING, SUCCEEDED, World, a_world, workload_ref

LIMIT = {"kueue.x-k8s.io/max-exec-time-seconds": "5"}


def a_checked_setting() -> list[Doc]:
    """Return a setting whose queue asks another controller too."""
    active = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "On"}]}
    setting = a_setting()
    for document in setting:
        if document["kind"] == "ClusterQueue":
            document["spec"]["admissionChecksStrategy"]["admissionChecks"].append({"name": "budget"})
    return [
        *setting,
        {**kueue_object("AdmissionCheck", "budget", {"controllerName": "example.com/x"}), "status": active},
    ]


def submit(world: World) -> None:
    world.api.apply(a_pod().document())


def submit_limited(world: World) -> None:
    document = a_pod().document()
    document["metadata"]["labels"] |= LIMIT
    world.api.apply(document)


def submit_modest_job(world: World) -> None:
    document = a_job(parallelism=8)
    document["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    world.api.apply(document)


def say(state: str, world: World) -> None:
    """Let the other controller say this, unless a predecessor's crash left it nothing to say it of."""

    def write(workload: Doc) -> None:
        for check in workload.get("status", {}).get("admissionChecks", []):
            if check["name"] == "budget":
                check.update(state=state, message="said so")

    if world.all("Workload"):
        world.api.edit(workload_ref(world), write)


def show_running(world: World) -> None:
    for agent in world.agents.values():
        for key, held in list(agent.placements.items()):
            if held.lifted and held.commit is not None:
                agent.show(key, RUNNING if held.commit.kind == "Pod" else {"active": 4, "ready": 4})


def finish(world: World) -> None:
    for agent in world.agents.values():
        for key, held in list(agent.placements.items()):
            if held.lifted:
                agent.finish(key, SUCCEEDED)


def deactivate(world: World) -> None:
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))


def deactivated(world: World, cause: str, crash_at: int) -> None:
    """Check the end of a deactivation: said, counted once, carried out, and nothing left of it."""
    workload: Any = world.find("Workload")
    assert workload["spec"]["active"] is False, crash_at
    evicted = world.condition(workload, "Evicted")
    assert (evicted["status"], evicted["reason"]) == ("True", f"DeactivatedDueTo{cause}"), crash_at
    assert world.condition(workload, "DeactivationTarget") == {}, crash_at
    assert world.condition(workload, "Requeued")["status"] == "False", crash_at
    [counted] = workload["status"]["schedulingStats"]["evictions"]
    assert counted == {"reason": "Deactivated", "underlyingCause": cause, "count": 1}, crash_at
    assert len(world.runs) <= 1, crash_at
    over_and_clean(world, crash_at)


ready, retry, reject = (partial(say, state) for state in ("Ready", "Retry", "Rejected"))


def test_a_rejection_is_carried_out_once_whenever_the_manager_dies() -> None:
    acts: tuple[Act, ...] = (submit, ready, show_running, reject)
    for crash_at, world in crashes(lambda: a_world(a_checked_setting()), acts):
        deactivated(world, "AdmissionCheck", crash_at)


def test_a_rejection_of_what_was_only_reserved_is_carried_out_once() -> None:
    for crash_at, world in crashes(lambda: a_world(a_checked_setting()), (submit, reject)):
        deactivated(world, "AdmissionCheck", crash_at)
        assert world.runs == [], crash_at


def test_a_retry_brings_the_work_back_whenever_the_manager_dies() -> None:
    acts: tuple[Act, ...] = (submit, ready, show_running, retry, ready, show_running, finish)
    for crash_at, world in crashes(lambda: a_world(a_checked_setting()), acts):
        workload = world.find("Workload")
        assert world.condition(workload, "Finished")["status"] == "True", crash_at
        states = {one["name"]: one.get("retryCount") for one in workload["status"]["admissionChecks"]}
        assert states == {"budget": 1, "dispatch": None}, crash_at
        assert [epoch for _, epoch, _ in world.runs] == [1, 2], crash_at
        over_and_clean(world, crash_at)


def test_a_time_that_is_up_ends_the_work_once_whenever_the_manager_dies() -> None:
    for crash_at, world in crashes(lambda: a_world(a_setting()), (submit_limited, show_running)):
        deactivated(world, "MaximumExecutionTimeExceeded", crash_at)
        assert "accumulatedPastExecutionTimeSeconds" not in world.find("Workload")["status"], crash_at


def test_pods_that_do_not_get_ready_are_given_up_once_whenever_the_manager_dies() -> None:
    readiness = ReadinessSettings(timeout=5.0, backoff_base=5.0, backoff_limit=0)
    for crash_at, world in crashes(lambda: a_world(a_setting(), readiness=readiness), (submit,)):
        deactivated(world, "RequeuingLimitExceeded", crash_at)


def test_a_lowered_job_is_put_back_whenever_the_manager_dies() -> None:
    for crash_at, world in crashes(lambda: a_world(a_setting()), (submit_modest_job, show_running, deactivate)):
        job = world.api.objects[ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))]
        assert (job["spec"]["suspend"], job["spec"]["parallelism"]) == (True, 8), crash_at
        assert "gatelift.dev/parallelism-before" not in job["metadata"]["annotations"], crash_at
        assert len(world.all("Workload")) == 1, crash_at
        over_and_clean(world, crash_at)
