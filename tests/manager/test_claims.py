"""What one worker says of work that it was never given spoils its own cluster at most (IS-11)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.api import events
from gatelift.core.api.events import UNPROVED
from gatelift.core.api.user_objects import UserObject
from gatelift.core.clusters.link_values import LinkState, PlacementsInventoried
from gatelift.core.conclusions import inventories
from gatelift.core.records.gone import Evidence
from gatelift.core.state import caution
from gatelift.core.state.caution import Ahead, Caution
from gatelift.core.state.few_lines import LINES_MAX
from gatelift.core.state.predecessors import Memory
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Bid, BidKind, Evicted, GatesLifted, Offer, Stop, Stopped
from gatelift_wire.values.refusals import Refusal
from support.manager.agents import Held
from support.manager.api import ref_of
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
    world.agents["b"].mark = world.links.given("b", placed, NAMESPACE, "two")
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
    world.agents["b"].mark = world.links.given("b", placed, NAMESPACE, "two") if marked else ""
    world.cut("b")
    world.connect("b")
    assert reserved(world) == ("2" if marked else "1")
    assert world.machine.core.caution.holds(uid)


def test_hd_278_the_record_proves_the_epoch_that_it_names_and_no_other() -> None:
    """HD-278: one word about the next epoch of what a worker had kept its quota when it was over there."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    (key,) = world.agents["a"].commits
    agent = world.agents["a"]
    agent.show(key, RUNNING)
    agent.say(GatesLifted(key=PlacementKey(key.uid, 2)))
    world.advance(1.0)
    assert world.links.broken_off == [("a", UNPROVED)]
    world.stopped(key, "a")
    agent.placements.pop(key)
    agent.say(Evicted(key=key, reason="WorkerObjectDeleted", message="by somebody"))
    world.advance(1.0)
    assert reserved(world) in {"0", "1"}
    assert not world.machine.core.ledger.engine.is_adrift(key.uid)
    assert not world.machine.core.caution.runs_beside(key.uid)


def torn(world: World, uid: str) -> None:
    """Take the reservation off a record, but not where it was placed, around the policy."""
    (found,) = (one for one in world.all("Workload") if one["metadata"]["uid"] == uid)

    def strip(document: Any) -> None:
        document["status"].pop("admission", None)
        document["status"]["conditions"] = []

    world.api.edit(ref_of(found), strip)


def test_hd_279_a_torn_record_holds_until_its_clusters_inventory_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-279: the hold was let go as the comparison began; that came to no end, and it ran twice."""
    monkeypatch.setattr(inventories, "COMPARED_PER_CALL", 1)
    world = a_world(a_setting(cpu=100), clusters=())
    world.connect("a")
    for name in ("one", "two", "three", "four"):
        world.api.apply(a_pod(name).document())
    world.advance(5.0)
    for key in world.agents["a"].commits:
        world.agents["a"].show(key, RUNNING)
    world.advance(5.0)
    uid = max(one["metadata"]["uid"] for one in world.all("Workload"))
    torn(world, uid)
    view = world.links.views["a"]
    world.boot()
    world.links.views["a"] = replace(view, state=LinkState.LOST, open=False)
    world.connect("b")
    world.advance(60.0)
    core = world.machine.core
    assert core.caution.holds(uid)
    agent = world.agents["a"]
    world.sessions["a"] += 1
    agent.session = world.sessions["a"]
    world.links.views["a"] = replace(view, state=LinkState.CONNECTED, session=agent.session, open=True)
    world.links.pending.append(
        PlacementsInventoried(
            cluster="a",
            session=agent.session,
            record_revision=core.record_revision,
            applied=0,
            entries=agent.inventory(),
        )
    )
    world.give(events.Ticked())
    assert core.caution.holds(uid), "while it is compared"
    world.cut("a", lost=True)
    world.advance(60.0)
    assert core.caution.holds(uid), "and when that came to no end"
    assert not world.agents["b"].placements


def test_hd_279_what_is_not_listed_any_more_holds_no_longer() -> None:
    world, uid = a_full_world()
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, 1)))
    world.advance(1.0)
    assert world.machine.core.caution.holds(uid)
    world.cut("b")
    world.connect("b")
    world.advance(1.0)
    assert not world.machine.core.caution.holds(uid)


def test_hd_280_an_older_epoch_that_runs_is_remembered_for_the_next_leader() -> None:
    """HD-280: what ran on though a person had said fenced was known to this leader alone; the next placed it anew."""
    world = a_world(a_setting(cpu=100, clusters=("a", "b")), clusters=("a",))
    world.links.seal_key = KEY
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    agent = world.agents["a"]
    (key,) = agent.commits
    agent.show(key, RUNNING)
    world.cut("a", lost=True)
    world.fence("a")
    world.advance(20.0)
    agent._stop = lambda _key: None  # type: ignore[method-assign, assignment]
    agent.mark = world.links.given("a", key, NAMESPACE, "one")
    world.connect("a")
    world.advance(3.0)
    assert len(world.links.predecessors["a"]) == 1
    (remembered,) = world.links.predecessors["a"]
    assert (remembered.workload_uid, remembered.epoch, remembered.given) == (key.uid, key.epoch, True)
    world.stopped(key, "a")
    agent.placements.pop(key)
    agent.say(Stopped(key=key))
    world.advance(3.0)
    assert not world.links.predecessors["a"]


def test_hd_281_an_inventory_that_names_hundreds_is_written_down_once() -> None:
    """HD-281: what is remembered was written out whole for each of 500 entries: a call of 440 ms, and 500 lines."""
    world = a_world(a_setting(cpu=1))
    shown: list[str] = []
    remember = world.links.remember
    world.links.remember = lambda cluster, *said: shown.append(cluster) or remember(cluster, *said)  # type: ignore[func-returns-value, method-assign]
    core = world.machine.core
    for each in range(300):
        place = UserObject("*", NAMESPACE, f"p{each}")
        core.predecessors.put("b", Memory(place, PlacementKey(f"uid-{each}", 1), 1, Evidence(written_revision=0)))
    world.notes.clear()
    world.cut("b")
    shown.clear()
    world.connect("b")
    world.advance(1.0)
    assert shown.count("b") <= 3
    assert len([one for one in world.notes if "nothing of it runs" in one.text]) <= LINES_MAX
