"""A group at home that is evicted, or loses members, says what it waits for, and gets quota once it is whole again."""

from __future__ import annotations

import pytest

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_wire.values.messages import Commit, Stop, Stopped
from support.manager.group_world import (
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

WAITING = "WaitingForReplacementPods"
THREE = [a_member(name, at=at) for at, name in enumerate("abc")]
READY = ReadinessSettings(timeout=60.0, backoff_base=30.0)


def activate(world: World, *, active: bool) -> None:
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=active))
    world.advance(2.0)


def a_group_that_is_stopped(**settings: object) -> World:
    """Return a world with a group that runs and is told to stop; its agent has not said that it has."""
    world = a_world_at_home(*THREE, **settings)
    lift(world, *"abc")
    world.agents["local"].silent = True
    activate(world, active=False)
    assert [message.reason for _, message in world.messages(Stop)] == ["Deactivated"]
    return world


def has_stopped(world: World, *ended: str) -> None:
    """Have these pods end, and their agent say that nothing of the placement is left."""
    agent = world.agents["local"]
    for name in ended:
        over(world, name, "Failed", seconds=0.0)
    agent.silent = False
    key = agent.commits[-1]
    world.stopped(key, "local")
    agent.say(Stopped(key=key))
    world.advance(5.0)


def commits(world: World) -> list[set[str]]:
    return [{one.name for one in message.objects} for _, message in world.messages(Commit)]


def test_pg_16_a_group_that_stops_waits_for_as_many_again_by_the_write_that_gives_its_quota_back() -> None:
    """PC-049."""
    world = a_group_that_is_stopped()
    for name in "abc":
        leave(world, name)
    before = len(world.writes("Workload"))
    assert says(world, WAITING) == ("", "")
    has_stopped(world, *"abc")
    assert says(world, WAITING) == ("True", "Deactivated")
    assert (says(world, "QuotaReserved")[0], names(world)) == ("False", ["a", "b", "c"])
    assert len(world.writes("Workload")) == before + 2, "the release, and the next epoch"
    assert contained(world) == []


def test_pg_16_who_comes_while_others_stop_is_not_too_many_whichever_of_them_leaves_first() -> None:
    world = a_group_that_is_stopped()
    leave(world, "a")
    join(world, *(a_member(name, at=20 + at) for at, name in enumerate("def")))
    assert names(world) == ["a", "b", "c", "d", "e", "f"]
    leave(world, "b")
    leave(world, "c")
    has_stopped(world, *"abc")
    activate(world, active=True)
    world.advance(5.0)
    assert commits(world)[-1] == {"d", "e", "f"}
    assert (says(world, WAITING), contained(world)) == (("", ""), [])


def test_pg_16_a_new_leader_drops_nobody_either_while_what_was_evicted_stops() -> None:
    world = a_group_that_is_stopped()
    world.restart()
    join(world, *(a_member(name, at=20 + at) for at, name in enumerate("def")))
    assert names(world) == ["a", "b", "c", "d", "e", "f"]


def test_a_member_that_never_ran_stays_at_its_gate_and_runs_in_the_next_epoch() -> None:
    world = a_world_at_home(*THREE)
    lift(world, "a")
    world.agents["local"].silent = True
    activate(world, active=False)
    leave(world, "a")
    has_stopped(world, "a")
    assert says(world, WAITING) == ("True", "Deactivated")
    activate(world, active=True)
    assert len(commits(world)) == 1
    join(world, a_member("d", at=30), seconds=5.0)
    assert commits(world)[-1] == {"b", "c", "d"}
    assert says(world, WAITING) == ("False", "PodsReady")


def test_pg_19_a_group_whose_pods_are_not_ready_in_time_backs_off_and_is_not_admitted_before_it_is_replaced() -> None:
    """PI-033."""
    world = a_world_at_home(*THREE, readiness=READY)
    lift(world, *"abc")
    world.agents["local"].silent = True
    world.advance(61.0)
    assert [message.reason for _, message in world.messages(Stop)] == ["PodsReadyTimeout"]
    for name in "abc":
        leave(world, name, "WorkloadEvictedDueToPodsReadyTimeout")
    has_stopped(world, *"abc")
    assert says(world, WAITING) == ("True", "PodsReadyTimeout")
    world.advance(60.0)
    assert says(world, "Requeued") == ("True", "BackoffFinished")
    join(world, a_member("d", at=30), a_member("e", at=31), seconds=30.0)
    assert (len(commits(world)), says(world, WAITING)[0]) == (1, "True")
    join(world, a_member("f", at=32), seconds=10.0)
    assert commits(world)[-1] == {"d", "e", "f"}
    assert says(world, WAITING) == ("False", "PodsReady")


def test_pg_19_replaced_before_its_backoff_is_over_it_is_not_admitted_before_that() -> None:
    world = a_world_at_home(*THREE, readiness=READY)
    lift(world, *"abc")
    world.agents["local"].silent = True
    world.advance(61.0)
    for name in "abc":
        leave(world, name, "WorkloadEvictedDueToPodsReadyTimeout")
    has_stopped(world, *"abc")
    join(world, *(a_member(name, at=30 + at) for at, name in enumerate("def")), seconds=5.0)
    assert (len(commits(world)), says(world, "Requeued")[0]) == (1, "False")
    world.advance(40.0)
    assert commits(world)[-1] == {"d", "e", "f"}


@pytest.mark.parametrize("how", ["it failed", "its user deletes it, and it has stopped"])
def test_a_group_that_runs_says_that_a_member_is_to_be_replaced(how: str) -> None:
    world = a_world_at_home(*THREE)
    lift(world, *"abc")
    if how != "it failed":
        world.api.delete(pod_ref("b"))
    over(world, "b", "Failed")
    assert says(world, WAITING) == ("True", "PodsFailed")
    said = world.condition(world.find("Workload"), WAITING)["message"]
    assert said == "1 pod failed or gone: make as many again under the group's name"
    join(world, a_member("d", at=20), seconds=5.0)
    assert says(world, WAITING) == ("False", "PodsReady")
    assert says(world, "Admitted")[0] == "True"
