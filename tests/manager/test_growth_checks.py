"""Checks of other controllers speak about a growth before it becomes what runs, and cost nothing that runs (SL-33)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_wire.values.messages import Bid, BidKind, Commit, Offer, Stop
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Resize
from manager.test_checks_required import foreign, require
from support.manager.builders import Doc, a_job
from support.manager.slice_world import (
    all_slices,
    an_answering_chain,
    charged,
    finished,
    hold_queue,
    number,
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
SELECTOR = [{"name": "main", "nodeSelector": {"pool": "new"}, "annotations": {"provisioned.example/by": "request-2"}}]


def say(world: World, state: str, *, of: int = -1, name: str = "budget", **more: Any) -> None:
    """Let the controller of a check say something of a slice: the last one."""

    def write(workload: Doc) -> None:
        found = next(one for one in workload["status"]["admissionChecks"] if one["name"] == name)
        found.update(state=state, message="said so", **more)

    world.api.edit(ref_of(all_slices(world)[of]), write)
    world.advance(2.0)


def a_checked_chain(*, clusters: tuple[str, ...] = ("a", "b"), **of: Any) -> World:
    """Return a chain that runs with three pods, whose queue asks for a check of another controller since."""
    world = an_answering_chain(clusters=clusters, **of)
    world.api.apply(foreign("budget"))
    require(world, *(("dispatch",) if clusters else ()), "budget")
    return world


def an_asking_chain(to: int = 5, **of: Any) -> World:
    """Return one that is to grow, and whose check is asked about that."""
    world = a_checked_chain(**of)
    resize(world, to)
    world.advance(3.0)
    return world


def states(document: Doc) -> dict[str, str]:
    return {one["name"]: one["state"] for one in document.get("status", {}).get("admissionChecks", [])}


def quota(world: World, document: Doc) -> str:
    return str(world.condition(document, "QuotaReserved").get("status"))


def waits(world: World) -> bool:
    """Say whether the last slice has nothing: no quota, no check that has said anything."""
    last = all_slices(world)[-1]
    return charged(last) is None and quota(world, last) == "False"


# --- asked ---------------------------------------------------------------------------------------------------------


@HOME
def test_sl_33_a_growth_is_reserved_and_waits_for_the_word_of_others_while_what_runs_runs_on(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "")]
    assert states(all_slices(world)[1])["budget"] == "Pending"
    assert world.condition(all_slices(world)[1], "Admitted") == {}
    assert used(world) == 5, "the chain is charged once, for the higher of both"
    assert the_attempt(world).uid == all_slices(world)[0]["metadata"]["uid"]
    assert (resizes(world), world.messages(Stop)) == ([], [])
    assert [one.size for _, one in world.messages(Offer) if one.size] == [], "its cluster is asked after them"


@HOME
def test_sl_33_ready_makes_it_what_runs_and_its_wishes_are_for_the_new_pods(clusters: Any) -> None:
    """UG-017: what the check wants on pods goes along with the size, and those that run are not touched."""
    world = an_asking_chain(clusters=clusters)
    runs = list(world.runs)
    say(world, "Ready", podSetUpdates=SELECTOR)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]
    (_, said), *_ = reversed(world.messages(Resize))
    additions = msgspec.json.decode(said.pod_sets[0].additions)
    assert (said.number, said.pod_sets[0].count, additions["nodeSelector"]) == (2, 5, {"pool": "new"})
    assert additions["annotations"]["provisioned.example/by"] == "request-2"
    assert (world.runs, used(world), world.messages(Stop)) == (runs, 5, [])
    admitted_by = world.condition(all_slices(world)[1], "gatelift.dev/AdmittedBy")
    assert admitted_by["message"] == "budget"
    assert states(all_slices(world)[1])["budget"] == "Ready"


def test_sl_33_the_record_keeps_winner_epoch_and_policy_beside_what_others_said() -> None:
    world = an_asking_chain()
    say(world, "Ready", podSetUpdates=SELECTOR)
    world.advance(5.0)
    first, second = (one["status"] for one in all_slices(world))
    ours = [next(one for one in status["admissionChecks"] if one["name"] == "dispatch") for status in (first, second)]
    assert ours[0] == ours[1]
    assert first["clusterName"] == second["clusterName"]
    assert sorted(states(all_slices(world)[1])) == ["budget", "dispatch"]


# --- against it ------------------------------------------------------------------------------------------------------


@HOME
def test_sl_33_retry_gives_back_what_runs_nothing_and_it_is_asked_again_later(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    epochs = [one["metadata"]["annotations"].get("gatelift.dev/epoch") for one in all_slices(world)]
    say(world, "Retry", requeueAfterSeconds=30, lastTransitionTime=_now(world))
    assert seen(world) == [(1, 3, 3, ""), (2, 5, None, "")]
    assert (used(world), world.messages(Stop)) == (3, [])
    assert "budget" in waits_for(world)
    assert states(all_slices(world)[1])["budget"] == "Pending", "it is asked anew"
    world.advance(20.0)
    assert waits(world)
    world.advance(20.0)
    assert charged(all_slices(world)[1]) == 5
    assert [one["metadata"]["annotations"].get("gatelift.dev/epoch") for one in all_slices(world)] == epochs
    say(world, "Ready")
    world.advance(5.0)
    assert seen(world)[1] == (2, 5, 5, "")
    assert finished(world, all_slices(world)[0]) == "WorkloadSliceReplaced"


def _now(world: World) -> str:
    return world.machine.core.wall.text(world.now)


@HOME
def test_sl_33_rejected_ends_the_slice_that_waits_and_its_like_is_not_made_again(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    say(world, "Rejected")
    world.advance(60.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "OutOfSync")]
    assert "budget" in world.condition(all_slices(world)[1], "Finished")["message"]
    assert (used(world), world.messages(Stop)) == (3, [])
    assert all(one["spec"].get("active", True) for one in all_slices(world)), "nothing is deactivated"
    world.restart()
    world.advance(30.0)
    assert len(all_slices(world)) == 2
    resize(world, 6)
    world.advance(5.0)
    assert seen(world)[2][1:] == (6, 6, "")


def test_sl_33_what_is_given_back_wakes_who_waits_for_it() -> None:
    world = an_asking_chain(to=9)
    other = a_job("other", parallelism=1, completions=1, cpu="5")
    world.api.apply(other)
    world.advance(5.0)
    assert used(world) == 9
    say(world, "Rejected")
    world.advance(5.0)
    assert used(world) == 8, "what was held to grow by is another's now"


# --- what comes between ----------------------------------------------------------------------------------------------


@HOME
@pytest.mark.parametrize("to", [4, 8])
def test_sl_33_another_size_gives_it_back_first_and_is_asked_about_anew(to: int, clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    resize(world, to)
    world.advance(5.0)
    assert seen(world)[0] == (1, 3, 3, "")
    assert seen(world)[-1][1:] == (to, to, "")
    assert states(all_slices(world)[-1])["budget"] == "Pending"
    assert used(world) == to
    say(world, "Ready")
    world.advance(5.0)
    assert seen(world)[-1][1:] == (to, to, "")
    assert resizes(world)[-1][1] == to


@HOME
def test_sl_33_the_size_of_before_ends_it(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    resize(world, 3)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "OutOfSync")]
    assert used(world) == 3


@HOME
def test_sl_33_less_than_runs_ends_it_and_lowers_what_runs(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    resize(world, 2)
    world.advance(8.0)
    assert seen(world) == [(2, 5, 5, "OutOfSync"), (3, 2, 2, "")]
    assert used(world) == 2


@HOME
def test_sl_33_the_next_leader_goes_on_with_what_is_asked(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    world.restart()
    world.advance(10.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "")]
    assert used(world) == 5
    say(world, "Ready")
    world.advance(10.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]
    assert resizes(world)[-1] == (2, 5)


@HOME
def test_sl_33_a_stopped_queue_takes_both_and_comes_back_with_what_ran(clusters: Any) -> None:
    """What runs is evicted, not what would grow it alone: the slice behind it waits in the next epoch (Size 1)."""
    world = an_asking_chain(clusters=clusters)
    hold_queue(world, "HoldAndDrain")
    assert [charged(one) for one in all_slices(world)] == [None, None]
    assert used(world) == 0
    assert {one["metadata"]["annotations"]["gatelift.dev/epoch"] for one in all_slices(world)} == {"2"}
    hold_queue(world, "None")
    say(world, "Ready", of=0)
    world.advance(10.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "")]
    assert world.condition(all_slices(world)[0], "Admitted")["status"] == "True"


def test_sl_33_whoever_preempts_asks_what_runs_to_leave() -> None:
    """In the engine what is reserved is charged to the slice that runs: it is the victim, whole."""
    world = an_asking_chain(to=10)
    first = all_slices(world)[0]["metadata"]["uid"]
    engine = world.machine.core.ledger.engine
    assert engine.charged(first)
    assert not engine.charged(all_slices(world)[1]["metadata"]["uid"])
    assert used(world) == 10


@HOME
def test_sl_33_what_runs_is_deleted_while_its_growth_is_asked_about(clusters: Any) -> None:
    """The slice behind it is no next one: it would run in an epoch that was used (R5)."""
    world = an_asking_chain(clusters=clusters)
    first = all_slices(world)[0]
    commits = len(world.messages(Commit))
    world.api.delete(ref_of(first))
    world.advance(10.0)
    assert not world.running
    assert [(number(one), finished(world, one)) for one in all_slices(world)] == [(1, ""), (2, "OutOfSync")]
    assert len(world.messages(Commit)) == commits, "the new chain asks its check first"


@HOME
def test_sl_33_the_slice_that_is_asked_about_may_be_deleted(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    world.api.delete(ref_of(all_slices(world)[1]))
    world.advance(5.0)
    assert seen(world)[0] == (1, 3, 3, "")
    assert seen(world)[-1][1:] == (5, 5, "")
    assert used(world) == 5, "another one takes its place"


@HOME
def test_sl_33_a_job_that_is_over_takes_it_along(clusters: Any) -> None:
    world = an_asking_chain(clusters=clusters)
    _finish(world)
    world.advance(10.0)
    assert used(world) == 0
    assert [finished(world, one) for one in all_slices(world)] == ["Succeeded", "OutOfSync"]


def _finish(world: World) -> None:
    attempt = the_attempt(world)
    over = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}
    world.agents[attempt.cluster].finish(attempt.key, {"succeeded": 100, "conditions": [over]}, message="done")


def test_sl_33_a_cluster_that_has_no_room_after_that_gives_it_back() -> None:
    world = an_asking_chain()
    for agent in world.agents.values():
        agent.grows = lambda offer: Bid(
            key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, size=offer.size
        )
    say(world, "Ready")
    assert waits(world)
    assert used(world) == 3


def test_sl_33_what_somebody_takes_away_is_asked_for_again() -> None:
    """Nothing runs by it: it is no record that is put back."""
    world = an_asking_chain()

    def strip(workload: Doc) -> None:
        workload["status"].pop("admission")
        workload["status"]["conditions"] = [
            one for one in workload["status"]["conditions"] if one["type"] != "QuotaReserved"
        ]

    world.api.edit(ref_of(all_slices(world)[1]), strip)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "")]
    assert used(world) == 5
