"""HD-290, HD-293, HD-294 (IS-10, IS-11): whom a cluster's words wake, how often, and for how long quota waits for it.

A worker's words cost it nothing: what has not changed wakes nobody, what has changed wakes whom it may help, once in
the first step of his pause; and a cluster that grants nothing keeps no quota.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.clusters.link_values import ClusterChanged, LinkState
from gatelift.core.dispatching.waking import WAKE_MAX
from gatelift.core.state.dispatch_values import DispatchFailures
from gatelift_kube.values.resources import MULTIKUEUE_CONFIG, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Bid, BidKind, Commit, Offer
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

STEP = 5.0
"""The first step of the pause of who found nobody."""
FULL = {"cpu": ResourceRoom(nominal=8000, used=8000, largest_fit=0)}

OTHERS = PlacementKey("another", 1)


def refusing(refusal: Refusal) -> Callable[[Any], Bid]:
    return lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=refusal)


def waiting(
    count: int = 1, *, queue: tuple[str, ...] = ("a", "b"), refusal: Refusal = Refusal.QUOTA_BUSY, **view: Any
) -> World:
    """Return a world in which so many pods have found nobody and wait for long; of a and b, to which `queue` leads."""
    world = a_world(a_setting(cpu=1000, clusters=queue), clusters=("a", "b"))
    for name in ("a", "b"):
        world.agents[name].bid = refusing(refusal)
    world.links.views["a"] = replace(world.links.views["a"], **view)
    world.upcall(ClusterChanged(cluster="a"))
    for number in range(count):
        world.api.apply(a_pod(f"p-{number}").document())
    world.advance(160.0)  # 5 + 10 + 20 + 40 + 80: the next try is 5 s and more away
    world.links.log.clear()
    return world


def says(world: World, cluster: str = "a", **view: Any) -> None:
    world.links.views[cluster] = replace(world.links.views[cluster], **view)
    world.upcall(ClusterChanged(cluster=cluster))
    world.settle()


def asked(world: World) -> Counter[str]:
    """Return how many offers each cluster was sent since this was asked last."""
    found = Counter(cluster for cluster, _ in world.messages(Offer))
    world.links.log.clear()
    return found


@pytest.mark.parametrize("said", [{}, {"credits": 255}, {"replicas": 2}], ids=["the same", "credits", "replicas"])
def test_hd_290_what_gives_nobody_anything_wakes_nobody(said: dict[str, Any]) -> None:
    world = waiting(20)
    for number in range(100):
        says(world, **{name: value + number % 2 for name, value in said.items()})
        world.advance(0.02)
    assert not asked(world)


CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "more room in all": ({"capacity": FULL}, {"capacity": {"cpu": ResourceRoom(9000, 9000, 0)}}),
    "more free": ({"capacity": FULL}, {"capacity": {"cpu": ResourceRoom(8000, 7000, 0)}}),
    "a larger piece": ({"capacity": FULL}, {"capacity": {"cpu": ResourceRoom(8000, 8000, 1000)}}),
    "counted no more": ({"capacity": FULL}, {"capacity": {}}),
    "credit again": ({"credits": 0}, {"credits": 8}),
    "came back": ({"state": LinkState.SUSPECT}, {"state": LinkState.CONNECTED}),
    "reaches its API again": ({"api_reachable": False}, {"api_reachable": True}),
    "another session": ({"session": 1}, {"session": 2}),
    "uncordoned": ({"cordoned": True}, {"cordoned": False}),
    "another kind": ({"kinds": frozenset({"Job"})}, {"kinds": frozenset({"Job", "Pod"})}),
    "relabelled": ({}, {"labels": (("zone", "north"),)}),
    "its namespace": ({"accepted_namespaces": frozenset({"x"})}, {"accepted_namespaces": frozenset({"x", "team"})}),
    "any namespace": ({"accepted_namespaces": frozenset({"x"})}, {"accepted_namespaces": None}),
    "allowed there": ({"allowed_namespaces": ("x",)}, {"allowed_namespaces": ("x", "team")}),
}


@pytest.mark.parametrize(("before", "after"), CHANGES.values(), ids=CHANGES.keys())
def test_hd_290_what_may_help_wakes_at_once(before: dict[str, Any], after: dict[str, Any]) -> None:
    world = waiting(queue=("a",), **before)
    says(world, **after)
    assert asked(world)["a"] == 1


NO_HELP: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "less room": ({}, {"capacity": FULL}),
    "room where it is cordoned": ({"capacity": FULL, "cordoned": True}, {"capacity": {}}),
    "another namespace": ({"accepted_namespaces": frozenset()}, {"accepted_namespaces": frozenset({"x"})}),
    "fewer labels that nobody asks for, and shut": ({"labels": (("a", "b"),)}, {"labels": (), "draining": True}),
}


@pytest.mark.parametrize(("before", "after"), NO_HELP.values(), ids=NO_HELP.keys())
def test_hd_290_what_helps_this_one_in_nothing_does_not_wake_it(before: dict[str, Any], after: dict[str, Any]) -> None:
    world = waiting(queue=("a",), **before)
    says(world, **after)
    world.advance(1.0)
    assert not asked(world)


def test_hd_290_a_change_of_a_cluster_to_which_a_queue_does_not_lead_wakes_nobody_of_it() -> None:
    world = waiting(20, queue=("b",))
    for number in range(20):
        says(world, labels=(("flips", str(number)),))
        world.advance(0.5)
    assert not asked(world)["b"]


@pytest.mark.parametrize("mark", [{"gatelift.dev/cluster": "b"}, {"gatelift.dev/cluster-selector": "zone=south"}])
def test_hd_290_nor_who_asks_for_another_cluster(mark: dict[str, str]) -> None:
    world = waiting()
    pod = a_pod("asks").document()
    pod["metadata"]["annotations"].update(mark)
    world.api.apply(pod)
    world.advance(160.0)
    world.links.log.clear()
    says(world, labels=(("zone", "north"),))
    assert {message.name for _, message in world.messages(Offer)} == {"p-0"}


def test_hd_290_one_cluster_wakes_the_same_work_once_in_the_first_step_of_its_pause() -> None:
    world = waiting(20, queue=("a", "b"))
    for number in range(100):
        says(world, labels=(("flips", str(number)),))
        world.advance(0.2)
    assert max(asked(world).values()) <= 20 * (20.0 / STEP + 1)


def test_hd_290_a_change_that_comes_too_soon_wakes_when_that_is_over() -> None:
    world = waiting(queue=("a",))
    says(world, labels=(("flips", "1"),))
    world.advance(2.0)
    assert asked(world)["a"] == 1
    says(world, labels=(("flips", "2"),))
    world.advance(1.5)
    assert not asked(world)
    world.advance(STEP - 3.5)
    assert asked(world)["a"] == 1


def test_hd_290_and_a_real_change_of_another_cluster_wakes_at_once() -> None:
    world = waiting()
    says(world, labels=(("flips", "1"),))
    world.advance(0.5)
    assert asked(world)["b"] == 1
    world.agents["b"].bid = None
    says(world, "b", labels=(("zone", "south"),))
    assert world.find("Workload")["status"].get("clusterName") == "b"


def test_hd_290_all_are_looked_through_a_slice_at_a_time() -> None:
    world = waiting(3 * WAKE_MAX, queue=("a",))
    says(world, labels=(("zone", "north"),))
    assert 0 < asked(world)["a"] <= WAKE_MAX
    world.advance(0.9)
    assert not asked(world)
    world.advance(1.1)
    assert asked(world)["a"] == 2 * WAKE_MAX


def test_hd_290_those_whom_it_does_not_help_do_not_stand_before_the_one_whom_it_does() -> None:
    world = waiting(3 * WAKE_MAX, queue=("a",), accepted_namespaces=frozenset({"x"}))
    first = world.find("Pod", "p-0")
    for number in range(3 * WAKE_MAX):
        pod = world.find("Pod", f"p-{number}")
        assert pod["metadata"]["namespace"] == first["metadata"]["namespace"]
    says(world, accepted_namespaces=frozenset({"x", "y"}))
    world.advance(0.5)
    assert not asked(world)
    says(world, accepted_namespaces=frozenset({"x", "y", "team"}))
    world.advance(0.01)
    assert asked(world)["a"] > 0


def test_hd_290_only_what_a_change_may_mend_is_forgotten_of_a_refusal() -> None:
    world = waiting(refusal=Refusal.NAMESPACE_MISSING, queue=("a",), capacity=FULL)
    says(world, capacity={"cpu": ResourceRoom(8000, 0, 8000)})
    world.advance(30.0)
    assert not asked(world), "room makes no namespace"
    says(world, accepted_namespaces=frozenset({"x"}))
    says(world, accepted_namespaces=frozenset({"x", "y"}))
    assert not asked(world), "nor does another one"
    says(world, accepted_namespaces=frozenset({"x", "y", "team"}))
    world.advance(0.1)
    assert asked(world)["a"] == 1


def test_hd_612_a_cluster_that_has_refused_is_asked_again_after_five_minutes() -> None:
    """HD-612: the pause of who found nobody passed over that moment, so it was asked up to five minutes later."""
    world = waiting(refusal=Refusal.INVALID, replicas=1, capacity=FULL)
    says(world, replicas=2, capacity={"cpu": ResourceRoom(9000, 0, 9000)})
    assert asked(world) == {"a": 1}
    world.agents["b"].bid = None
    world.advance(300.0 - 160.0 - 1.0)
    assert not asked(world)
    world.advance(2.0)
    assert [cluster for cluster, _ in world.messages(Commit)] == ["b"]


def test_hd_612_only_a_refusal_that_lasts_shortens_the_pause_of_who_found_nobody() -> None:
    """HD-271: a cluster that says that it has used an epoch is avoided for seconds, and each try there is a write."""
    failures = DispatchFailures()
    failures.avoid("one", "a", 1.0, "it has used that epoch")
    assert failures.asked_again_at("one", ("a", "b"), 0.0) == inf
    failures.avoid("one", "b", 300.0, "it cannot", Refusal.INVALID.value)
    assert failures.asked_again_at("one", ("a", "b"), 0.0) == 300.0
    assert failures.asked_again_at("one", ("a", "b"), 300.0) == inf


def test_hd_290_a_queue_that_leads_to_one_more_cluster_wakes_its_work() -> None:
    world = waiting(queue=("a",))
    world.agents["b"].bid = None
    ref = ObjectRef(MULTIKUEUE_CONFIG, ObjectKey("", "all"))
    world.api.edit(ref, lambda document: document["spec"].update(clusters=["a", "b"]))
    world.settle()
    assert world.find("Workload")["status"].get("clusterName") == "b"


def test_hd_290_a_placement_that_left_is_room_also_where_a_worker_counts_none() -> None:
    world = waiting(queue=("a",))
    world.machine.core.placements.put("a", "another", "team")
    says(world)
    assert not asked(world)
    world.machine.core.placements.leave("a", "another")
    says(world)
    assert asked(world)["a"] == 1


def test_hd_290_a_change_that_came_behind_the_refusal_is_not_missed() -> None:
    world = waiting(queue=("a",))
    world.agents["a"].silent = True
    says(world, labels=(("zone", "north"),))
    assert asked(world)["a"] == 1
    world.advance(0.1)
    says(world, capacity=FULL)
    says(world, capacity={"cpu": ResourceRoom(8000, 0, 8000)})
    world.advance(6.0)  # nobody answers, so it gives up
    world.agents["a"].silent = False
    world.agents["a"].bid = None
    world.advance(STEP)
    assert world.find("Workload")["status"].get("clusterName") == "a"


# --- room ------------------------------------------------------------------------------------------------------------


def test_hd_290_room_at_one_cluster_lets_those_in_who_wait_for_that_one() -> None:
    world = a_world(a_setting(cpu=1000, clusters=("a",)), clusters=("a", "b"))
    says(world, credits=0)
    for number in range(4):
        world.api.apply(a_pod(f"p-{number}").document())
    world.advance(2.0)
    looked = world.steps
    for level in (3, 4) * 20:
        says(world, "b", credits=level)
    assert world.steps - looked <= 41, "nobody is looked at"
    says(world, credits=2)
    assert asked(world)["a"] >= 2
    world.advance(5.0)
    assert all(one["status"].get("clusterName") == "a" for one in world.all("Workload"))


def test_hd_290_credit_that_grows_all_the_time_lets_in_as_many_as_there_is_room_for_once_a_second() -> None:
    world = a_world(a_setting(cpu=1000, clusters=("a",)), clusters=("a",))
    world.agents["a"].silent = True
    says(world, credits=0)
    for number in range(10):
        world.api.apply(a_pod(f"p-{number}").document())
    world.advance(2.0)
    for level in range(1, 6):
        says(world, credits=level)
        world.advance(0.1)
    assert asked(world)["a"] == 1
    world.advance(0.6)
    assert asked(world)["a"] == 4


def test_hd_294_a_cluster_that_grants_nothing_keeps_no_quota_for_work_that_nobody_else_takes() -> None:
    world = a_world(a_setting(cpu=1))
    refuses = refusing(Refusal.NAMESPACE_MISSING)
    world.agents["b"].bid = lambda offer: refuses(offer) if offer.name == "one" else held(offer)
    says(world, credits=0)
    world.api.apply(a_pod("one").document())
    world.advance(10.0)
    world.api.apply(a_pod("two").document())
    world.advance(10.0)
    assert places(world) == {"one": None, "two": "b"}


def test_hd_294_what_gave_its_quota_back_is_asked_again_when_there_is_room() -> None:
    world = a_world(a_setting(cpu=1, clusters=("a",)), clusters=("a",))
    says(world, credits=0)
    world.api.apply(a_pod("one").document())
    world.advance(20.0)
    assert world.machine.core.ledger.holds(uid(world)), "a worker may be busy for a moment"
    world.advance(11.0)
    assert not world.machine.core.ledger.holds(uid(world))
    epoch = world.machine.core.attempts[uid(world)].epoch
    world.advance(200.0)
    assert world.machine.core.attempts[uid(world)].epoch <= epoch + 1, "nothing is written of a try that finds nobody"
    message = world.condition(world.find("Workload"), "QuotaReserved")["message"]
    assert message == "No worker cluster can take it: a: takes no more placements at the moment"
    says(world, credits=1)
    assert places(world) == {"one": "a"}


def test_hd_294_a_cluster_that_answers_others_is_waited_for_longer_and_not_for_ever() -> None:
    world = a_world(a_setting(cpu=1, clusters=("a",)), clusters=("a",))
    says(world, credits=0)
    world.api.apply(a_pod("one").document())
    for _ in range(28):
        world.advance(10.0)
        world.machine.core.open_offers.sent("a", OTHERS, world.now)
        world.machine.core.open_offers.answered("a", OTHERS, world.now, held=True)
    assert world.machine.core.ledger.holds(uid(world))
    world.advance(20.5)
    assert not world.machine.core.ledger.holds(uid(world))


def held(offer: Offer) -> Bid:
    return Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=30.0)


def uid(world: World) -> str:
    return str(world.find("Workload")["metadata"]["uid"])


def places(world: World) -> dict[str, Any]:
    found = {}
    for one in world.all("Workload"):
        (owner,) = one["metadata"]["ownerReferences"]
        found[owner["name"]] = one.get("status", {}).get("clusterName")
    return found


def test_hd_282_who_gave_up_for_want_of_room_is_woken_when_a_placement_is_made() -> None:
    """HD-282: beside an idle cluster it waited for up to five minutes: nobody stood in line any more."""
    world = a_world(a_setting(cpu=8, clusters=("a",)), clusters=())
    world.connect("a", credits=1)
    world.advance(3.0)
    agent = world.agents["a"]
    late: list[Commit] = []
    commit = agent._commit
    agent._commit = late.append  # type: ignore[method-assign, assignment]
    world.api.apply(a_pod("one").document())
    world.advance(1.0)
    world.api.apply(a_pod("two").document())
    world.advance(120.0)
    assert places(world)["two"] is None
    agent._commit = commit  # type: ignore[method-assign]
    for each in late:
        commit(each)
    world.advance(2.0)
    assert places(world)["two"] == "a"
