"""What clusters are told of sizes (KEP-77) and say of them: offers of a growth, Resize, answers, refusals, lists.

The records of it are in `test_sizes`; histories with the agent's own core in `tests/histories/test_sized_jobs.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import WORKLOAD
from gatelift_wire.values.keys import (
    ANNOTATION_SIZE,
    VERSION_OF_SIZES,
)
from gatelift_wire.values.messages import Bid, BidKind, Commit, Confirm, Offer, Stop, Withdraw
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Resize, SizeRefused, SliceFinished
from support.manager.builders import Doc
from support.manager.slice_world import (
    a_running_chain,
    a_slice_world,
    all_slices,
    an_answering_chain,
    an_elastic_job,
    charged,
    finished,
    ref_of,
    resize,
    resizes,
    seen,
    the_attempt,
    used,
    waits_for,
)
from support.manager.world import World

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


# --- growing -------------------------------------------------------------------------------------------------------


@HOME
def test_sl_50_a_growth_is_offered_then_written_then_said(clusters: Any) -> None:
    """SL-50, SL-41: nothing is said before it is charged."""
    world = a_running_chain(clusters=clusters)
    assert [one.size for _, one in world.messages(Commit)] == [1]
    happened: list[tuple[int, int | None, int]] = []
    resize(world, 5)
    while world.step():
        offers = [one for _, one in world.messages(Offer) if one.size]
        later = [charged(one) for one in all_slices(world)[1:]]
        state = (len(offers), later[0] if later else None, len(resizes(world)))
        if state not in happened:
            happened.append(state)
    assert happened == [(0, None, 0), (1, None, 0), (1, 5, 0), (1, 5, 1)]
    assert resizes(world) == [(2, 5)]


def test_sl_57_what_its_cluster_has_no_room_for_waits_and_says_so_and_holds_no_quota() -> None:
    """SL-57, SL-52 `keep`: typed, shown on target, current untouched."""
    world = a_running_chain()
    agent = world.agents["a"]
    agent.grows = lambda offer: Bid(
        key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, text="2 CPUs asked, 1 free", size=offer.size
    )
    resize(world, 5)
    world.advance(30.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)
    assert "a: QuotaBusy: 2 CPUs asked, 1 free" in waits_for(world)
    assert (list(world.running), len(world.messages(Stop)), resizes(world)) == (world.runs, 0, [])
    agent.grows = None
    world.advance(60.0)
    assert (seen(world)[-1], used(world), resizes(world)) == ((2, 5, 5, ""), 5, [(2, 5)])


def test_a_cluster_that_does_not_answer_holds_no_quota() -> None:
    world = a_running_chain()
    world.agents["a"].silent = True
    resize(world, 5)
    world.advance(120.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)
    assert "did not answer in time" in waits_for(world)


def test_a_growth_that_is_edited_gives_the_room_of_the_other_one_back() -> None:
    world = a_running_chain()
    world.agents["a"].silent = True
    resize(world, 5)
    world.advance(0.2)
    world.agents["a"].silent = False
    resize(world, 6)
    world.advance(60.0)
    assert [one.size for _, one in world.messages(Withdraw)] == [0, 2]
    assert (seen(world)[-1], resizes(world)) == ((3, 6, 6, ""), [(3, 6)])


def test_a_bid_that_comes_too_late_is_given_back() -> None:
    world = a_running_chain(cpu=4)
    key = the_attempt(world).key
    world.agents["a"].say(Bid(key=key, kind=BidKind.HELD, hold_seconds=30.0, size=9))
    world.advance(1.0)
    assert [one.size for _, one in world.messages(Withdraw)] == [0, 9]


def test_sl_53_a_growth_is_not_offered_to_a_cordoned_cluster() -> None:
    world = a_running_chain()
    world.connect("a", cordoned=True, why_cordoned="for a change of its nodes")
    resize(world, 5)
    world.advance(30.0)
    assert not [one for _, one in world.messages(Offer) if one.size]
    assert waits_for(world).endswith("and waits for that: for a change of its nodes")
    assert used(world) == 3
    world.connect("a", cordoned=False, why_cordoned="")
    world.advance(30.0)
    assert (seen(world)[-1], used(world)) == ((2, 5, 5, ""), 5)


# --- an older agent ------------------------------------------------------------------------------------------------


def test_an_older_agent_is_never_asked_to_resize_and_why_is_said() -> None:
    """A growth waits, a shrink lowers the count and keeps the charge; both are done once it is upgraded."""
    world = an_answering_chain()
    world.connect("a", version=VERSION_OF_SIZES - 1)
    said = len(world.links.log)
    resize(world, 5)
    world.advance(30.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)
    assert "sizes of elastic work need 3: upgrade it" in waits_for(world)
    resize(world, 2)
    world.advance(30.0)
    assert [one[:3] for one in seen(world) if not one[3]] == [(3, 2, 3)]
    assert (used(world), [one for _, one in world.links.log[said:] if isinstance(one, Resize | Confirm)]) == (3, [])
    world.connect("a", version=VERSION_OF_SIZES)
    world.advance(10.0)
    assert (used(world), resizes(world)[-1], len(world.runs)) == (2, (3, 2), 1)


def test_no_elastic_work_is_placed_where_sizes_are_not_known() -> None:
    world = a_slice_world()
    for name in ("a", "b"):
        world.connect(name, version=VERSION_OF_SIZES - 1)
    world.api.apply(an_elastic_job())
    world.advance(30.0)
    assert (used(world), world.messages(Offer)) == (0, [])
    world.connect("b", version=VERSION_OF_SIZES)
    world.advance(30.0)
    assert [cluster for _, _, cluster in world.runs] == ["b"]


# --- what is said in each session ----------------------------------------------------------------------------------


def test_in_a_session_that_is_resumed_the_number_is_confirmed_and_to_one_that_begins_anew_it_is_said() -> None:
    world = an_answering_chain()
    resize(world, 5)
    world.advance(5.0)
    world.connect("a", resumed=True)
    world.advance(5.0)
    confirmed = [one.sizes for _, one in world.messages(Confirm)][-1]
    assert ([(one.key, one.number) for one in confirmed], resizes(world)) == ([(the_attempt(world).key, 2)], [(2, 5)])
    world.connect("a")
    world.advance(5.0)
    assert resizes(world) == [(2, 5), (2, 5)]


@pytest.mark.parametrize("resumed", [False, True])
def test_sl_41_an_answer_counts_as_long_as_its_session_goes_on(*, resumed: bool) -> None:
    """SL-41: an agent that is resumed does not answer twice; one that lists anew answers anew."""
    world = a_running_chain()
    agent = world.agents["a"]
    world.fail = None
    resize(world, 2)
    world.advance(2.0)
    world.watch_late = True
    agent.answer_size(the_attempt(world).key)
    world.cut("a")
    world.settle()
    world.watch_late = False
    world.connect("a", resumed=resumed)
    world.advance(10.0)
    assert seen(world)[-1][2] == 3, "it was not heard: the session was cut"
    agent.answer_size(the_attempt(world).key)
    world.advance(10.0)
    assert (seen(world)[-1], used(world)) == ((2, 2, 2, ""), 2)


def test_sl_56_an_agent_that_lists_a_lower_size_is_told_the_present_one() -> None:
    world = an_answering_chain()
    agent = world.agents["a"]
    agent.silent = True
    resize(world, 2)
    world.advance(5.0)
    assert used(world) == 3
    agent.silent = False
    world.connect("a")
    world.advance(10.0)
    assert (resizes(world)[-1], used(world)) == ((2, 2), 2)


@HOME
def test_sl_56_a_later_size_in_an_inventory_holds_the_workload_and_is_charged(clusters: Any) -> None:
    """SL-56, HD-550, HD-34: a record that was restored knows less than its cluster; nothing is said before a person."""
    world = an_answering_chain(clusters=clusters)
    cluster = the_attempt(world).cluster
    agent = world.agents[cluster]
    (held,) = agent.placements.values()
    held.size, held.counts = 7, (("main", 8),)
    said = len(resizes(world))
    world.connect(cluster)
    world.advance(10.0)
    assert (used(world), len(resizes(world))) == (8, said), "what it lets run there"
    resize(world, 9)
    world.advance(30.0)
    record = all_slices(world)[0]
    assert world.condition(record, "gatelift.dev/Held").get("reason") == "SizeAhead"
    assert (used(world), len(resizes(world)), charged(all_slices(world)[-1])) == (8, said, None)
    agent.answer_size(the_attempt(world).key, 1)
    world.advance(10.0)
    assert used(world) == 8, "an answer about another size lowers nothing"
    resize(world, 3)
    world.advance(10.0)

    def raise_it(workload: Doc) -> None:
        workload["metadata"]["annotations"][ANNOTATION_SIZE] = "8"

    world.api.edit(ref_of(all_slices(world)[0]), raise_it)
    world.advance(30.0)
    assert (resizes(world)[-1], used(world)) == ((8, 3), 3)
    assert world.condition(next(one for one in all_slices(world) if charged(one)), "gatelift.dev/Held").get(
        "status"
    ) in {None, "False"}


# --- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 3, 2**63 - 1])
def test_sl_44_an_answer_about_another_size_lowers_nothing(number: int) -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(5.0)
    agent, key = world.agents["a"], the_attempt(world).key
    agent.say(SliceFinished(key=key, number=number))
    world.advance(10.0)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)
    agent.answer_size(key)
    agent.answer_size(key)
    world.advance(10.0)
    assert (seen(world), used(world)) == ([(2, 2, 2, "")], 2)


def test_sl_44_an_answer_of_another_cluster_lowers_nothing() -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(5.0)
    world.agents["b"].say(SliceFinished(key=the_attempt(world).key, number=2))
    world.advance(10.0)
    assert (seen(world), used(world)) == ([(2, 2, 3, "")], 3)


def test_sl_42_a_growth_after_a_shrink_is_charged_for_the_higher_of_both_until_its_own_answer() -> None:
    """SL-42: the lower size was said and not answered; what is said after it is of the later one."""
    world = a_running_chain(parallelism=8)
    resize(world, 2)
    world.advance(5.0)
    resize(world, 4)
    world.advance(5.0)
    assert (resizes(world), used(world), seen(world)[-1]) == ([(2, 2), (3, 4)], 8, (3, 4, 8, ""))
    assert [one.pod_sets[0].count for _, one in world.messages(Offer) if one.size] == [2]
    agent = world.agents["a"]
    agent.say(SliceFinished(key=the_attempt(world).key, number=2))
    world.advance(5.0)
    assert used(world) == 8
    agent.answer_size(the_attempt(world).key)
    world.advance(5.0)
    assert (used(world), seen(world)[-1]) == (4, (3, 4, 4, ""))


# --- refused once it is written --------------------------------------------------------------------------------------


def test_sl_57_a_size_that_is_refused_is_told_and_said_again_and_what_runs_is_untouched() -> None:
    world = an_answering_chain()
    agent = world.agents["a"]
    agent.refuse_size = Refusal.QUOTA_BUSY
    resize(world, 5)
    world.advance(20.0)
    assert (used(world), list(world.running), len(world.messages(Stop))) == (5, world.runs, 0)
    told = [one for one in world.emitted if one.reason == "SizeRefused" and one.ref.resource == WORKLOAD]
    assert len(told) == 1, "once for each cause"
    assert "does not carry out size 2: QuotaBusy: as told" in told[0].message
    assert 3 <= len(resizes(world)) <= 8, "at pauses that grow"
    agent.refuse_size = None
    world.advance(60.0)
    said = len(resizes(world))
    world.advance(600.0)
    assert (len(resizes(world)), agent.placements[the_attempt(world).key].size) == (said, 2)


# --- reclaim ---------------------------------------------------------------------------------------------------------


def a_chain_with_pods_that_are_over() -> World:
    """Return a chain of ten pods of which six are left to run, so that four give their quota back."""
    world = an_answering_chain(parallelism=10)
    world.agents["a"].count(the_attempt(world).key, active=6, remaining=6, reclaimable=4)
    world.advance(5.0)
    assert used(world) == 6
    return world


def test_sl_24_pods_that_are_over_are_not_taken_off_a_smaller_size() -> None:
    """SL-24, HD-551, EJ-007: six are left to run of ten pods, so four are free; of four none is, and all may run."""
    world = a_chain_with_pods_that_are_over()
    resize(world, 4)
    world.advance(5.0)
    assert (seen(world)[-1][:3], used(world)) == ((2, 4, 4), 4)
    world.agents["a"].count(the_attempt(world).key, active=3, remaining=3, reclaimable=1)
    world.advance(5.0)
    assert used(world) == 3


def test_sl_24_nor_by_a_leader_that_begins_with_the_smaller_size() -> None:
    """HD-551: it believes what the record shows as over until it has heard the cluster."""
    world = a_chain_with_pods_that_are_over()
    resize(world, 4)
    while charged(all_slices(world)[0]) != 4:
        assert world.step()
    world.agents["a"].silent = True
    world.restart()
    world.advance(5.0)
    assert (seen(world)[-1][:3], used(world)) == ((2, 4, 4), 4)


# --- leaders ---------------------------------------------------------------------------------------------------------


def test_sl_40_a_new_leader_says_a_size_only_of_a_record_in_its_own_term() -> None:
    """SL-40, R3: also where all of it was let go."""
    world = an_answering_chain()
    resize(world, 5)
    world.advance(5.0)
    world.agents["a"].answers = False
    world.boot()
    terms: list[int] = []

    def tell(who: Any, what: Any) -> None:
        if isinstance(what, Resize):
            (mark,) = all_slices(world)[-1]["status"]["admissionChecks"][0]["podSetUpdates"]
            terms.append(int(mark["annotations"]["gatelift.dev/term"]))

    world.links.tell = tell
    for name in world.agents:
        world.connect(name, **world.greetings[name])
    world.advance(20.0)
    assert (terms, used(world), len(world.runs)) == ([2], 5, 1)


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_sl_54_a_leader_that_dies_at_any_step_leaves_one_record_and_enough_charged(steps: int) -> None:
    """SL-54, SL-12: at no moment is less charged than its cluster was told."""
    world = an_answering_chain()
    for wanted in (8, 2):
        resize(world, wanted)
        for _ in range(steps):
            world.step()
            _is_charged(world)
        world.restart()
        for agent in world.agents.values():
            agent.answers = True
        world.advance(20.0)
        opened = [one for one in seen(world) if not one[3]]
        assert ([one[1:] for one in opened], used(world), len(world.runs)) == ([(wanted, wanted, "")], wanted, 1)
        assert dict(world.agents["a"].placements[the_attempt(world).key].counts) == {"main": wanted}


def _is_charged(world: World) -> None:
    """Check that no more is granted at its cluster than some slice is charged for."""
    granted = [dict(one.counts).get("main", 0) for one in world.agents["a"].placements.values()]
    assert max(charged(one) or 0 for one in all_slices(world)) >= max(granted, default=0)


def test_sl_41_an_answer_is_of_no_use_once_its_cluster_lists_anew() -> None:
    """SL-41: it was heard, and the write that lowers was refused; another agent may be there by now."""
    world = a_running_chain()
    resize(world, 2)
    world.advance(2.0)

    def refuses(write: Any) -> WriteError | None:
        return WriteError.CONFLICT if b"podSetAssignments" in getattr(write, "body", b"") else None

    world.fail = refuses
    world.agents["a"].answer_size(the_attempt(world).key)
    world.settle()
    world.cut("a")
    world.settle()
    world.fail = None
    world.connect("a")
    world.advance(10.0)
    assert (seen(world)[-1], used(world)) == ((2, 2, 3, ""), 3)
    world.agents["a"].answer_size(the_attempt(world).key)
    world.advance(10.0)
    assert used(world) == 2


def test_a_cluster_that_refuses_in_ever_other_words_is_told_of_once() -> None:
    """HD-552: no worker fills the log, or the events of a namespace, with what it says of a size."""
    world = an_answering_chain()
    agent, key = world.agents["a"], the_attempt(world).key
    agent.refuse_size = Refusal.QUOTA_BUSY
    resize(world, 5)
    world.advance(2.0)
    for turn in range(50):
        agent.say(SizeRefused(key=key, number=2, refusal=Refusal.QUOTA_BUSY, text=f"no room, {turn}"))
        world.advance(0.1)
    told = [one.ref.resource.kind for one in world.emitted if one.reason == "SizeRefused"]
    assert sorted(told) == ["Job", "Workload"]
    assert len(resizes(world)) < 10


def test_sl_56_a_later_size_that_says_no_counts_holds_the_workload_too() -> None:
    world = an_answering_chain()
    (held,) = world.agents["a"].placements.values()
    held.size, held.counts = 7, ()
    world.connect("a")
    world.advance(10.0)
    said = len(resizes(world))
    resize(world, 2)
    world.advance(30.0)
    assert (used(world), len(resizes(world))) == (3, said)


# --- counts that somebody edits ------------------------------------------------------------------------------------


def _edit_counts(world: World, count: int) -> None:
    """Let somebody change the counts of the record, and not its number."""
    record = [one for one in all_slices(world) if charged(one)][-1]
    world.api.edit(ref_of(record), lambda one: one["spec"]["podSets"][0].update(count=count))


@HOME
@pytest.mark.parametrize("wanted", [5, 4, 2])
@pytest.mark.parametrize("restart", [False, True], ids=["", "by the next leader"])
def test_hd_602_an_answer_to_a_number_is_about_the_counts_that_its_cluster_has_by_it(
    clusters: Any, wanted: int, *, restart: bool
) -> None:
    """SL-75, HD-708: what a person lowers in a Workload frees nothing, and what its cluster has is written back."""
    world = an_answering_chain(clusters=clusters, parallelism=5)
    (agent,) = [each for each in world.agents.values() if each.commits]
    step, checks = world.step, 0

    def watched() -> bool:
        nonlocal checks
        went = step()
        if world.machine.core.rebuilt:
            checks += 1
            has = max(count for held in agent.placements.values() for _, count in held.counts)
            counted = [charged(one) or 0 for one in all_slices(world) if not finished(world, one)]
            assert min(used(world), max(counted)) >= has
        return went

    world.step = watched  # type: ignore[method-assign]
    if wanted != 5:
        resize(world, wanted)
    _edit_counts(world, 2)
    if restart:
        world.restart()
    world.advance(60.0)
    assert checks
    assert [one[1:] for one in seen(world) if not one[3]] == [(wanted, wanted, "")]
    assert (len(world.runs), world.messages(Stop)) == (1, [])


def test_hd_602_hd_708_what_was_edited_is_put_back_by_a_slice_that_waits() -> None:
    """HD-708: the API server lets no count go up while quota is reserved; what waits is for what runs as well."""
    world = an_answering_chain(parallelism=5)
    resize(world, 99)
    world.advance(5.0)
    _edit_counts(world, 2)
    world.advance(60.0)
    assert ([one[1:] for one in seen(world)], used(world)) == ([(2, 5, ""), (99, None, "")], 5)
    resize(world, 4)
    world.advance(60.0)
    assert ([one[1:] for one in seen(world) if not one[3]], used(world)) == ([(4, 4, "")], 4)
