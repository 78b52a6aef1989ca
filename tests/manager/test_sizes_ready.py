"""Elastic work whose pods are to be ready in time (waitForPodsReady; KEP-77, SL-37): what runs is not evicted."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_wire.values.messages import Stop
from support.manager.slice_world import (
    THE_JOB,
    all_slices,
    an_answering_chain,
    hold_queue,
    resize,
    seen,
    the_attempt,
    used,
    waits_for,
)
from support.manager.world import World

SHORT = ReadinessSettings(timeout=60.0, recovery_timeout=20.0, backoff_base=100.0)


def a_ready_chain(settings: ReadinessSettings = SHORT, **of: Any) -> World:
    """Return a chain of three pods that are ready."""
    world = an_answering_chain(readiness=settings, **of)
    show(world, 3)
    assert ready_of(world)["status"] == "True"
    return world


def show(world: World, ready: int) -> None:
    """Let the cluster say how many pods are ready; at home the object shows it."""
    if "local" in world.agents:
        world.api.edit(THE_JOB, lambda job: job.update(status={"active": ready, "ready": ready}))
        world.advance(3.0)
        return
    world.agents[the_attempt(world).cluster].show(the_attempt(world).key, {"active": ready, "ready": ready})
    world.advance(3.0)


def ready_of(world: World) -> dict[str, Any]:
    """Return the condition PodsReady of what runs."""
    (*_, record) = [one for one in all_slices(world) if world.condition(one, "PodsReady")]
    return dict(world.condition(record, "PodsReady"))


def opened(world: World) -> list[tuple[int, int, int | None]]:
    return [one[:3] for one in seen(world) if not one[3]]


@pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])
def test_sl_37_hd_630_who_waits_to_grow_is_as_ready_as_what_he_was_granted(clusters: Any) -> None:
    """HD-630: three of three ran, ten were wanted, and what ran was evicted for the seven that nobody had let go."""
    world = an_answering_chain(readiness=SHORT, cpu=4, clusters=clusters)
    show(world, 3)
    resize(world, 10)
    world.advance(5.0)
    show(world, 3)
    world.advance(300.0)
    assert (opened(world), ready_of(world)["status"]) == ([(1, 3, 3), (2, 10, None)], "True")
    assert (used(world), world.messages(Stop)) == (3, [])


def test_sl_37_pods_that_are_late_give_their_size_back_and_evict_nothing() -> None:
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    show(world, 4)
    world.advance(50.0)
    assert (opened(world), used(world)) == ([(2, 5, 5)], 5)
    world.advance(10.0)
    assert (opened(world), used(world)) == ([(3, 3, 3), (4, 5, None)], 3)
    assert "ResizeRolledBack" in [one.reason for one in world.emitted]
    assert (world.messages(Stop), len(world.runs), ready_of(world)["status"]) == ([], 1, "True")
    world.advance(90.0)
    assert opened(world) == [(3, 3, 3), (4, 5, None)], "what was late waits"
    assert waits_for(world).endswith("not all of its pods were ready in time, so it waits before it is tried again")
    world.advance(20.0)
    assert opened(world) == [(4, 5, 5)], "and is tried again"
    show(world, 5)
    world.advance(600.0)
    assert (opened(world), used(world)) == ([(4, 5, 5)], 5)


def test_sl_37_its_charge_stays_until_its_cluster_has_answered() -> None:
    """SL-37, SL-42: a time-out lowers nothing."""
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    world.agents["a"].answers = False
    world.advance(120.0)
    assert (opened(world)[0], used(world)) == ((3, 3, 5), 5)
    world.agents["a"].answer_size(the_attempt(world).key)
    world.advance(5.0)
    assert (opened(world)[0], used(world)) == ((3, 3, 3), 3)


def test_sl_37_pods_of_before_that_fail_meanwhile_are_waited_for_as_any() -> None:
    """They recover, and what it grew by is as late as it was."""
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    show(world, 2)
    assert ready_of(world)["status"] == "False"
    show(world, 3)
    assert ready_of(world)["status"] == "True"
    world.advance(60.0)
    assert (opened(world)[0], world.messages(Stop)) == ((3, 3, 3), [])


def test_sl_37_pods_of_before_that_do_not_recover_evict_all() -> None:
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    show(world, 2)
    world.advance(25.0)
    assert len(world.messages(Stop)) == 1


def test_sl_37_what_was_ready_once_recovers_as_any() -> None:
    """After all five were ready a fourth that fails is one of the work's own pods."""
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    show(world, 5)
    show(world, 4)
    assert ready_of(world)["status"] == "False"
    world.advance(25.0)
    assert len(world.messages(Stop)) == 1


@pytest.mark.parametrize("limit", [0, 1])
def test_sl_37_after_so_many_times_it_is_tried_no_more_before_its_user_wants_another_size(limit: int) -> None:
    world = a_ready_chain(ReadinessSettings(timeout=60.0, recovery_timeout=20.0, backoff_base=5.0, backoff_limit=limit))
    resize(world, 5)
    world.advance(400.0)
    assert (opened(world)[0], len(world.messages(Stop))) == ((3 + 2 * limit, 3, 3), 0)
    many = len(all_slices(world))
    world.advance(7200.0)
    assert len(all_slices(world)) == many
    resize(world, 4)
    world.advance(5.0)
    assert opened(world)[-1][1:] == (4, 4)


def test_sl_37_a_new_leader_counts_anew() -> None:
    world = a_ready_chain()
    resize(world, 5)
    world.advance(50.0)
    world.restart()
    world.advance(20.0)
    assert opened(world) == [(2, 5, 5)]
    show(world, 3)
    world.advance(120.0)
    assert (opened(world)[0], world.messages(Stop)) == ((3, 3, 3), [])


def test_sl_37_a_chain_that_is_queued_again_has_none_that_ran_before() -> None:
    """All of its pods are new: not ready in time, it is evicted as any."""
    world = a_ready_chain()
    resize(world, 5)
    world.advance(5.0)
    show(world, 5)
    hold_queue(world, "HoldAndDrain")
    hold_queue(world, "None")
    show(world, 3)
    assert ready_of(world)["status"] == "False"
    world.advance(70.0)
    assert len(world.messages(Stop)) == 2


def test_sl_37_at_home_what_is_late_keeps_its_size_and_evicts_nothing() -> None:
    """Its user's object wants those pods: nobody could stop them there."""
    world = an_answering_chain(readiness=SHORT, clusters=())
    show(world, 3)
    resize(world, 5)
    world.advance(300.0)
    assert (opened(world), world.messages(Stop)) == ([(2, 5, 5)], [])
