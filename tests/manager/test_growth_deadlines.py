"""The deadline of a growth (KEP-77, SL-52): what becomes of it where its cluster has had no room for too long."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared.resize_wishes import AT_DEADLINE, RESIZE_DEADLINE
from gatelift_wire.values.messages import Bid, BidKind, Stop
from gatelift_wire.values.refusals import Refusal
from support.manager.slice_world import THE_JOB, all_slices, an_answering_chain, resize, seen, the_attempt, used
from support.manager.world import World


def a_refused_growth(policy: str, **of: Any) -> World:
    """Return a chain whose cluster has no room for what its user wants, and what is to become of that after 60 s."""
    world = an_answering_chain(**of)
    marks = {RESIZE_DEADLINE: "60", **({AT_DEADLINE: policy} if policy else {})}
    world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update(marks))
    world.agents["a"].grows = lambda offer: Bid(
        key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, text="no room", size=offer.size
    )
    resize(world, 5)
    world.advance(45.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, None, "")]
    return world


@pytest.mark.parametrize("policy", ["", "keep", "what nobody knows"])
def test_sl_52_a_growth_waits_on(policy: str) -> None:
    world = a_refused_growth(policy)
    world.advance(600.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)


def test_hd_622_a_growth_without_room_says_what_it_would_grow_and_that_its_own_cluster_was_asked() -> None:
    """HD-622: it said that no worker cluster can take it, and neither what it grows nor that one alone is asked."""
    world = a_refused_growth("keep")
    (text,) = [one["message"] for one in all_slices(world)[1]["status"]["conditions"] if one["type"] == "QuotaReserved"]
    assert text == "It grows what runs from 3 pods to 5 pods: its cluster cannot take that: a: QuotaBusy: no room"
    told = [one for one in world.emitted if one.reason == "NoClusterAvailable" and one.ref == THE_JOB]
    assert {one.message for one in told} == {text}


def test_sl_52_a_growth_is_rolled_back_and_not_wanted_again_before_its_user_changes_it() -> None:
    world = a_refused_growth("rollback")
    world.advance(60.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, None, "OutOfSync")]
    assert "ResizeRolledBack" in [one.reason for one in world.emitted]
    world.restart()
    world.advance(600.0)
    assert (len(all_slices(world)), used(world), len(world.runs)) == (2, 3, 1)
    world.agents["a"].grows = None
    resize(world, 4)
    world.advance(30.0)
    assert (seen(world)[-1], used(world), len(world.runs)) == ((3, 4, 4, ""), 4, 1)


def test_sl_52_what_is_rolled_back_may_shrink_all_the_same() -> None:
    world = a_refused_growth("rollback")
    world.advance(60.0)
    resize(world, 2)
    world.advance(10.0)
    assert (seen(world)[-1], used(world)) == ((3, 2, 2, ""), 2)


def test_sl_52_a_growth_moves_the_whole_chain() -> None:
    world = a_refused_growth("move")
    world.advance(120.0)
    assert [(epoch, cluster) for _, epoch, cluster in world.runs] == [(1, "a"), (2, "b")]
    assert (used(world), [one for one in seen(world) if not one[3]]) == (5, [(3, 5, 5, "")])
    assert "ResizeMoved" in [one.reason for one in world.emitted]


def test_sl_52_what_waits_for_quota_of_its_queue_has_no_deadline() -> None:
    world = an_answering_chain(cpu=4)
    marks = {RESIZE_DEADLINE: "60", AT_DEADLINE: "rollback"}
    world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update(marks))
    resize(world, 5)
    world.advance(600.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, None, "")]


def test_sl_52_a_growth_that_is_written_and_refused_is_taken_back_by_a_later_size_and_its_answer() -> None:
    """SL-52, SL-42: never by the deadline alone."""
    world = an_answering_chain()
    agent = world.agents["a"]
    agent.refuse_size = Refusal.QUOTA_BUSY
    agent.answers = False
    resize(world, 5)
    world.advance(250.0)
    assert used(world) == 5
    agent.refuse_size = None
    agent.grows = lambda offer: Bid(
        key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, text="no room", size=offer.size
    )
    agent.silent = True
    world.advance(100.0)
    opened = [one for one in seen(world) if not one[3]]
    assert (opened[0], used(world)) == ((3, 3, 5, ""), 5), "a deadline lowers nothing"
    agent.silent = False
    world.connect("a")
    world.settle()
    agent.answer_size(the_attempt(world).key)
    world.advance(30.0)
    opened = [one for one in seen(world) if not one[3]]
    assert (opened, used(world)) == ([(3, 3, 3, ""), (4, 5, None, "")], 3)
    assert (list(world.running), len(world.messages(Stop))) == (world.runs, 0)


def test_sl_52_a_growth_that_is_written_and_refused_moves_the_whole_chain_and_says_so_once() -> None:
    world = an_answering_chain()
    agent = world.agents["a"]
    marks = {RESIZE_DEADLINE: "60", AT_DEADLINE: "move"}
    world.api.edit(THE_JOB, lambda job: job["metadata"]["annotations"].update(marks))
    agent.refuse_size = Refusal.QUOTA_BUSY
    agent.answers = False
    resize(world, 5)
    world.advance(120.0)
    told = [one for one in world.emitted if one.reason == "ResizeMoved"]
    assert len({one.ref for one in told}) == len(told) == 2, "at the Workload and at the Job"
    assert [epoch for _, epoch, _ in world.runs][-1] == 2


def test_sl_52_nothing_moves_while_its_cluster_is_away() -> None:
    world = a_refused_growth("move")
    world.cut("a", lost=True)
    world.advance(600.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)
    assert not world.condition(all_slices(world)[0], "Evicted")
