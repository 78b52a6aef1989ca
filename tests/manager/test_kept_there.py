"""IS-46: that a user's object is gone is said where it has finished, so that nothing of it is kept there."""

from __future__ import annotations

import pytest

from gatelift.core.api.agenda import Key, Look
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Finished, Forget, Stop
from support.manager.agents import Held
from support.manager.builders import a_pod, a_setting
from support.manager.world import SUCCEEDED, THE_POD, World, a_running_pod, a_world, workload_ref


def finished_pod(*, succeeded: bool = False) -> tuple[World, PlacementKey]:
    """Return a world in which THE_POD has ended on cluster a, which has been told to forget it."""
    world, agent = a_running_pod()
    key = agent.commits[-1]
    world.stopped(key, "a")
    del agent.placements[key]
    agent.say(Finished(key=key, succeeded=succeeded, message="it is over"))
    world.advance(120.0)
    return world, key


def forgets(world: World) -> list[tuple[str, PlacementKey, bool]]:
    return [(cluster, forget.key, forget.gone) for cluster, forget in world.messages(Forget)]


def user_deletes(world: World) -> None:
    world.api.delete(THE_POD)
    world.settle()
    world.advance(5.0)


@pytest.mark.parametrize("succeeded", [True, False])
def test_is_46_while_the_users_object_is_there_its_worker_is_told_no_more_than_to_forget(*, succeeded: bool) -> None:
    world, key = finished_pod(succeeded=succeeded)
    assert forgets(world) == [("a", key, False)]


@pytest.mark.parametrize("succeeded", [True, False])
def test_is_46_that_its_user_deletes_it_is_said_once(*, succeeded: bool) -> None:
    world, key = finished_pod(succeeded=succeeded)
    user_deletes(world)
    assert forgets(world) == [("a", key, False), ("a", key, True)]
    assert world.all("Workload") == []


def test_is_46_that_the_workload_alone_is_deleted_is_said_as_well() -> None:
    world, key = finished_pod()
    world.api.delete(workload_ref(world))
    world.settle()
    assert forgets(world)[-1] == ("a", key, True)


def test_is_46_the_next_leader_says_it_by_the_record() -> None:
    world, key = finished_pod()
    world.restart()
    for name in ("a", "b"):
        world.connect(name)
    world.advance(3.0)
    before = len(forgets(world))
    user_deletes(world)
    assert forgets(world)[before:] == [("a", key, True)]


@pytest.mark.parametrize("resumed", [True, False])
def test_is_46_nobody_waits_for_a_cluster_that_is_away_and_it_is_told_when_it_is_back(*, resumed: bool) -> None:
    world, key = finished_pod()
    world.cut("a")
    user_deletes(world)
    assert world.all("Workload") == []
    assert forgets(world) == [("a", key, False)]
    world.connect("a", resumed=resumed)
    world.advance(5.0)
    assert forgets(world) == [("a", key, False), ("a", key, True)]


def test_is_46_what_a_cluster_lists_as_running_when_it_is_back_is_stopped_and_not_forgotten() -> None:
    world, key = finished_pod()
    world.cut("a")
    user_deletes(world)
    world.agents["a"].placements[key] = Held(state="Running", lifted=True)
    world.agents["a"].silent = True
    world.connect("a")
    world.agents["a"].silent = True
    world.advance(5.0)
    assert [(cluster, stop.key) for cluster, stop in world.messages(Stop)] == [("a", key)]
    assert forgets(world) == [("a", key, False)]


def test_is_46_while_all_dispatch_is_halted_nothing_is_said_by_a_record_that_may_be_too_old() -> None:
    world, key = finished_pod()
    world.machine.core.caution.halted = "the record may be old"
    user_deletes(world)
    assert forgets(world) == [("a", key, False)]
    world.machine.core.caution.halted = ""
    world.machine.core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", "a")))
    world.advance(5.0)
    assert forgets(world) == [("a", key, False), ("a", key, True)]


def test_is_46_of_what_is_deleted_before_its_end_is_known_nothing_is_kept() -> None:
    world, agent = a_running_pod()
    key = agent.commits[-1]
    agent.silent = True
    world.api.delete(THE_POD)
    world.settle()
    assert [stop.key for _, stop in world.messages(Stop)] == [key]
    world.stopped(key, "a")
    del agent.placements[key]
    agent.say(Finished(key=key, succeeded=False))
    world.advance(5.0)
    assert [each for each in forgets(world) if not each[2]] == []
    assert ("a", key, True) in forgets(world)


def test_is_46_of_what_ended_at_home_its_agent_is_told_no_more_than_to_forget() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    world.api.apply(a_pod().document())
    world.settle()
    key = world.agents["local"].commits[-1]
    world.api.edit(THE_POD, lambda pod: pod.update(status=SUCCEEDED))
    world.settle()
    world.agents["local"].say(Finished(key=key, succeeded=True))
    world.advance(5.0)
    user_deletes(world)
    assert forgets(world) == [("local", key, False)]


def test_is_46_a_report_of_what_has_no_workload_any_more_is_answered_with_both() -> None:
    world, key = finished_pod()
    user_deletes(world)
    world.agents["a"].say(Finished(key=key, succeeded=False))
    world.advance(5.0)
    assert forgets(world)[-1] == ("a", key, True)
