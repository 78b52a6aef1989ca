"""A cluster lists a later size than its record has: what is charged of it (HD-34, SL-56)."""

from __future__ import annotations

from typing import Any

import pytest

from support.manager.slice_world import (
    a_slice_world,
    all_slices,
    an_answering_chain,
    an_elastic_job,
    resize,
    the_attempt,
    used,
)

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


@HOME
def test_hd_670_a_later_size_is_charged_of_a_record_that_asks_for_no_pods(clusters: Any) -> None:
    """HD-670: of what was lowered to 0 nothing tells in its reservation what one pod has; it was charged nothing."""
    world = an_answering_chain(clusters=clusters)
    resize(world, 0)
    world.advance(10.0)
    assert used(world) == 0
    cluster = the_attempt(world).cluster
    agent = world.agents[cluster]
    (held,) = agent.placements.values()
    held.size, held.counts = 7, (("main", 4),)
    world.connect(cluster)
    world.advance(10.0)
    assert used(world) == 4
    world.restart()
    world.connect(cluster)
    world.advance(10.0)
    assert used(world) == 4


PODS_MAX = 2**31 - 1


def test_sl_56_whatever_a_cluster_lists_takes_nothing_off_what_others_are_charged() -> None:
    """SL-56: as many pods as there can be, of a request that is large by itself, are more than an amount can say."""
    huge = 10_000_000
    world = a_slice_world(cpu=10 * huge)
    for name in ("work", "other"):
        job = an_elastic_job(name, parallelism=2)
        job["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(huge)
        world.api.apply(job)
    world.advance(5.0)
    assert used(world) == 4 * huge
    for agent in world.agents.values():
        for key, held in agent.placements.items():
            if key.uid == all_slices(world)[0]["metadata"]["uid"]:
                held.size, held.counts = 7, (("main", PODS_MAX),)
        world.connect(agent.name)
    world.advance(10.0)
    assert used(world) > 100 * huge, "as much as is said"
    assert [one for one in world.emitted if one.reason == "SizeAhead"]
    for agent in world.agents.values():
        for held in agent.placements.values():
            held.size, held.counts = 1, (("main", 2),)
        world.connect(agent.name)
    world.advance(10.0)
    assert used(world) == 4 * huge, "and no less than before once it says otherwise"
