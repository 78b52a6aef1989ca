"""HD-153: a record that grants less than its Workload asks for, as an earlier manager may have written it."""

from __future__ import annotations

from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, Doc, a_job, a_setting
from support.manager.world import World, a_world


def grants_less(document: Doc) -> None:
    """Let the record grant a tenth of a CPU for all pods."""
    document["status"]["admission"]["podSetAssignments"][0]["resourceUsage"]["cpu"] = "100m"


def the_workload(world: World) -> ObjectRef:
    return ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, world.find("Workload")["metadata"]["name"]))


def evictions(workload: Doc) -> list[tuple[str, int]]:
    found = workload["status"].get("schedulingStats", {}).get("evictions", [])
    return [(one["reason"], one["count"]) for one in found]


def test_hd_227_a_record_that_grants_less_is_put_back_by_who_has_seen_it_granted() -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=2, completions=8))
    world.advance(2.0)
    granted, runs = world.find("Workload")["status"]["admission"], set(world.runs)
    world.api.edit(the_workload(world), grants_less)
    world.advance(10.0)
    assert (world.find("Workload")["status"]["admission"], set(world.runs)) == (granted, runs)


def test_hd_153_a_record_that_grants_less_than_its_job_asks_is_stopped_and_queued_anew_by_who_finds_it_so() -> None:
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_job(parallelism=2, completions=8))
    world.advance(2.0)
    granted = world.find("Workload")["status"]["admission"]
    world.api.edit(the_workload(world), grants_less)
    world.restart()
    world.advance(10.0)
    workload = world.find("Workload")
    assert evictions(workload) == [("NoMatchingWorkload", 1)]
    assert len({epoch for _, epoch, _ in world.runs}) == 2, "stopped, and queued again"
    assert workload["status"]["admission"] == granted


def test_hd_153_a_reservation_of_less_than_its_job_asks_goes_back_before_it_gets_a_cluster() -> None:
    world = a_world(a_setting(cpu=8))
    world.agents["a"].silent = world.agents["b"].silent = True
    world.api.apply(a_job(parallelism=2, completions=8))
    world.advance(2.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
    granted = world.find("Workload")["status"]["admission"]
    world.api.edit(the_workload(world), grants_less)
    world.agents["a"].silent = world.agents["b"].silent = False
    world.advance(60.0)
    workload = world.find("Workload")
    assert workload["status"]["admission"] == granted
    assert workload["status"]["clusterName"]
