"""HD-301, HD-302: work that only clusters without credit may take, and credit that goes up and down.

The first one waits with its quota in hand, as long as a worker may be busy for a moment. Others are not made to wait in
turn while that stays so: quota is for those whom a cluster takes. They say why they wait, and are woken by credit.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gatelift.core import texts
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Offer
from gatelift_wire.values.refusals import Refusal
from manager.test_woken_by_clusters import OTHERS, asked, places, refusing, says
from support.manager.builders import NAMESPACE, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

TWENTY = 20
NO_CREDIT = "No worker cluster can take it: {}: takes no more placements at the moment"


def _world(cpu: int = 1, clusters: tuple[str, ...] = ("a", "b"), credit: int = 0) -> World:
    """Return a world with quota for one pod, whose cluster a takes no more placements."""
    world = a_world([*a_setting(cpu=cpu, clusters=clusters), _high()], clusters=("a", "b"))
    says(world, credits=credit)
    return world


def _high() -> dict[str, Any]:
    return {**kueue_object("WorkloadPriorityClass", "high", {}), "value": 100}


def _only(cluster: str, name: str) -> dict[str, Any]:
    return a_pod(name).of_class("high").annotated(**{"gatelift.dev/cluster": cluster}).document()


def _twenty(world: World, cluster: str = "a", count: int = TWENTY) -> None:
    for number in range(count):
        world.api.apply(_only(cluster, f"high-{number}"))


def _messages(world: World) -> Counter[str]:
    return Counter(world.condition(one, "QuotaReserved")["message"] for one in world.all("Workload"))


def _holds(world: World) -> list[str]:
    """Return who holds quota."""
    ledger = world.machine.core.ledger
    return [one["metadata"]["name"] for one in world.all("Workload") if ledger.holds(one["metadata"]["uid"])]


def test_hd_301_one_of_twenty_waits_with_quota_in_hand_and_then_it_is_for_others() -> None:
    world = _world()
    _twenty(world)
    world.advance(1.0)
    world.api.apply(a_pod("low").annotated(**{"gatelift.dev/cluster": "b"}).document())
    world.advance(20.0)
    assert places(world)["low"] is None, "a worker may be busy for a moment"
    world.advance(12.0)
    assert places(world)["low"] == "b"


def test_hd_301_who_waits_says_why() -> None:
    world = _world()
    _twenty(world)
    world.advance(60.0)
    assert _messages(world) == {NO_CREDIT.format("a") + "; b: the workload asks for cluster a": TWENTY}
    reasons = {world.condition(one, "QuotaReserved")["reason"] for one in world.all("Workload")}
    assert reasons == {texts.NO_CLUSTER}


def test_hd_301_who_comes_then_reserves_nothing() -> None:
    world = _world(clusters=("a",))
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    world.api.apply(_only("a", "second"))
    for _ in range(100):
        world.advance(1.0)
        assert not _holds(world)
    assert _messages(world) == {NO_CREDIT.format("a"): 2}


def test_hd_301_nothing_is_done_for_them_meanwhile() -> None:
    world = _world(clusters=("a",))
    _twenty(world)
    world.advance(60.0)
    looked, said = world.steps, len(world.emitted)
    world.advance(200.0)
    assert world.steps - looked < 3 * TWENTY
    assert len(world.emitted) == said


def test_hd_301_credit_wakes_them_all_in_turn() -> None:
    world = _world(cpu=100, clusters=("a",))
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    _twenty(world)
    world.advance(40.0)
    assert not _holds(world)
    says(world, credits=1)
    assert Counter(places(world).values())["a"] == 1, "at once"
    world.advance(10.0)
    assert Counter(places(world).values()) == {"a": TWENTY + 1}, "each that is made makes room for the next"


def test_hd_301_who_may_go_elsewhere_goes_there() -> None:
    world = _world(cpu=2)
    _twenty(world, count=1)
    world.advance(40.0)
    world.api.apply(a_pod("free").document())
    world.advance(1.0)
    assert places(world)["free"] == "b"


def test_hd_301_beside_a_cluster_that_is_lost_it_is_the_same() -> None:
    world = _world()
    world.cut("b", lost=True)
    world.api.apply(a_pod("first").document())
    world.advance(40.0)
    world.api.apply(a_pod("second").document())
    world.advance(1.0)
    assert not _holds(world)
    world.connect("b")
    world.advance(10.0)
    assert "b" in places(world).values(), "one that may take it is there again"


def test_hd_301_beside_a_cluster_that_may_only_be_busy_it_waits_for_that_one() -> None:
    world = _world()
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    says(world, "b", credits=0)
    world.api.apply(a_pod("second").document())
    world.advance(1.0)
    assert len(_holds(world)) == 1


def test_hd_301_a_cluster_that_answers_an_offer_again_is_waited_for_again() -> None:
    world = _world(cpu=2, clusters=("a",))
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    world.machine.core.open_offers.sent("a", OTHERS, world.now)
    world.machine.core.open_offers.answered("a", OTHERS, world.now, held=True)
    world.api.apply(_only("a", "second"))
    world.advance(1.0)
    assert len(_holds(world)) == 1


def test_hd_301_a_new_session_is_no_answer() -> None:
    world = _world(clusters=("a",))
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    world.cut("a")
    world.connect("a", credits=0)
    world.api.apply(_only("a", "second"))
    world.advance(10.0)
    assert not _holds(world)


def test_hd_301_room_that_an_offer_gives_back_wakes_them() -> None:
    """No word of the cluster says so: what was offered there is withdrawn, and nobody stands in line."""
    world = _world(cpu=8, clusters=("a",))
    world.api.apply(_only("a", "first"))
    world.advance(40.0)
    world.agents["a"].silent = True
    says(world, credits=1)
    assert asked(world)["a"] == 1
    world.api.apply(_only("a", "second"))
    world.settle()
    assert len(_holds(world)) == 1, "it is kept out: the one credit is asked for"
    world.agents["a"].silent = False
    world.advance(4.0)
    assert places(world) == {"first": None, "second": "a"}


# --- credit that goes up and down ------------------------------------------------------------------------------------


def _flips(world: World, seconds: float, every: float = 0.5) -> None:
    for number in range(int(seconds / every)):
        says(world, credits=(number + 1) % 2)
        world.advance(every)


def test_hd_302_a_flipping_cluster_that_answers_nobody_starves_no_other_work() -> None:
    world = _world()
    world.agents["a"].silent = True
    _twenty(world)
    world.advance(40.0)
    waits = 0.0
    for number in range(10):
        name = f"low-{number}"
        world.api.apply(a_pod(name).annotated(**{"gatelift.dev/cluster": "b"}).document())
        began = world.now
        while places(world).get(name) is None:
            _flips(world, 1.0)
            assert world.now < began + 120.0
        waits += world.now - began
        world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, name)))
        _flips(world, 10.0)
    assert waits < 300.0


def test_hd_302_its_flips_have_the_same_work_asked_ever_more_rarely() -> None:
    world = _world(cpu=TWENTY, clusters=("a",), credit=0)
    world.agents["a"].silent = True
    _twenty(world)
    world.advance(40.0)
    asked(world)
    _flips(world, 300.0)
    first = sum(asked(world).values())
    _flips(world, 300.0)
    assert sum(asked(world).values()) <= max(first // 2, 2 * TWENTY)
    assert first <= 8 * TWENTY


def test_hd_302_who_gives_up_while_it_flips_and_may_not_go_there_keeps_its_pause() -> None:
    counts = []
    for every in (0.5, 60.0):
        world = _world(cpu=8)
        world.agents["b"].silent = True
        world.api.apply(_only("b", "other"))
        for _ in range(4):
            _flips(world, 60.0, every)
        counts.append(sum(message.name == "other" for _, message in world.messages(Offer)))
    assert counts[0] == counts[1], "as if nothing had happened at a"


@pytest.mark.parametrize("refusal", [Refusal.QUOTA_BUSY, None])
def test_hd_302_a_cluster_that_answers_wakes_at_its_usual_pace(refusal: Refusal | None) -> None:
    world = _world(cpu=8, clusters=("a",), credit=8)
    world.agents["a"].bid = refusing(refusal) if refusal else None
    world.agents["a"].silent = refusal is None
    world.api.apply(_only("a", "one"))
    world.advance(160.0)
    asked(world)
    for number in range(300):
        says(world, labels=(("flips", str(number)),))
        world.advance(0.2)
    count = asked(world)["a"]
    assert (count >= 10) is (refusal is not None)
