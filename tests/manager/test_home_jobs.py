"""HD-1, HD-2: what is said and written when somebody else than we lets a Job go, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import Patch
from gatelift_kube.objects.meta import LabelSelector
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, Doc, a_job, a_setting
from support.manager.world import World, a_world

JOB = ObjectRef(resources.JOB, ObjectKey(NAMESPACE, "work"))


def a_waiting_job(world: World, **changes: Any) -> None:
    """Make a Job that its queue never has room for, and whose pods would run at home."""
    document = a_job(**changes)
    document["spec"].pop("managedBy", None)
    world.api.apply(document)
    world.advance(3.0)


def start(document: Doc) -> None:
    document["spec"]["suspend"] = False


def suspensions(world: World) -> list[Patch]:
    """Return the writes that suspend the user's Job."""
    return [one for one in world.history if isinstance(one, Patch) and one.ref == JOB and b'"suspend":true' in one.body]


def full() -> World:
    return a_world(a_setting(cpu=0, clusters=()), clusters=("local",))


def test_hd_1_its_user_is_told_why_it_was_suspended_again() -> None:
    world = full()
    a_waiting_job(world)
    world.api.edit(JOB, start)
    world.advance(3.0)
    assert world.find("Job")["spec"]["suspend"] is True
    said = [one for one in world.emitted if (one.ref, one.reason) == (JOB, "Stopped")]
    assert [one.message for one in said] == ["Not admitted by cluster queue"]
    (write,) = suspensions(world)
    assert b'"resourceVersion"' in write.body, "for the version that was seen: it must not land on the next placement"
    assert any("is not admitted by a cluster queue: suspended" in note.text for note in world.notes)


def test_hd_1_a_job_that_was_there_before_its_queues_name_is_suspended_before_it_gets_a_workload() -> None:
    world = full()
    document = a_job()
    document["spec"].pop("managedBy", None)
    start(document)
    world.api.apply(document)
    world.advance(3.0)
    assert world.find("Job")["spec"]["suspend"] is True
    assert len(suspensions(world)) == 1


def test_hd_1_a_job_whose_workload_says_finished_does_not_run_on() -> None:
    world = full()
    a_waiting_job(world)
    over = {"type": "Finished", "status": "True", "reason": "OutOfSync", "message": "m"}
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, world.find("Workload")["metadata"]["name"]))
    world.api.edit(
        ref, lambda one: one["status"]["conditions"].append({**over, "lastTransitionTime": "2026-11-21T00:00:00Z"})
    )
    world.advance(3.0)
    world.api.edit(JOB, start)
    world.advance(3.0)
    assert world.find("Job")["spec"]["suspend"] is True


@pytest.mark.parametrize("end", ["Complete", "Failed"])
def test_hd_1_a_finished_job_is_never_written(end: str) -> None:
    world = full()
    document = a_job()
    document["spec"].pop("managedBy", None)
    start(document)
    document["status"] = {"conditions": [{"type": end, "status": "True"}]}
    world.api.apply(document)
    world.advance(3.0)
    assert suspensions(world) == []


def test_hd_1_namespaces_that_are_not_managed_are_left_alone() -> None:
    world = World(settings={"managed_namespaces": LabelSelector(match_labels={"managed": "yes"})})
    for document in a_setting(cpu=0, clusters=()):
        world.api.apply(document)
    world.settle()
    a_waiting_job(world)
    world.api.edit(JOB, start)
    world.advance(3.0)
    assert world.find("Job")["spec"]["suspend"] is False
    assert suspensions(world) == []


def test_hd_2_what_its_user_suspended_at_home_is_not_started_again_by_us() -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=2, completions=8))
    world.advance(2.0)
    assert world.find("Job")["spec"]["suspend"] is False
    world.api.edit(JOB, lambda one: one["spec"].update(suspend=True))
    world.advance(5.0)
    evictions = world.find("Workload")["status"]["schedulingStats"]["evictions"]
    assert [(one["reason"], one["count"]) for one in evictions] == [("Suspended", 1)]
    assert len({epoch for _, epoch, _ in world.runs}) == 2, "stopped, and queued again"
    assert world.condition(world.find("Workload"), "Evicted")["status"] == "False"


def test_hd_2_a_commit_never_carries_more_pods_than_were_granted() -> None:
    world = a_world(a_setting(cpu=8))
    world.agents["a"].silent = world.agents["b"].silent = True
    world.api.apply(a_job(parallelism=1, completions=20))
    world.settle()
    world.api.edit(JOB, lambda one: one["spec"].update(parallelism=9))
    world.agents["a"].silent = world.agents["b"].silent = False
    world.advance(60.0)
    assert world.runs == [], "nine do not fit"
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"


# --- HD-106: a Job whose pods the management cluster would make ------------------------------------------------------


@pytest.mark.parametrize("managed_by", [None, "kubernetes.io/job-controller"])
def test_hd_106_what_its_own_cluster_would_run_is_placed_on_no_worker(managed_by: str | None) -> None:
    world = a_world(a_setting(cpu=8))
    document = a_job(parallelism=2)
    document["spec"].pop("managedBy")
    if managed_by is not None:
        document["spec"]["managedBy"] = managed_by
    world.api.apply(document)
    world.advance(5.0)
    workload = world.find("Workload")
    said = {one["type"]: one for one in workload["status"]["conditions"]}["QuotaReserved"]
    assert (said["status"], said["reason"]) == ("False", "Misconfigured")
    assert said["message"] == (
        'The owner is not managed by Kueue: Expecting spec.managedBy to be "kueue.x-k8s.io/multikueue" not '
        f'"{managed_by or ""}": make it anew without that field'
    )
    assert not workload["status"].get("clusterName")


@pytest.mark.parametrize("queued", [True, False], ids=["in its queue", "out of its queue"])
def test_hd_106_what_an_earlier_manager_placed_so_is_suspended_again_while_its_worker_runs_it(queued: bool) -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=2))
    world.advance(2.0)
    cluster = world.find("Workload")["status"]["clusterName"]
    assert cluster != "local"

    def as_before(document: Doc) -> None:
        document["spec"]["managedBy"] = "kubernetes.io/job-controller"
        document["spec"]["suspend"] = False
        document["metadata"].get("annotations", {}).pop("gatelift.dev/shown", None)
        if not queued:
            del document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]

    world.api.edit(JOB, as_before)
    world.advance(0.5)
    assert world.find("Job")["spec"]["suspend"] is True
    assert len(suspensions(world)) == 1
