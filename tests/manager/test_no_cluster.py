"""IS-43: work that has quota and no cluster that takes it says why, once, and in the words of who knows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift_wire.values.messages import Bid, BidKind, Offer
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world


def winner(world: World) -> str:
    return str(world.find("Workload").get("status", {}).get("clusterName", ""))


def closed(clusters: str) -> World:
    """Return a world in whose clusters the namespace takes no work, with nothing submitted."""
    names = tuple(clusters)
    world = a_world(a_setting(clusters=names), clusters=names)
    for name in names:
        world.links.views[name] = replace(world.links.views[name], accepted_namespaces=frozenset({"other"}))
    return world


def test_is_43_the_workload_and_the_users_object_say_once_that_no_cluster_takes_it() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    busy = Refusal.QUOTA_BUSY
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=busy)
    world.api.apply(a_pod().document())
    world.settle()
    world.advance(20.0)
    told = [(one.ref.resource.kind, one.message) for one in world.emitted if one.reason == "NoClusterAvailable"]
    text = "No worker cluster can take it: a: QuotaBusy"
    assert sorted(told) == [("Pod", text), ("Workload", text)], "not once more at each try"
    assert all(one.warning for one in world.emitted if one.reason == "NoClusterAvailable")


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (Refusal.NAMESPACE_MISSING, "namespace team: does not exist in this cluster; create it here"),
        (Refusal.NAMESPACE_NOT_ALLOWED, "namespace team: does not accept work; label it gatelift.dev/accept=true"),
    ],
    ids=lambda one: str(one)[:20],
)
def test_is_43_a_cluster_says_itself_whether_a_namespace_is_missing_or_not_labelled(
    refusal: Refusal, text: str
) -> None:
    world = closed("a")
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=refusal, text=text)
    world.api.apply(a_pod().document())
    world.settle()
    world.advance(20.0)
    reserved = world.condition(world.find("Workload"), "QuotaReserved")
    assert reserved["message"] == f"No worker cluster can take it: a: {refusal.value}: {text}"
    assert len(world.messages(Offer)) == 1, "it is not asked again until it changes"


def test_is_43_where_another_cluster_takes_it_nobody_else_is_asked_for_his_reasons() -> None:
    world = closed("ab")
    world.links.views["b"] = replace(world.links.views["b"], accepted_namespaces=None)
    world.api.apply(a_pod().document())
    world.settle()
    assert winner(world) == "b"
    assert {name for name, _ in world.messages(Offer)} == {"b"}


def test_is_43_a_namespace_that_is_labelled_meanwhile_gets_the_work() -> None:
    world = closed("a")
    world.api.apply(a_pod().document())
    world.settle()
    assert winner(world) == "a", "its agent knows better than what it said last"
