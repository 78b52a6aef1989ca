"""What one worker says of work that it was never given spoils its own cluster at most (IS-11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.api.events import UNPROVED
from gatelift.core.state import caution
from gatelift.core.state.caution import Ahead, Caution
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Bid, BidKind, GatesLifted, Offer, Stop, Stopped
from gatelift_wire.values.refusals import Refusal
from support.manager.agents import Held
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world

KEY = b"the key that seals"


def a_full_world() -> tuple[World, str]:
    """Return a world of one CPU in which `one` runs on a, and the UID of `two`, which waits and was never placed."""
    world = a_world(a_setting(cpu=1))
    world.links.seal_key = KEY
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    world.api.apply(a_pod("two").document())
    world.advance(3.0)
    return world, str(workload(world, "pod-two")["metadata"]["uid"])


def workload(world: World, name: str) -> Any:
    """Return the Workload of a pod."""
    (found,) = (one for one in world.all("Workload") if one["metadata"]["name"].startswith(name))
    return found


def reserved(world: World) -> str:
    """Return how much CPU the ClusterQueue shows as reserved."""
    world.advance(10.0)
    (flavor,) = world.find("ClusterQueue")["status"]["flavorsReservation"]
    return str(flavor["resources"][0]["total"])


def keep_from(world: World, cluster: str) -> None:
    """Let a person say that work of other namespaces alone goes to a cluster."""
    world.links.views[cluster] = replace(world.links.views[cluster], allowed_namespaces=("another",))


@pytest.mark.parametrize("epoch", [1, 7], ids=["its own epoch", "a later one"])
def test_hd_272_a_word_about_work_that_may_not_be_there_holds_and_charges_nothing(epoch: int) -> None:
    """HD-272: one word charged a queue beyond its quota, for which others were preempted, and kept the work waiting."""
    world, uid = a_full_world()
    keep_from(world, "b")
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, epoch)))
    assert reserved(world) == "1"
    assert not world.machine.core.caution.holds(uid)
    assert world.links.no_new_work["b"] != ("", ""), "who says so gets no new work"
    assert not world.messages(Stop), "and nothing of it is stopped: it may be a record that is too old"
    assert world.condition(workload(world, "pod-two"), "QuotaReserved")["reason"] == "WaitingForQuota"


def test_hd_272_a_word_about_work_that_may_be_there_holds_it_and_charges_nothing_without_a_proof() -> None:
    """HD-272: its cluster is asked in a new session for all that it has: an inventory brings our mark."""
    world, uid = a_full_world()
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, 1)))
    assert reserved(world) == "1"
    assert world.machine.core.caution.holds(uid)
    assert world.links.broken_off == [("b", UNPROVED)], "once for what is news"


@pytest.mark.parametrize("settings", ["allow it", "do not"])
def test_hd_272_what_is_listed_with_our_mark_holds_and_is_charged_whatever_settings_say(settings: str) -> None:
    world, uid = a_full_world()
    if settings != "allow it":
        keep_from(world, "b")
    placed = PlacementKey(uid, 1)
    world.agents["b"].placements[placed] = Held(state="Running", lifted=True, called="two")
    inventory = world.agents["b"].inventory

    def marked() -> tuple[Any, ...]:
        mark = world.links.given("b", placed, NAMESPACE, "two")
        return tuple(replace(entry, given=mark) for entry in inventory())

    world.agents["b"].inventory = marked  # type: ignore[method-assign]
    world.cut("b")
    world.connect("b")
    assert reserved(world) == "2"
    assert world.machine.core.caution.holds(uid)
    world.agents["b"].say(GatesLifted(key=placed))
    assert reserved(world) == "2", "what was listed with it stays proved"
    assert not world.links.broken_off
    world.agents["b"].say(Stopped(key=placed))
    world.advance(1.0)
    assert reserved(world) == "1"


def test_hd_272_one_word_about_work_without_a_queue_leaves_all_queues_their_room() -> None:
    """HD-272: what nobody can tell the queue of is kept free in all of them, if it truly runs."""
    world = a_world(a_setting())
    pod = a_pod("nowhere").document()
    pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "mistyped"
    world.api.apply(pod)
    world.advance(3.0)
    uid = world.find("Workload")["metadata"]["uid"]
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, 1)))
    world.advance(3.0)
    assert not world.machine.core.ledger.engine.is_adrift(uid)
    world.api.apply(a_pod("after").document())
    world.advance(3.0)
    assert workload(world, "pod-after")["status"]["clusterName"]


def test_hd_271_a_cluster_that_calls_each_epoch_used_keeps_no_work_from_others() -> None:
    """HD-271: each such bid raised the epoch and let all be asked anew, without a pause and without end."""
    world = a_world(a_setting())
    stale = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.EPOCH_STALE)  # noqa: E731
    world.agents["a"].bid = stale
    world.api.apply(a_pod().document())
    world.advance(60.0)
    assert world.find("Workload")["status"]["clusterName"] == "b"
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"
    assert len(world.messages(Offer)) <= 4


def test_hd_271_where_it_is_the_only_one_it_is_asked_after_growing_pauses() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.EPOCH_STALE)
    world.api.apply(a_pod().document())
    world.advance(300.0)
    assert 3 <= len(world.messages(Offer)) <= 12


def test_hd_273_what_one_cluster_names_leaves_room_for_what_others_name() -> None:
    """HD-273: the room was one for all, and what came above it was forgotten: it ran twice."""
    doubts = Caution()
    for each in range(20_000):
        assert doubts.name("b", Ahead(PlacementKey(f"uid-{each}", 9), over=False))
    assert doubts.name("c", Ahead(PlacementKey("true", 3), over=False))
    assert doubts.holds("true")


def test_hd_273_of_workloads_that_are_gone_a_bounded_number_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caution, "GONE_MAX", 3)
    doubts = Caution()
    for each in range(5):
        doubts.name("b", Ahead(PlacementKey(f"uid-{each}", 9), over=False))
        doubts.is_gone(f"uid-{each}")
    assert len(doubts.named_by("b")) == 3
    assert doubts.cordons("b"), "it gets no new work for those"


def test_hd_275_what_was_only_offered_and_is_called_running_goes_to_others() -> None:
    """HD-275: it was held for ever, and charged; whoever had only been offered it said so of everything."""
    world = a_world(a_setting())
    evil = world.agents["a"]
    evil._offer = lambda offer: evil.say(GatesLifted(key=offer.key))  # type: ignore[method-assign]
    world.api.apply(a_pod().document())
    world.advance(1.0)
    assert world.links.broken_off == [("a", UNPROVED)]
    world.cut("a")
    world.connect("a")
    world.advance(60.0)
    assert world.find("Workload")["status"]["clusterName"] == "b"
    assert reserved(world) == "1"


def test_hd_272_an_epoch_that_nobody_can_have_come_to_holds_nothing() -> None:
    """HD-272: a person is to raise the annotation above what is named."""
    world, uid = a_full_world()
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, 2**53)))
    world.advance(1.0)
    assert not world.machine.core.caution.holds(uid)
    assert world.links.no_new_work["b"] != ("", "")


@pytest.mark.parametrize("marked", [True, False])
def test_hd_272_what_an_inventory_lists_and_nothing_explains_is_charged_with_our_mark_alone(*, marked: bool) -> None:
    world, uid = a_full_world()
    placed = PlacementKey(uid, 1)
    world.agents["b"].placements[placed] = Held(state="Running", lifted=True, called="two")
    inventory = world.agents["b"].inventory
    given = world.links.given("b", placed, NAMESPACE, "two") if marked else ""
    world.agents["b"].inventory = lambda: tuple(replace(one, given=given) for one in inventory())  # type: ignore[method-assign]
    world.cut("b")
    world.connect("b")
    assert reserved(world) == ("2" if marked else "1")
    assert world.machine.core.caution.holds(uid)
