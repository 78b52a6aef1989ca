"""A driver makes its workers at the worker: granted without pods at home, counted by its agent's word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.made_there import ANNOTATION
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import (
    Change,
    Commit,
    CountsReport,
    ObjectReport,
    PodSetCounts,
    Stop,
    Stopped,
    TemplateBlob,
)
from support.manager.agents import ScriptedAgent
from support.manager.api import Doc
from support.manager.builders import a_setting
from support.manager.group_world import THEIRS, K, a_member, join, pod_ref
from support.manager.world import World, a_world

FOR_GOOD = {f"{K}retriable-in-group": "false"}


def a_driver(workers: int = 2, notes: Doc | None = None) -> Doc:
    container = {"name": "w", "resources": {"requests": {"cpu": "1"}}}
    sets: list[Any] = [
        {"name": "driver", "count": 1},
        {"name": "workers", "count": workers, "template": {"spec": {"containers": [container]}}},
    ]
    made = a_member("driver", cpu="1", notes={f"{K}pod-group-sets": json.dumps(sets), **(notes or {})})
    del made["metadata"]["annotations"][f"{K}pod-group-total-count"]
    return made


def placed(notes: Doc | None = None, *, adopts: bool = True) -> tuple[World, ScriptedAgent]:
    """Return a world whose only worker runs a driver of two workers."""
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=VERSION_OF_CHANGE, adopts=adopts)
    join(world, a_driver(notes=notes), seconds=5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    return world, agent


def made(world: World, agent: ScriptedAgent, *, seconds: float = 3.0, **counts: int) -> None:
    """Let the agent say how many workers the driver has made there."""
    counts.setdefault("remaining", counts.get("active", 0) + counts.get("terminating", 0))
    agent.say(CountsReport(key=agent.commits[-1], pod_sets=(), made_here=(PodSetCounts(name="workers", **counts),)))
    world.advance(seconds)


def driver_ends(world: World, agent: ScriptedAgent, phase: str = "Succeeded") -> None:
    (uid,) = [one["metadata"]["uid"] for one in world.all("Pod")]
    status = json.dumps({"phase": phase}).encode()
    agent.say(
        ObjectReport(key=agent.commits[-1], kind="PodGroup", name="driver", uid="w", status=status, owner_uid=uid)
    )
    world.advance(5.0)


def stops(world: World) -> list[Stop]:
    return [message for _, message in world.messages(Stop)]


def finished(world: World) -> str:
    said = world.condition(world.find("Workload"), "Finished")
    return f"{said.get('reason', '')}: {said.get('message', '')}" if said else ""


def test_dw_6_all_is_granted_to_the_driver_alone_and_what_it_declares_travels() -> None:
    world, _ = placed()
    ((_, commit),) = world.messages(Commit)
    assert [one.name for one in commit.objects] == ["driver"]
    sets = {one.name: one for one in commit.pod_sets}
    assert (sets["workers"].count, sets["driver"].shape) == (2, "")
    blobs = {message.hash: json.loads(message.content) for _, message in world.messages(TemplateBlob)}
    assert blobs[sets["workers"].shape]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_an_agent_that_takes_none_in_is_told_of_no_shape() -> None:
    world, _ = placed(adopts=False)
    ((_, commit),) = world.messages(Commit)
    assert {one.shape for one in commit.pod_sets} == {""}


def test_dw_6_the_group_goes_on_while_what_the_driver_made_does() -> None:
    """DW-5 at a worker: `retriable-in-group: false` ends it once nobody runs or waits."""
    world, agent = placed(FOR_GOOD)
    made(world, agent, active=2)
    driver_ends(world, agent)
    assert stops(world) == []
    made(world, agent, succeeded=1, failed=1)
    assert len(stops(world)) == 1
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(5.0)
    assert finished(world) == "Failed: Pods succeeded: 2/3, failed: 1"


def test_dw_6_what_is_being_stopped_goes_on_as_well() -> None:
    world, agent = placed(FOR_GOOD)
    made(world, agent, terminating=1)
    driver_ends(world, agent)
    assert stops(world) == []


def test_dw_6_all_that_succeed_end_the_group_as_succeeded() -> None:
    world, agent = placed()
    made(world, agent, succeeded=2)
    driver_ends(world, agent)
    assert len(stops(world)) == 1
    made(world, agent, succeeded=2)
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(5.0)
    assert finished(world) == "Succeeded: Pods succeeded: 3/3"


def test_dw_6_workers_that_the_driver_deleted_are_gone_and_it_ends_all_the_same() -> None:
    world, agent = placed(FOR_GOOD)
    made(world, agent, active=2)
    made(world, agent)
    driver_ends(world, agent)
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(5.0)
    assert finished(world) == "Failed: Pods succeeded: 1/3, gone: 2"


@pytest.mark.parametrize("adopts", [True, False], ids=["that counts them", "that takes none in"])
def test_hd_384_a_new_leader_ends_no_group_before_its_agent_has_counted(*, adopts: bool) -> None:
    """HD-384."""
    world, agent = placed(FOR_GOOD, adopts=adopts)
    if adopts:
        made(world, agent, active=1)
    world.cut("a")
    world.restart()
    world.api.edit(pod_ref("driver"), lambda document: document["status"].update(phase="Succeeded"))
    world.advance(20.0)
    assert stops(world) == []
    agent = world.connect("a", version=VERSION_OF_CHANGE, adopts=adopts)
    world.advance(5.0)
    driver_ends(world, agent)
    if adopts:
        assert stops(world) == []
        made(world, agent, succeeded=1)
    assert len(stops(world)) == 1


def test_home_tells_no_worker_to_join_where_those_made_there_have_all_places() -> None:
    world, agent = placed()
    made(world, agent, active=2)
    worker = a_member("w9", cpu="1", at=9, labels={f"{K}pod-group-role": "workers"})
    del worker["metadata"]["annotations"][f"{K}pod-group-total-count"]
    join(world, worker, seconds=5.0)
    assert _joined(world) == []
    made(world, agent, active=1)
    assert _joined(world) == ["w9"]


def _joined(world: World) -> list[str]:
    return [one.name for _, change in world.messages(Change) for one in change.join]


def test_the_workload_tells_of_them() -> None:
    world, agent = placed()
    made(world, agent, active=2, succeeded=1, rejected=3, seconds=30.0)
    said = world.find("Workload")["metadata"]["annotations"][ANNOTATION]
    assert said == "workers: 2 active, 1 succeeded, 3 turned away"


def test_hd_416_of_what_has_stopped_it_says_nobody_to_run() -> None:
    world, agent = placed()
    made(world, agent, active=2, succeeded=1, seconds=30.0)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(5.0)
    agent.say(Stopped(key=agent.commits[-1], reason="Deactivated", message="", objects=()))
    world.advance(30.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"
    assert world.find("Workload")["metadata"]["annotations"][ANNOTATION] == "workers: 1 succeeded"


def test_pg_27_who_is_turned_away_there_is_counted_as_rejected_once() -> None:
    world, agent = placed()

    def rejected() -> int:
        return sum(world.machine.core.pod_counts.rejected.values())

    made(world, agent, active=2, rejected=2)
    made(world, agent, active=2, rejected=3)
    assert rejected() == 3
    made(world, agent, active=2, rejected=1)  # its agent began anew
    assert rejected() == 3
    world.restart()
    world.connect("a", version=VERSION_OF_CHANGE, adopts=True)
    world.advance(5.0)
    made(world, agent, active=2, rejected=7)
    assert rejected() == 0


def test_what_was_made_under_one_epoch_counts_for_no_later_one() -> None:
    world, agent = placed(FOR_GOOD)
    made(world, agent, active=2)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(5.0)
    agent.say(Stopped(key=agent.commits[-1], reason="Deactivated"))
    world.advance(5.0)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=True))
    world.advance(90.0)
    assert [key.epoch for key in agent.commits] == [1, 2]
    driver_ends(world, agent)
    assert [each.key.epoch for each in stops(world)] == [1]


def test_a_driver_that_has_nothing_to_make_waits_for_no_word_about_it() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=VERSION_OF_CHANGE, adopts=True)
    driver = a_driver()
    driver["metadata"]["annotations"][f"{K}pod-group-sets"] = json.dumps([{"name": "driver", "count": 1}])
    join(world, driver, seconds=5.0)
    driver_ends(world, agent)
    assert len(stops(world)) == 1
