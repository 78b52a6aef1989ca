"""HD-572: a worker that is connected and answers no offer, or none in useful time, is not waited for by everybody."""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.state.open_offers import SILENT_PAUSE_SECONDS
from gatelift_wire.values.messages import Bid, BidKind, Offer
from gatelift_wire.values.refusals import Refusal
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


def answers(world: World, name: str, kind: BidKind, which: int = -1) -> None:
    """Let an agent answer one of its offers, by default the last."""
    offers = [message for cluster, message in world.messages(Offer) if cluster == name]
    refusal = Refusal.QUOTA_BUSY if kind is BidKind.REFUSED else None
    world.agents[name].say(Bid(key=offers[which].key, kind=kind, hold_seconds=30.0, refusal=refusal))
    world.settle()


def test_hd_643_who_refuses_just_before_the_limit_keeps_nobody_else_waiting() -> None:
    """Each pod that might have gone there waited 290 ms: whoever answers in time was no silent one."""
    world = a_world(a_setting(cpu=1000))
    world.agents["a"].silent = True
    asked(world, "first")
    world.advance(0.29)
    assert won(world, "first") == ""
    answers(world, "a", BidKind.REFUSED)
    assert won(world, "first") == "b"
    for number in range(5):
        asked(world, f"pod-{number}")
        assert won(world, f"pod-{number}") == "b", "at once"


def test_hd_643_it_is_one_of_all_again_once_it_holds_room_or_refuses_in_time() -> None:
    for kind, seconds in ((BidKind.REFUSED, 0.09), (BidKind.HELD, 0.25)):
        world = a_world(a_setting(cpu=1000))
        world.agents["a"].silent = True
        asked(world, "first")
        world.advance(0.29)
        answers(world, "a", BidKind.REFUSED)
        world.advance(SILENT_PAUSE_SECONDS)
        assert "a" in asked(world, "beside")
        world.advance(seconds)
        answers(world, "a", kind)
        assert not world.machine.core.open_offers.is_silent("a"), kind


def test_hd_645_who_answers_others_only_is_not_waited_for_as_one_that_is_busy() -> None:
    """It holds room for every second pod, so it is asked alone, and seemed to be at work for the others: 20 s each."""
    world = a_world(a_setting(cpu=1000))
    for name, used in (("a", 0), ("b", 60_000)):
        room = {"cpu": ResourceRoom(nominal=80_000, used=used, largest_fit=20_000)}
        world.links.views[name] = replace(world.links.views[name], capacity=room)
    asked(world, "trusted")
    world.agents["a"].silent = True
    assert asked(world, "passed-over") == ["a"]
    world.advance(0.05)
    assert asked(world, "held") == ["a"]
    answers(world, "a", BidKind.HELD)
    world.advance(0.06)
    assert (won(world, "held"), won(world, "passed-over")) == ("a", "b")
