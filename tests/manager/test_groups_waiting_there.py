"""Pods of a group that wait at a worker for want of a slot: another leader turns one away that is too many (HD-521)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Commit, ObjectReport
from support.manager.agents import ScriptedAgent
from support.manager.api import Doc
from support.manager.builders import a_setting
from support.manager.group_world import a_member, join, pod_ref
from support.manager.world import World, a_world, workload_ref


@pytest.fixture
def led_by_another() -> tuple[World, ScriptedAgent]:
    """Return a world whose worker runs a group of three; who leads now finds a fourth that its Workload names."""
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=VERSION_OF_CHANGE)
    join(world, *(a_member(name, at=at) for at, name in enumerate("abc")), seconds=5.0)
    owner = world.api.apply(a_member("d", at=9))["metadata"]

    def name_it_too(workload: Doc) -> None:
        first = workload["metadata"]["ownerReferences"][0]
        workload["metadata"]["ownerReferences"].append(first | {"name": "d", "uid": owner["uid"]})

    world.api.edit(workload_ref(world), name_it_too)
    world.restart()
    world.advance(10.0)
    assert len(world.messages(Commit)[-1][1].objects) == 4
    return world, agent


def report(world: World, agent: ScriptedAgent, name: str, phase: str, **said: Any) -> None:
    meta = world.api.objects[pod_ref(name)]["metadata"]
    status, key = json.dumps({"phase": phase}).encode(), agent.commits[-1]
    agent.say(ObjectReport(key=key, kind="PodGroup", name=name, uid="w", status=status, owner_uid=meta["uid"], **said))


def goes(world: World, name: str) -> bool:
    found = world.api.objects.get(pod_ref(name))
    return found is None or "deletionTimestamp" in found["metadata"]


def test_hd_521_who_waits_there_and_is_too_many_is_deleted_and_told_to_leave(
    led_by_another: tuple[World, ScriptedAgent],
) -> None:
    world, agent = led_by_another
    assert not goes(world, "d")  # it may run, as far as anybody knows
    report(world, agent, "d", "Pending", waits=True)
    world.advance(5.0)
    assert goes(world, "d")
    assert [one.name for _, each in world.messages(Change) for one in each.leave] == ["d"]


def take_no_status(world: World, name: str) -> None:
    """Let the API server be away for each write of a pod's status."""

    def fails(command: Create | Patch | Delete) -> WriteError | None:
        of_status = isinstance(command, Patch) and command.subresource == "status" and command.ref == pod_ref(name)
        return WriteError.NOT_DONE if of_status else None

    world.fail = fails


def test_hd_521_not_while_the_end_of_another_one_is_told_and_not_shown(
    led_by_another: tuple[World, ScriptedAgent],
) -> None:
    """It may have that one's slot by now."""
    world, agent = led_by_another
    take_no_status(world, "b")
    report(world, agent, "b", "Failed")
    report(world, agent, "d", "Pending", waits=True)
    world.advance(5.0)
    assert not goes(world, "d")
    world.fail = None
    world.advance(60.0)
    assert not goes(world, "d")


def test_hd_521_nor_once_it_has_been_let_go(led_by_another: tuple[World, ScriptedAgent]) -> None:
    world, agent = led_by_another
    take_no_status(world, "b")
    report(world, agent, "b", "Succeeded")
    report(world, agent, "d", "Pending", waits=True)
    world.advance(5.0)
    report(world, agent, "d", "Running")
    world.fail = None
    world.advance(60.0)
    assert world.api.objects[pod_ref("b")]["status"]["phase"] == "Succeeded"
    assert not goes(world, "d")
