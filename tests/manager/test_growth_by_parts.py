"""Growth by parts (KEP-77, SL-36): a user takes any part of a growth at once, and the rest waits as the next slice."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.state.readiness_values import RetentionSettings
from gatelift_kinds.shared import markers
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_wire.values.messages import Bid, BidKind, Offer, Stop
from gatelift_wire.values.refusals import Refusal
from support.manager.slice_world import (
    QUEUE,
    THE_JOB,
    all_slices,
    an_answering_chain,
    resize,
    resizes,
    seen,
    used,
)
from support.manager.world import World

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


def a_chain_by_parts(strategy: str = "partial", **of: Any) -> World:
    """Return a chain of three pods whose user takes any part of a growth."""
    world = an_answering_chain(**of)
    world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update({markers.SCALE_UP_STRATEGY: strategy}))
    world.advance(1.0)
    return world


def quota(world: World, cpu: int) -> None:
    """Let an administrator change the quota of the queue."""

    def change(queue: Any) -> None:
        queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = str(cpu)

    world.api.edit(QUEUE, change)
    world.advance(10.0)


@HOME
def test_sl_36_a_growth_takes_what_there_is_and_the_rest_waits(clusters: Any) -> None:
    world = a_chain_by_parts(cpu=7, clusters=clusters)
    resize(world, 10)
    world.advance(10.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 7, 7, ""), (3, 10, None, "")]
    assert (used(world), resizes(world), len(world.runs)) == (7, [(2, 7)], 1)
    quota(world, 9)
    assert [one for one in seen(world) if not one[3]] == [(3, 9, 9, ""), (4, 10, None, "")]
    quota(world, 30)
    assert [one for one in seen(world) if not one[3]] == [(4, 10, 10, "")]
    assert (used(world), resizes(world), len(world.messages(Stop))) == (10, [(2, 7), (3, 9), (4, 10)], 0)


def test_sl_36_a_record_never_asks_for_more_than_it_is_charged() -> None:
    """SL-36, SL-41: at each step the slice comes down first, and is written then."""
    world = a_chain_by_parts(cpu=7)
    resize(world, 10)
    while world.step():
        for number, asked, charged, _ in seen(world):
            assert charged is None or (number, asked) == (number, charged)
    assert [one.pod_sets[0].count for _, one in world.messages(Offer) if one.size] == [4]


def test_sl_36_what_has_come_down_is_left_alone_while_its_cluster_is_asked_again() -> None:
    """Its admission fails, and its cluster has begun anew: that is asked for the part, and not for the whole."""
    world = a_chain_by_parts(cpu=7)
    met: list[int] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        if isinstance(command, Patch) and command.ref.resource.kind == "Workload":
            met.append(1)
        return WriteError.NOT_DONE if len(met) == 2 else None

    world.fail = fail
    resize(world, 10)
    world.advance(0.1)
    world.agents["a"].silent = True
    world.connect("a")
    world.advance(0.5)
    world.api.edit(THE_JOB, lambda job: job["metadata"]["labels"].update({"looked": "at"}))
    world.advance(0.1)
    assert seen(world) == [(1, 3, 3, ""), (2, 7, None, "")]
    world.agents["a"].silent = False
    world.advance(60.0)
    assert [one[1:] for one in seen(world) if not one[3]] == [(7, 7, ""), (10, None, "")]


@pytest.mark.parametrize("strategy", ["atomic", "what nobody knows"])
def test_sl_36_all_of_it_or_nothing_without_that_policy(strategy: str) -> None:
    world = a_chain_by_parts(strategy, cpu=7)
    resize(world, 10)
    world.advance(60.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 10, None, "")], 3)


def test_sl_36_who_takes_to_it_while_his_growth_waits_gets_his_part() -> None:
    world = a_chain_by_parts("atomic", cpu=7)
    resize(world, 10)
    world.advance(5.0)
    world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update({markers.SCALE_UP_STRATEGY: "partial"}))
    world.advance(10.0)
    assert [one for one in seen(world) if not one[3]] == [(2, 7, 7, ""), (3, 10, None, "")]


def test_sl_36_what_its_cluster_has_no_room_for_is_written_nowhere() -> None:
    """The slice comes down once the room is held: who is refused writes nothing."""
    world = a_chain_by_parts(cpu=7)
    world.agents["a"].grows = lambda offer: Bid(
        key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, text="no room", size=offer.size
    )
    resize(world, 10)
    world.advance(5.0)
    begun = len(world.api.writes)
    world.advance(120.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 10, None, "")], 3)
    assert not [ref for _, ref, body in world.api.writes[begun:] if "spec" in body and ref.resource.kind == "Workload"]
    world.agents["a"].grows = None
    world.advance(60.0)
    assert [one for one in seen(world) if not one[3]] == [(2, 7, 7, ""), (3, 10, None, "")]


@pytest.mark.parametrize("error", [WriteError.NOT_DONE, WriteError.CONFLICT, WriteError.UNKNOWN])
@pytest.mark.parametrize("lands", [1, 2])
def test_sl_36_a_write_of_it_that_fails_comes_to_the_same(error: WriteError, lands: int) -> None:
    """1: the one by which it comes down, 2: that of its admission."""
    world = a_chain_by_parts(cpu=7)
    met: list[int] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        if not isinstance(command, Patch) or command.ref.resource.kind != "Workload":
            return None
        met.append(1)
        return error if len(met) == lands else None

    world.fail = fail
    resize(world, 10)
    world.advance(90.0)
    assert [one for one in seen(world) if not one[3]] == [(2, 7, 7, ""), (3, 10, None, "")], "edited by nobody between"
    assert (used(world), len(world.runs), len(world.messages(Stop))) == (7, 1, 0)


@pytest.mark.parametrize("after", range(1, 10))
def test_sl_36_a_new_leader_at_each_step_comes_to_the_same(after: int) -> None:
    world = a_chain_by_parts(cpu=7)
    resize(world, 10)
    for _ in range(after):
        world.step()
    world.restart()
    world.advance(60.0)
    assert [one[1:] for one in seen(world) if not one[3]] == [(7, 7, ""), (10, None, "")]
    assert (used(world), len(world.runs), len(world.messages(Stop))) == (7, 1, 0)


def test_sl_36_forty_parts_of_one_wish_each_have_a_name() -> None:
    """However many past slices are kept."""
    world = a_chain_by_parts(cpu=4, retention=RetentionSettings(slice_history=100))
    resize(world, 60)
    for cpu in range(5, 45):
        quota(world, cpu)
    opened = [one for one in seen(world) if not one[3]]
    assert [one[1:3] for one in opened] == [(44, 44), (60, None)]
    assert (used(world), len(world.runs), len(all_slices(world))) == (44, 1, 43)


def test_sl_36_its_user_wants_less_than_the_part() -> None:
    world = a_chain_by_parts(cpu=7)
    resize(world, 10)
    world.advance(10.0)
    resize(world, 5)
    world.advance(10.0)
    assert [one for one in seen(world) if not one[3]] == [(4, 5, 5, "")]
    assert (used(world), len(world.messages(Stop))) == (5, 0)
