"""Checks that a queue requires: those that change while a workload waits for them, and those of its flavors only."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Offer
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

QUEUE = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
ACTIVE = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "On"}]}


def foreign(name: str) -> Doc:
    return {**kueue_object("AdmissionCheck", name, {"controllerName": "example.com/foreign"}), "status": ACTIVE}


def require(world: World, *names: str) -> None:
    """Let the queue require these checks from now on."""
    strategy = {"admissionChecks": [{"name": name} for name in names]}
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy))
    world.advance(2.0)


def say(world: World, name: str, state: str) -> None:
    def write(workload: Doc) -> None:
        found = next(one for one in workload["status"]["admissionChecks"] if one["name"] == name)
        found.update(state=state, message="said so")

    meta = world.find("Workload")["metadata"]
    world.api.edit(ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"])), write)
    world.advance(2.0)


def states(world: World) -> dict[str, str]:
    return {one["name"]: one["state"] for one in world.find("Workload")["status"].get("admissionChecks", [])}


def a_reserved_pod(*checks: str) -> World:
    world = a_world([*a_setting(), foreign("budget"), foreign("license")])
    require(world, "dispatch", *checks)
    world.api.apply(a_pod().document())
    world.advance(2.0)
    return world


def admitted(world: World) -> Any:
    return world.condition(world.find("Workload"), "Admitted").get("status")


def test_a_check_that_comes_while_others_are_waited_for_is_waited_for_too() -> None:
    world = a_reserved_pod("budget")
    require(world, "dispatch", "budget", "license")
    assert states(world) == {"dispatch": "Pending", "budget": "Pending", "license": "Pending"}
    say(world, "budget", "Ready")
    assert admitted(world) is None
    say(world, "license", "Ready")
    assert admitted(world) == "True"


def test_a_check_that_is_no_longer_required_holds_nobody_up() -> None:
    world = a_reserved_pod("budget", "license")
    say(world, "budget", "Ready")
    assert admitted(world) is None
    require(world, "dispatch", "budget")
    assert states(world) == {"dispatch": "Ready", "budget": "Ready"}
    assert admitted(world) == "True"


def test_what_was_said_of_the_others_stays() -> None:
    world = a_reserved_pod("budget", "license")
    say(world, "budget", "Ready")
    require(world, "budget", "dispatch", "license")
    assert states(world)["budget"] == "Ready"


def test_what_is_admitted_keeps_the_checks_it_was_admitted_by() -> None:
    world = a_reserved_pod()
    assert admitted(world) == "True"
    require(world, "dispatch", "budget")
    assert states(world) == {"dispatch": "Ready"}
    assert admitted(world) == "True"


def test_a_queue_that_stops_dispatching_runs_at_home_what_waits() -> None:
    world = a_reserved_pod("budget")
    world.connect("local")
    require(world, "budget")
    say(world, "budget", "Ready")
    assert admitted(world) == "True"
    assert "clusterName" not in world.find("Workload")["status"]
    assert [cluster for cluster, _ in world.messages(Offer)] == ["local"]


def test_offers_that_are_out_are_taken_back_when_other_clusters_are_to_be_asked() -> None:
    world = a_world([*a_setting(), foreign("budget")])
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod().document())
    world.settle()
    world.connect("local")
    strategy: dict[str, Any] = {"admissionChecks": []}
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy))
    world.advance(3.0)
    assert admitted(world) == "True"
    assert "clusterName" not in world.find("Workload")["status"]
    assert [key.uid for key in world.agents["local"].commits] == [world.find("Workload")["metadata"]["uid"]]


def a_full_queue(check: str = "budget") -> World:
    """Return a world in which a pod waits for quota, with the state of a check that it had before."""
    world = a_reserved_pod(check)
    nothing = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "0"}]}
    world.api.edit(QUEUE, lambda queue: queue["spec"]["resourceGroups"][0].update(flavors=[nothing]))
    say(world, check, "Retry")
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"
    assert states(world)[check] == "Pending"
    return world


def room_again(world: World) -> None:
    plenty = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    world.api.edit(QUEUE, lambda queue: queue["spec"]["resourceGroups"][0].update(flavors=[plenty]))
    world.advance(10.0)


def test_a_retry_that_comes_late_is_taken_back_and_keeps_nobody_out_for_ever() -> None:
    world = a_full_queue()
    say(world, "budget", "Retry")
    world.advance(10.0)
    assert states(world)["budget"] == "Pending"
    room_again(world)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
    retries = {one["name"]: one.get("retryCount") for one in world.find("Workload")["status"]["admissionChecks"]}
    assert retries["budget"] == 2


def test_a_rejection_that_comes_late_deactivates_all_the_same() -> None:
    world = a_full_queue()
    say(world, "budget", "Rejected")
    world.advance(5.0)
    workload = world.find("Workload")
    assert workload["spec"]["active"] is False
    evicted = world.condition(workload, "Evicted")
    assert evicted["reason"] == "DeactivatedDueToAdmissionCheck"
    message = 'The workload is deactivated due to AdmissionCheck in Rejected state: "budget" (said so)'
    assert evicted["message"] == message
    assert states(world)["budget"] == "Pending"
    assert world.condition(workload, "Requeued")["status"] == "False"


def test_a_rejection_of_what_a_person_had_deactivated_leaves_it_to_the_person() -> None:
    world = a_full_queue()
    meta = world.find("Workload")["metadata"]
    ref = ObjectRef(resources.WORKLOAD, ObjectKey(NAMESPACE, meta["name"]))
    world.api.edit(ref, lambda workload: workload["spec"].update(active=False))
    world.advance(2.0)
    say(world, "budget", "Rejected")
    world.advance(5.0)
    assert states(world)["budget"] == "Pending"
    assert world.condition(world.find("Workload"), "Evicted")["reason"] == "Deactivated"
    world.api.edit(ref, lambda workload: workload["spec"].update(active=True))
    room_again(world)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
