"""How a lead begins: with lists that begin after the Lease was taken; what no cache has is read before it is gone."""

from __future__ import annotations

import pytest

from gatelift.core.api import events
from gatelift.core.api.commands import ListAnew, Read, ReadAll
from gatelift.core.api.events import LeadershipGained
from gatelift.core.works.beginning import LIST_SECONDS_MAX, Beginning, watched
from gatelift_kinds.registry import SERVED
from gatelift_kube.deciding.writes import ObjectGone, Synced
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Stop
from support.manager.builders import a_pod, a_setting
from support.manager.world import THE_POD, World, a_running_pod, a_world

WAITING = 300
"""Workloads that wait, with their pods there."""


def reads(world: World) -> list[ObjectRef]:
    return [command.ref for command in world.history if isinstance(command, Read)]


def led_anew(world: World) -> None:
    """Let another manager lead; what was done so far is not looked at any more."""
    world.history.clear()
    world.restart()
    world.settle()


def test_lists_from_before_the_lease_count_no_more() -> None:
    gained = LeadershipGained(term=3)
    every = watched(SERVED)
    beginning = Beginning(every)
    assert [beginning.listed(kind) for kind in every] == [None] * len(every), "nobody has taken a Lease"
    assert (beginning.complete, beginning.deadline) == (True, None)
    beginning.gained(gained, 100.0)
    assert (beginning.complete, beginning.deadline) == (False, 100.0 + LIST_SECONDS_MAX)
    assert [beginning.listed(kind) for kind in every] == [None] * (len(every) - 1) + [gained]
    assert (beginning.complete, beginning.deadline) == (True, None)


def test_who_takes_the_lease_leads_when_each_kind_has_been_listed_since() -> None:
    world = a_world(a_setting())
    world.unlisted = {WORKLOAD}
    world.restart()
    world.api.apply(a_pod().document())
    world.advance(60.0)
    assert not world.machine.core.leads(world.now)
    assert not world.all("Workload")
    assert sum(isinstance(command, ListAnew) for command in world.history) == 2, "once for each life"
    world.put(Synced(WORKLOAD))
    world.settle()
    assert world.machine.core.leads(world.now)
    assert world.all("Workload")


def test_who_cannot_list_gives_the_lease_up_and_says_which_kinds() -> None:
    world = a_world(a_setting())
    world.unlisted = {WORKLOAD, POD}
    world.restart()
    world.advance(LIST_SECONDS_MAX - 1.0)
    assert not world.stepped_down
    world.advance(2.0)
    assert world.stepped_down == [
        f"not listed within {LIST_SECONDS_MAX:g} s after the Lease was taken: pods, workloads"
    ]


def test_hd_98_what_no_cache_has_is_read_before_its_run_is_stopped() -> None:
    """HD-98: a leader whose watch stands still, or a Workload that somebody else made: the cache lacks the pod."""
    world, _ = a_running_pod()
    world.hidden = {THE_POD}
    led_anew(world)
    world.advance(30.0)
    assert reads(world) == [THE_POD], "one at a time, and its answer is known from then on"
    assert not world.messages(Stop)
    assert world.running


def test_hd_98_what_a_read_does_not_find_is_gone() -> None:
    world, _ = a_running_pod()
    world.api.objects.pop(THE_POD)
    led_anew(world)
    world.advance(30.0)
    assert reads(world) == [THE_POD]
    assert world.messages(Stop)
    assert not world.running


@pytest.mark.parametrize("asked", [True, False], ids=["refused", "no turn"])
def test_hd_98_a_read_that_fails_is_asked_again_and_nothing_is_concluded_meanwhile(*, asked: bool) -> None:
    world, _ = a_running_pod()
    world.api.objects.pop(THE_POD)
    world.read_fails = lambda read: events.ReadFailed(
        read_id=read.read_id, ref=read.ref, message="as told", asked=asked
    )
    led_anew(world)
    world.advance(30.0)
    assert len(reads(world)) > 1
    assert not world.messages(Stop)
    world.read_fails = None
    world.advance(60.0)
    assert world.messages(Stop)


def test_hd_98_one_that_is_none_of_ours_any_more_is_read_once_and_its_run_stopped() -> None:
    world, _ = a_running_pod()
    world.hidden = {THE_POD}  # the watch asks for what carries the label
    world.api.edit(THE_POD, lambda document: document["metadata"].update(labels={}))
    led_anew(world)
    world.advance(30.0)
    assert reads(world) == [THE_POD]
    assert world.messages(Stop)


@pytest.mark.parametrize("hidden", [True, False])
def test_hd_98_another_one_of_its_name_is_not_the_object_that_is_gone(*, hidden: bool) -> None:
    """HD-98: the cache may have the one before it as well, so that it has one proves nothing either."""
    world, _ = a_running_pod()
    world.api.objects.pop(THE_POD)
    world.api.apply(a_pod().document())
    world.hidden = {THE_POD} if hidden else set()
    led_anew(world)
    world.advance(30.0)
    assert reads(world) == [THE_POD]
    assert world.messages(Stop)


def test_hd_98_nothing_is_kept_of_a_search_whose_workload_goes() -> None:
    world, _ = a_running_pod()
    world.hidden = {THE_POD}
    world.read_fails = lambda read: events.ReadFailed(read_id=read.read_id, ref=read.ref, message="as told", asked=True)
    led_anew(world)
    core = world.machine.core
    assert list(core.sought._by_subject) == [THE_POD]
    workload = world.find("Workload")["metadata"]
    world.give(ObjectGone(WORKLOAD, core.knowledge.workloads[ObjectKey(workload["namespace"], workload["name"])]))
    world.advance(120.0)
    assert not core.sought._by_subject
    assert THE_POD not in core.inflight.trouble


def test_hd_99_a_change_of_leader_reads_no_object_whose_owner_is_there() -> None:
    """HD-99: lists cost a page for hundreds of objects; nothing is read one by one."""
    world = a_world(a_setting(cpu=0))
    for number in range(WAITING):
        world.api.apply(a_pod(f"pod-{number}").document())
    world.settle()
    assert len(world.all("Workload")) == WAITING
    led_anew(world)
    world.advance(30.0)
    assert world.machine.core.rebuilt
    assert not [command for command in world.history if isinstance(command, Read | ReadAll)]
