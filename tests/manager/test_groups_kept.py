"""How long a group that is over, or was deactivated, is kept (KEP-1618), and what it says when it ends once more."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.state.readiness_values import ReadinessSettings, RetentionSettings
from gatelift_wire.values.messages import Stopped
from support.manager.group_world import (
    GROUP,
    THEIRS,
    a_member,
    a_world_at_home,
    contained,
    join,
    leave,
    lift,
    names,
    over,
    pod_ref,
    says,
)
from support.manager.world import World

AN_HOUR = 3600.0
MEMBERS = [a_member(name, total=2, at=at) for at, name in enumerate("ab")]
WAITING = "WaitingForReplacementPods"


def finished(retention: RetentionSettings) -> World:
    world = a_world_at_home(*MEMBERS, retention=retention)
    lift(world, "a", "b")
    for name in "ab":
        over(world, name, "Succeeded")
    world.agents["local"].say(Stopped(key=world.agents["local"].commits[-1]))
    world.advance(5.0)
    assert says(world, "Finished")[0] == "True"
    return world


def deactivated(*, by_us: bool, **settings: Any) -> World:
    """Return a world whose group was deactivated: it did not get ready, or somebody said so."""
    readiness = ReadinessSettings(timeout=60.0, backoff_limit=0)
    world = a_world_at_home(*MEMBERS, readiness=readiness, **settings)
    lift(world, "a", "b")
    world.agents["local"].silent = True
    if by_us:
        world.advance(70.0)
    else:
        world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
        world.advance(2.0)
    has_stopped(world)
    assert world.find("Workload", GROUP)["spec"]["active"] is False
    return world


def has_stopped(world: World) -> None:
    """Have both pods be told, deleted and ended, and their agent say so."""
    agent = world.agents["local"]
    for name in "ab":
        leave(world, name)
        over(world, name, "Failed", seconds=0.0)
    agent.silent = False
    world.stopped(agent.commits[-1], "local")
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(5.0)


def test_the_workload_of_a_group_that_finished_is_kept_for_its_time_and_its_pods_for_ever() -> None:
    world = finished(RetentionSettings(after_finished=AN_HOUR))
    world.advance(AN_HOUR - 60.0)
    assert len(world.all("Workload")) == 1
    world.advance(120.0)
    assert (world.all("Workload"), names(world)) == ([], ["a", "b"])
    world.advance(60.0)
    assert (world.all("Workload"), contained(world)) == ([], []), "what is over gets no Workload again"


def test_without_a_setting_it_is_kept() -> None:
    world = finished(RetentionSettings())
    world.advance(100 * AN_HOUR)
    assert len(world.all("Workload")) == 1


def test_one_of_which_a_pod_does_not_show_its_end_is_kept() -> None:
    """What its record says of the end is all that keeps that pod from running again."""
    world = finished(RetentionSettings(after_finished=AN_HOUR))
    uid = world.find("Workload", GROUP)["metadata"]["uid"]
    world.api.edit(pod_ref("b"), lambda document: document["status"].update(phase="Running"))
    world.advance(2 * AN_HOUR)
    assert world.find("Workload", GROUP)["metadata"]["uid"] == uid


@pytest.mark.parametrize("restarted", [False, True], ids=["", "under another leader"])
def test_pc_101_the_pods_of_a_group_that_we_deactivated_are_deleted_after_their_time(*, restarted: bool) -> None:
    world = deactivated(by_us=True, retention=RetentionSettings(after_deactivated=AN_HOUR))
    join(world, a_member("c", total=2, at=30))
    world.advance(AN_HOUR - 300.0)
    assert "c" in names(world)
    if restarted:
        world.restart()
    world.advance(400.0)
    assert (world.all("Pod"), world.all("Workload"), contained(world)) == ([], [], [])
    assert [one.ref.key.name for one in world.emitted if one.reason == "Deleted"] == ["c"]


def test_nothing_is_cleared_away_while_its_agent_has_not_said_that_it_has_stopped() -> None:
    readiness = ReadinessSettings(timeout=60.0, backoff_limit=0)
    world = a_world_at_home(*MEMBERS, readiness=readiness, retention=RetentionSettings(after_deactivated=0.0))
    lift(world, "a", "b")
    world.agents["local"].silent = True
    world.advance(70.0)
    leave(world, "a")
    over(world, "a", "Failed", seconds=60.0)
    assert names(world) == ["a", "b"]
    assert "deletionTimestamp" not in world.all("Pod")[1]["metadata"]
    leave(world, "b")
    has_stopped(world)
    world.advance(60.0)
    assert (names(world), contained(world)) == ([], [])


def test_what_a_person_deactivated_stays() -> None:
    world = deactivated(by_us=False, retention=RetentionSettings(after_deactivated=0.0))
    join(world, a_member("c", total=2, at=30))
    world.advance(AN_HOUR)
    assert "c" in names(world)
    assert len(world.all("Workload")) == 1


def test_pc_095_a_group_that_waits_after_one_eviction_and_is_deactivated_says_that_reason() -> None:
    readiness = ReadinessSettings(timeout=60.0, backoff_base=30.0)
    world = a_world_at_home(*MEMBERS, readiness=readiness)
    lift(world, "a", "b")
    world.agents["local"].silent = True
    world.advance(61.0)
    has_stopped(world)
    assert says(world, WAITING) == ("True", "PodsReadyTimeout")
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(10.0)
    assert (says(world, "Evicted"), says(world, WAITING)) == (("True", "Deactivated"), ("True", "Deactivated"))
    writes = len(world.writes("Workload"))
    world.advance(600.0)
    assert (len(world.writes("Workload")), contained(world)) == (writes, [])
