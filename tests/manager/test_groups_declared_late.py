"""Who says what a group's sets are, once there is quota for them: nobody who says something else (HD-480, HD-481)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Commit, ObjectReport
from support.manager.agents import ScriptedAgent
from support.manager.api import Doc
from support.manager.builders import a_setting
from support.manager.group_world import K, a_member, contained, join, names, pod_ref, warnings
from support.manager.world import World, a_world

SETS = f"{K}pod-group-sets"
ROLE = "mine"
"""A role hash that the user wrote: a set may be declared under its name."""


def of_the_role(name: str, at: int, cpu: str = "1", **more: Any) -> Doc:
    return a_member(name, total=2, at=at, cpu=cpu, notes={f"{K}role-hash": ROLE} | more.get("notes", {}))


def sets(cpu: str, name: str = ROLE, count: int = 2) -> Doc:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    return {SETS: json.dumps([{"name": name, "count": count, "template": template}])}


def of_the_set(name: str, at: int, cpu: str, notes: Doc | None = None, role: str = ROLE) -> Doc:
    return a_member(name, total=2, at=at, cpu=cpu, labels={f"{K}pod-group-role": role}, notes=notes)


def at_a_worker(*members: Doc) -> tuple[World, ScriptedAgent]:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=VERSION_OF_CHANGE)
    join(world, *members, seconds=5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    return world, agent


def leaves(world: World, agent: ScriptedAgent, name: str) -> None:
    """Have its user delete a pod, and its worker say that it has gone."""
    uid = world.find("Pod", name)["metadata"]["uid"]
    world.api.delete(pod_ref(name))
    world.advance(3.0)
    gone = ObjectReport(
        key=agent.commits[-1], kind="PodGroup", name=name, uid="w", status=b"{}", owner_uid=uid, gone=True
    )
    agent.say(gone)
    world.advance(3.0)


def told_of(world: World) -> set[str]:
    committed = {one.name for _, commit in world.messages(Commit) for one in commit.objects}
    return committed | {one.name for _, change in world.messages(Change) for one in change.join}


def declares(world: World, name: str, notes: Doc) -> None:
    """Have a pod declare sets, around the webhook."""

    def said(document: Doc) -> None:
        document["metadata"]["annotations"].update(notes)
        document["metadata"]["labels"][f"{K}pod-group-role"] = ROLE

    world.api.edit(pod_ref(name), said)
    world.advance(2.0)


@pytest.mark.parametrize("again", [False, True], ids=["by the same leader", "by the next one"])
def test_hd_480_a_set_that_is_declared_late_makes_no_pod_of_a_group_larger_than_it_was_admitted(*, again: bool) -> None:
    """At a worker it ran with eight times what is charged for it."""
    world, agent = at_a_worker(of_the_role("a", 0), of_the_role("b", 1))
    declares(world, "a", sets("8"))
    leaves(world, agent, "b")
    join(world, of_the_set("large", 2, "8"), seconds=10.0)
    if again:
        world.restart()
        world.connect("a", version=VERSION_OF_CHANGE)
        world.advance(10.0)
    assert "large" not in told_of(world)
    assert {name for name, _ in warnings(world, "GroupShapeMismatch")} == {"large"}
    join(world, of_the_role("c", 3), seconds=10.0)
    assert told_of(world) - {"b"} == {"a", "c"}
    assert contained(world) == []


def test_hd_480_a_pod_that_declares_other_sets_than_its_group_has_quota_for_is_not_let_go_and_told_why() -> None:
    world, agent = at_a_worker(of_the_role("a", 0), of_the_role("b", 1))
    leaves(world, agent, "b")
    join(world, of_the_set("large", 2, "8", sets("8")), seconds=10.0)
    assert (told_of(world), "large" in names(world)) == ({"a", "b"}, True)
    ((name, text),) = warnings(world, "GroupShapeMismatch")
    assert name == "large"
    assert f"metadata.annotations[{SETS}]: declares other sets than the group has quota for" in text
    assert "make a new group" in text
    join(world, of_the_role("c", 3), seconds=10.0)
    assert told_of(world) == {"a", "b", "c"}, "the others go on as they were"
    assert contained(world) == []


def a_driver(name: str, at: int, wants: str, cpu: str = "1") -> Doc:
    worker = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": wants}}}]}}
    declared = [{"name": "driver", "count": 1}, {"name": "workers", "count": 2, "template": worker}]
    made = a_member(name, at=at, cpu=cpu, notes={SETS: json.dumps(declared)})
    del made["metadata"]["annotations"][f"{K}pod-group-total-count"]
    return made


def a_worker(name: str, at: int, cpu: str) -> Doc:
    made = of_the_set(name, at, cpu, role="workers")
    del made["metadata"]["annotations"][f"{K}pod-group-total-count"]
    return made


def test_hd_481_another_driver_declares_larger_workers_than_there_is_quota_for() -> None:
    """One that says what the first one said takes its place; workers are those that were declared first."""
    world, agent = at_a_worker(a_driver("first", 0, "1"))
    join(world, a_worker("w0", 1, "1"), seconds=5.0)
    leaves(world, agent, "first")
    join(world, a_driver("second", 2, "8"), seconds=5.0)
    join(world, a_worker("large", 3, "8"), seconds=10.0)
    assert told_of(world) == {"first", "w0"}
    join(world, a_driver("third", 4, "1"), a_worker("like", 5, "1"), seconds=20.0)
    assert told_of(world) == {"first", "w0", "third", "like"}
    assert contained(world) == []
