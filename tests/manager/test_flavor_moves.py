"""A chain goes to another flavor where its user wants that, and its own can never be large enough (KEP-77, SL-36)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared.resize_wishes import RESIZE_FLAVOR
from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Stop
from support.manager.builders import NAMESPACE, Doc, a_setting
from support.manager.slice_world import (
    QUEUE,
    THE_JOB,
    all_slices,
    an_answering_chain,
    an_elastic_job,
    resize,
    seen,
)
from support.manager.world import World


def a_chain_of_two_flavors(*, wants: str = "migrate", large: int = 8, **of: Any) -> World:
    """Return a chain of three pods in the first of two flavors, which has room for four; its user may want to go on."""
    world = an_answering_chain(**of)

    def change(queue: Doc) -> None:
        (group,) = queue["spec"]["resourceGroups"]
        small = group["flavors"][0]
        small["resources"][0]["nominalQuota"] = "4"
        resources = [{"name": "cpu", "nominalQuota": str(large)}]
        group["flavors"] = [small, {"name": "large", "resources": resources}]

    world.api.apply(next(one for one in a_setting(flavors={"large": 8}) if one["kind"] == "ResourceFlavor"))
    world.api.edit(QUEUE, change)
    if wants:
        world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update({RESIZE_FLAVOR: wants}))
    world.advance(5.0)
    return world


def flavors(document: Doc) -> list[str]:
    """Return the flavors of a slice that has quota."""
    admission = document.get("status", {}).get("admission")
    return [one["flavors"]["cpu"] for one in admission["podSetAssignments"]] if admission else []


def test_sl_36_a_chain_is_queued_whole_for_a_flavor_that_is_large_enough() -> None:
    world = a_chain_of_two_flavors()
    resize(world, 6)
    world.advance(60.0)
    opened = [one for one in all_slices(world) if not world.condition(one, "Finished")]
    assert [flavors(one) for one in opened] == [["large"]]
    assert [one[1:] for one in seen(world) if not one[3]] == [(6, 6, "")]
    assert [epoch for _, epoch, _ in world.runs] == [1, 2]
    assert "ResizeMoved" in [one.reason for one in world.emitted]


@pytest.mark.parametrize("wants", ["", "spot"])
def test_sl_36_without_that_wish_it_runs_on_where_it_is(wants: str) -> None:
    world = a_chain_of_two_flavors(wants=wants)
    resize(world, 6)
    world.advance(120.0)
    assert (seen(world), world.messages(Stop)) == ([(1, 3, 3, ""), (2, 6, None, "")], [])


def test_sl_36_nothing_is_stopped_for_what_fits_nowhere_before_it_does() -> None:
    world = a_chain_of_two_flavors(large=5)
    resize(world, 6)
    world.advance(120.0)
    assert (seen(world), world.messages(Stop)) == ([(1, 3, 3, ""), (2, 6, None, "")], [])

    def change(queue: Doc) -> None:
        queue["spec"]["resourceGroups"][0]["flavors"][1]["resources"][0]["nominalQuota"] = "6"

    world.api.edit(QUEUE, change)
    world.advance(60.0)
    assert [one[1:] for one in seen(world) if not one[3]] == [(6, 6, "")]


def test_sl_36_a_flavor_that_is_full_now_and_large_enough_is_waited_for() -> None:
    """Sticky: only what can never be goes elsewhere."""
    world = a_chain_of_two_flavors()
    world.api.apply(an_elastic_job("other", parallelism=1))
    world.advance(5.0)
    resize(world, 4)
    world.advance(60.0)
    assert (seen(world)[-1][:3], world.messages(Stop)) == ((2, 4, None), [])
    world.api.delete(ObjectRef(JOB, ObjectKey(NAMESPACE, "other")))
    world.advance(60.0)
    assert ((2, 4, 4, "") in seen(world), len(world.runs)) == (True, 2)


def test_sl_36_nothing_moves_while_its_cluster_is_away() -> None:
    world = a_chain_of_two_flavors()
    world.cut("a", lost=True)
    resize(world, 6)
    world.advance(120.0)
    assert (seen(world), world.messages(Stop)) == ([(1, 3, 3, ""), (2, 6, None, "")], [])
