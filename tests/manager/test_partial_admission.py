"""A Job that is admitted with fewer pods than it asks for: what the engine grants is what runs, and is put back."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit, Offer, TemplateBlob
from support.manager.builders import NAMESPACE, Doc, a_job, a_pod, a_setting
from support.manager.world import World, a_world

JOB = ObjectRef(resources.JOB, ObjectKey(NAMESPACE, "work"))


def a_modest_job(minimum: int = 2, **changes: Any) -> Doc:
    document = a_job(parallelism=8, completions=8, **changes)
    document["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": str(minimum)}
    return document


def granted(world: World) -> int:
    [assigned] = world.find("Workload")["status"]["admission"]["podSetAssignments"]
    assert assigned["resourceUsage"]["cpu"] == str(assigned["count"])
    return int(assigned["count"])


def test_as_many_pods_as_fit_are_offered_committed_and_shown() -> None:
    world = a_world(a_setting(cpu=5))
    world.api.apply(a_modest_job())
    world.settle()
    assert granted(world) == 5
    assert [message.pod_sets[0].count for _, message in world.messages(Offer)] == [5, 5]
    [(_, commit)] = world.messages(Commit)
    assert commit.pod_sets[0].count == 5
    [(_, blob)] = world.messages(TemplateBlob)
    assert b'"parallelism":5' in blob.content
    assert b'"completions":8' in blob.content
    job = world.find("Job")
    assert (job["spec"]["suspend"], job["spec"]["parallelism"], job["spec"]["completions"]) == (False, 5, 8)


def test_fewer_than_the_least_are_not_admitted() -> None:
    world = a_world(a_setting(cpu=5))
    world.api.apply(a_modest_job(minimum=6))
    world.advance(2.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"
    assert world.find("Job")["spec"]["parallelism"] == 8


def test_after_an_eviction_the_job_asks_for_all_again() -> None:
    world = a_world(a_setting(cpu=5))
    world.api.apply(a_modest_job())
    world.settle()
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
    world.api.edit(ref, lambda workload: workload["spec"].update(active=False))
    world.advance(2.0)
    job = world.find("Job")
    assert (job["spec"]["suspend"], job["spec"]["parallelism"]) == (True, 8)
    assert "gatelift.dev/parallelism-before" not in job["metadata"]["annotations"]
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "7"}]}
    world.api.edit(queue, lambda doc: doc["spec"]["resourceGroups"][0].update(flavors=[flavor]))
    world.api.edit(ref, lambda workload: workload["spec"].update(active=True))
    world.advance(2.0)
    assert granted(world) == 7
    assert world.find("Job")["spec"]["parallelism"] == 7
    assert len(world.all("Workload")) == 1, "the Workload was kept, not made anew"


def test_a_new_leader_puts_back_what_its_predecessor_lowered() -> None:
    world = a_world(a_setting(cpu=5))
    world.api.apply(a_modest_job())
    world.settle()
    world.restart()
    world.advance(2.0)
    assert world.find("Job")["spec"]["parallelism"] == 5
    assert granted(world) == 5
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
    world.api.edit(ref, lambda workload: workload["spec"].update(active=False))
    world.advance(2.0)
    assert world.find("Job")["spec"]["parallelism"] == 8


def test_the_tail_of_a_lowered_job_gives_quota_back() -> None:
    world = a_world(a_setting(cpu=5))
    world.api.apply(a_modest_job())
    world.settle()
    agent = world.agents["a"]
    agent.count(agent.commits[0], active=2, remaining=2, succeeded=6, reclaimable=3)
    world.advance(3.0)
    assert world.find("Workload")["status"]["reclaimablePods"] == [{"name": "main", "count": 6}], "of 8, 2 are left"
    world.api.apply(a_pod("next").asking(cpu=3).document())
    world.advance(2.0)
    placed = [one for one in world.all("Workload") if one["metadata"]["name"].startswith("pod-next")]
    assert world.condition(placed[0], "Admitted")["status"] == "True"
