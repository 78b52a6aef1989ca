"""SL-60, HD-684: a growth takes one of its cluster's credits, from its offer until its size is answered."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Offer
from gatelift_wire.values.refusals import Refusal
from manager.test_woken_by_clusters import says
from support.manager.builders import NAMESPACE, a_job
from support.manager.slice_world import (
    a_slice_world,
    all_slices,
    an_answering_chain,
    an_elastic_job,
    charged,
    finished,
    resize,
    resizes,
    seen,
    used,
    waits_for,
)
from support.manager.world import World

CROWD = 6
GRANTED = 2


def a_crowd(**of: Any) -> World:
    """Return a world with elastic Jobs of one pod at one cluster, which then grants few credits and answers no size."""
    world = a_slice_world(cpu=100, clusters=("a",), **of)
    for number in range(CROWD):
        world.api.apply(an_elastic_job(f"j{number}", parallelism=1))
    world.advance(10.0)
    for key in world.agents["a"].placements:
        world.agents["a"].answer_size(key)
    world.settle()
    says(world, credits=GRANTED)
    return world


def all_grow(world: World) -> None:
    for number in range(CROWD):
        resize(world, 2, ObjectRef(JOB, ObjectKey(NAMESPACE, f"j{number}")))
    world.advance(5.0)


def growths(world: World) -> int:
    """Return how many growths were offered."""
    return sum(1 for _, one in world.messages(Offer) if one.size)


def test_hd_684_a_growth_waits_for_a_cluster_that_grants_nothing_and_is_woken_by_credit() -> None:
    world = an_answering_chain()
    says(world, credits=0)
    resize(world, 5)
    world.advance(120.0)
    assert (growths(world), used(world)) == (0, 3)
    assert "takes no more placements at the moment" in waits_for(world)
    says(world, credits=1)
    world.advance(30.0)
    assert (seen(world)[-1], used(world)) == ((2, 5, 5, ""), 5)


def test_hd_684_no_more_growths_are_under_way_than_are_granted_until_their_sizes_are_answered() -> None:
    """SL-60: and an ordinary Job beside them has its turn by the same credit."""
    world = a_crowd()
    all_grow(world)
    assert (growths(world), len(resizes(world))) == (GRANTED, GRANTED)
    world.api.apply(a_job("plain"))
    for step in range(1, CROWD + 1):
        for key, held in list(world.agents["a"].placements.items()):
            if held.size > 1:
                world.agents["a"].answer_size(key)
        world.advance(5.0)
        assert growths(world) <= GRANTED * (step + 1)
    open_slices = [charged(one) for one in all_slices(world) if not finished(world, one)]
    assert sorted(each or 0 for each in open_slices)[-CROWD:] == [2] * CROWD
    assert "plain" in {offer.name for _, offer in world.messages(Offer)}


def test_hd_684_a_growth_that_is_refused_takes_no_credit_while_it_waits_to_be_said_again() -> None:
    world = a_crowd()
    world.agents["a"].refuse_size = Refusal.QUOTA_BUSY
    all_grow(world)
    assert growths(world) == CROWD
