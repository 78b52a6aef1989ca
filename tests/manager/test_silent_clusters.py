"""HD-572: a worker that is connected and answers no offer is waited for once, not by everybody."""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.state.open_offers import SILENT_PAUSE_SECONDS
from gatelift_wire.values.messages import Offer
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world


def asked(world: World, name: str) -> list[str]:
    """Submit a pod and return who is asked for it at once, in order."""
    before = len(world.messages(Offer))
    world.api.apply(a_pod(name).document())
    world.settle()
    return [cluster for cluster, _ in world.messages(Offer)[before:]]


def won(world: World, name: str) -> str:
    (found,) = (one for one in world.all("Workload") if one["metadata"]["ownerReferences"][0]["name"] == name)
    return str(found.get("status", {}).get("clusterName", ""))


def silent_a() -> World:
    """Return a world in which `a`, the first of all, was waited for in vain."""
    world = a_world(a_setting(cpu=1000))
    world.agents["a"].silent = True
    asked(world, "first")
    assert won(world, "first") == ""
    world.advance(0.31)
    assert won(world, "first") == "b"
    return world


def test_hd_572_who_was_waited_for_in_vain_keeps_nobody_else_waiting() -> None:
    """Each pod that might have gone there waited 300 ms: it had the fewest placements, so it was asked first."""
    world = silent_a()
    for number in range(5):
        asked(world, f"pod-{number}")
        assert won(world, f"pod-{number}") == "b", "at once"


def test_hd_572_it_is_asked_beside_others_now_and_then_and_nobody_waits_for_its_answer() -> None:
    world = silent_a()
    asked(world, "next")
    world.advance(SILENT_PAUSE_SECONDS)
    assert asked(world, "later") == ["b", "a"]
    assert won(world, "later") == "b"
    world.machine.core.open_offers.session_ended("a")
    assert asked(world, "soon") == ["b"], "it is silent in a session of its own as well"


def test_hd_572_it_is_the_first_again_once_it_answers() -> None:
    world = silent_a()
    asked(world, "next")
    world.agents["a"].silent = False
    world.advance(SILENT_PAUSE_SECONDS)
    asked(world, "heard")
    assert asked(world, "last") == ["a"], "it has fewer, and answers"


def test_hd_572_nor_is_it_waited_for_where_the_other_one_seems_to_be_full() -> None:
    world = silent_a()
    full = {"cpu": ResourceRoom(nominal=10_000, used=0, largest_fit=0)}
    world.links.views["b"] = replace(world.links.views["b"], capacity=full)
    assert asked(world, "next") == ["a", "b"]
    assert won(world, "next") == "b", "at once"
