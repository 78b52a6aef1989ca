"""HD-166: why a Workload is kept out of its queue is shown as long as that is so, and no longer."""

from __future__ import annotations

import pytest

from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import GatesLifted
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

PENDING = ("PendingEvaluation", "Workload is pending evaluation in the scheduling queue")


def behind_the_head() -> tuple[World, str]:
    """Return a world whose queue looks at its head alone, for which there is no room, and one that waits behind it."""
    setting = a_setting(cpu=1)
    setting[1]["spec"]["queueingStrategy"] = "StrictFIFO"
    world = a_world(setting)
    for name in ("runs", "heads"):
        world.api.apply(a_pod(name).document())
        world.advance(0.2)
    world.api.apply(a_pod("waits").document())
    world.settle()
    return world, waiting(world)


def waiting(world: World) -> str:
    """Return the UID of the Workload that waits behind the head."""
    meta = next(each["metadata"] for each in world.all("Workload") if "pod-waits" in each["metadata"]["name"])
    return str(meta["uid"])


def why(world: World) -> tuple[str, str]:
    """Return why the one behind the head waits, as it is shown."""
    document = next(each for each in world.all("Workload") if each["metadata"]["uid"] == waiting(world))
    said = world.condition(document, "QuotaReserved")
    return said.get("reason", ""), said.get("message", "")


def held(world: World, uid: str) -> None:
    """Let a cluster name an epoch of it that its record has not come to."""
    world.agents["b"].say(GatesLifted(key=PlacementKey(uid, 1)))
    world.settle()


@pytest.mark.parametrize("before", [0.5, 5.0], ids=["before-it-is-said-to-wait", "after"])
def test_hd_166_what_is_kept_out_of_its_queue_shows_why_and_no_second_of_waiting_before_that_overwrites_it(
    before: float,
) -> None:
    world, uid = behind_the_head()
    world.advance(before)
    held(world, uid)
    entry = world.machine.core.ledger.engine.state.entries[uid]
    for _ in range(20):
        world.advance(0.5)
        assert entry.on_hold
        assert entry.want is None, "the engine has nothing to say of what it does not look at"
        assert why(world)[0] == "EpochAhead"


@pytest.mark.parametrize("before", [0.5, 5.0], ids=["before-it-is-said-to-wait", "after"])
def test_hd_166_what_queues_again_does_not_go_on_showing_why_it_was_kept_out(before: float) -> None:
    world, uid = behind_the_head()
    world.advance(before)
    held(world, uid)
    world.advance(10.0)
    world.connect("b")  # it lists nothing of it any more
    world.advance(10.0)
    assert not world.machine.core.caution.holds(uid)
    assert why(world) == PENDING


def test_hd_166_a_leader_that_finds_why_an_earlier_one_kept_it_out_does_not_go_on_showing_that() -> None:
    world, uid = behind_the_head()
    held(world, uid)
    world.advance(10.0)
    assert why(world)[0] == "EpochAhead"
    world.restart()
    world.advance(10.0)
    assert not world.machine.core.caution.holds(uid)
    assert why(world) == PENDING
