"""HD-646: a worker that holds room for each offer and refuses what is placed there comes behind those that keep it."""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.state.dispatch_values import IN_VAIN_MAX, IN_VAIN_REST_SECONDS, IN_VAIN_SECONDS, DispatchFailures
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Bid, BidKind, Commit
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.world import World, a_world


def submitted(world: World, name: str) -> list[str]:
    """Submit a pod; return to whom it was committed, in order, within two seconds."""
    before = len(world.messages(Commit))
    world.api.apply(a_pod(name).document())
    world.settle()
    world.advance(2.0)
    return [cluster for cluster, _ in world.messages(Commit)[before:]]


def a_refuses() -> World:
    """Return a world in which `a` says to be emptier, bids better, and has refused as many commits as it takes."""
    world = a_world(a_setting(cpu=1000))
    for name, used in (("a", 0), ("b", 60_000)):
        room = {"cpu": ResourceRoom(nominal=80_000, used=used, largest_fit=20_000)}
        world.links.views[name] = replace(world.links.views[name], capacity=room)
    world.agents["a"].refuse_commit = Refusal.DENIED
    world.agents["b"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=30.0, cost=1)
    for number in range(IN_VAIN_MAX):
        assert submitted(world, f"tried-{number}")[0] == "a"
    return world


def test_hd_646_who_refuses_each_commit_gets_no_more_of_them_while_others_keep_theirs() -> None:
    """Each pod went there first, was refused, and was queued again a second later, for as long as it was connected."""
    world = a_refuses()
    for number in range(5):
        assert submitted(world, f"pod-{number}") == ["b"]
    world.advance(IN_VAIN_REST_SECONDS)
    assert submitted(world, "later")[0] == "a", "it is tried once more"
    assert submitted(world, "last") == ["b"]


def test_hd_646_it_is_as_good_as_any_again_once_it_keeps_what_it_takes() -> None:
    world = a_refuses()
    world.agents["a"].refuse_commit = None
    world.advance(IN_VAIN_REST_SECONDS)
    assert submitted(world, "later") == ["a"]
    key = world.agents["a"].commits[-1]
    world.agents["a"].finish(key, {"phase": "Succeeded"})
    world.settle()
    assert not world.machine.core.failures._in_vain


def test_hd_646_what_ran_for_some_time_or_was_ended_here_was_not_in_vain() -> None:
    failures = DispatchFailures()
    for _ in range(IN_VAIN_MAX):
        failures.was_in_vain("a", "team", 10.0, 9.0)
        failures.was_in_vain("b", "team", 10.0, None)
    assert (failures.is_in_vain("a", "team", 10.0), failures.is_in_vain("b", "team", 10.0)) == (True, False)
    assert not failures.is_in_vain("a", "other", 10.0), "of others it says nothing"
    failures.was_in_vain("a", "team", 11.0 + IN_VAIN_SECONDS, 10.0)
    assert not failures.is_in_vain("a", "team", 11.0 + IN_VAIN_SECONDS)
    world = a_world(a_setting(cpu=1000))
    for number in range(IN_VAIN_MAX):
        submitted(world, f"pod-{number}")
        world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, f"pod-{number}")))
        world.settle()
    assert not world.machine.core.failures._in_vain
