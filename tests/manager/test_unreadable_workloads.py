"""HD-142: nobody queues a Workload of which nobody can tell what it asks for; what it holds already stays charged."""

from __future__ import annotations

from typing import Any

from support.manager.builders import a_setting, a_workload
from support.manager.world import World, a_world, workload_ref


def unreadable(document: dict[str, Any]) -> None:
    document["spec"]["podSets"][0]["template"] = {"spec": {"containers": "none"}}


def readable(document: dict[str, Any]) -> None:
    document["spec"]["podSets"][0]["template"] = a_workload().document()["spec"]["podSets"][0]["template"]


def a_home() -> World:
    return a_world(a_setting(clusters=(), cpu=1), clusters=())


def test_hd_142_a_workload_of_nobodys_waits_until_its_template_can_be_read_and_says_so() -> None:
    world = a_home()
    document = a_workload().document()
    unreadable(document)
    world.api.apply(document)
    world.settle()
    world.advance(5.0)
    said = world.condition(world.find("Workload"), "QuotaReserved")
    assert (said["status"], said["reason"]) == ("False", "UnreadablePodTemplate")
    assert said["message"].startswith("spec.podSets[0].template: ")
    assert "delete the Workload" in said["message"]
    assert [each.reason for each in world.emitted].count("UnreadablePodTemplate") == 1
    world.api.edit(workload_ref(world), readable)
    world.settle()
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"


def test_hd_142_what_is_admitted_stays_so_and_is_charged() -> None:
    world = a_home()
    world.api.apply(a_workload("first").document())
    world.settle()
    world.api.edit(workload_ref(world), unreadable)
    world.settle()
    world.api.apply(a_workload("second").document())
    world.settle()
    world.advance(60.0)
    shown = {
        each["metadata"]["name"]: world.condition(each, "QuotaReserved")["status"] for each in world.all("Workload")
    }
    assert shown == {"first": "True", "second": "False"}
