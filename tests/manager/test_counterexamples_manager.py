"""The counterexamples of the protocol that concern the manager, each replayed against its machine (rules R1 to R8, P7).

The trace is in the test; what must not happen is that the record is given up, or another cluster told to run, while the
first one may still lift.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.clusters.link_values import LinkOpened, LinkState, PlacementsInventoried, Reported
from gatelift.core.conclusions import inventories
from gatelift_kube.deciding.writes import Patch
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Commit,
    Confirm,
    CountsReport,
    Finished,
    Forget,
    GatesLifted,
    Offer,
    Refused,
    Stop,
    Stopped,
    Withdraw,
)
from gatelift_wire.values.refusals import Refusal
from support.manager.agents import ScriptedAgent
from support.manager.builders import Doc, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world


def committed(*, auto: bool = False) -> tuple[World, ScriptedAgent, PlacementKey]:
    """Return a world in which cluster a was told to run epoch 1 of a pod and has not lifted it."""
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.auto = auto
    world.api.apply(a_pod().document())
    world.settle()
    return world, world.agents["a"], world.agents["a"].commits[0]


def still_its_own(world: World, key: PlacementKey) -> None:
    """Check that the record still says epoch 1 on a, charged, and that nobody else was told to run."""
    assert world.find("Workload")["status"]["clusterName"] == "a"
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    assert world.machine.core.ledger.engine.charged(key.uid)
    assert {message.key for _, message in world.messages(Commit)} == {key}


def test_h1_an_inventory_asked_for_before_the_record_was_written_does_not_mean_gone() -> None:
    world = a_world(a_setting())
    before = world.machine.core.record_revision
    agent = world.agents["a"]
    world.api.apply(a_pod().document())
    world.settle()
    key = agent.commits[0]
    late = PlacementsInventoried(cluster="a", session=agent.session, record_revision=before, applied=10_000, entries=())
    world.upcall(late)
    world.settle()
    still_its_own(world, key)


def test_h1_an_inventory_that_had_not_applied_the_commit_does_not_mean_gone() -> None:
    world, agent, key = committed()
    commit = next(number for number, (_, message) in enumerate(world.links.log) if isinstance(message, Commit))
    assert commit
    now = world.machine.core.record_revision
    world.upcall(PlacementsInventoried(cluster="a", session=agent.session, record_revision=now, applied=0, entries=()))
    world.settle()
    still_its_own(world, key)


def test_h1_absence_after_record_and_commit_means_gone() -> None:
    world, agent, key = committed()
    now = world.machine.core.record_revision
    agent.placements.clear()
    world.upcall(
        PlacementsInventoried(
            cluster="a", session=agent.session, record_revision=now, applied=agent.applied, entries=()
        )
    )
    world.advance(5.0)
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"
    assert key not in agent.placements


def test_h3_a_reconnect_after_a_persons_word_is_stopped_and_its_lift_changes_nothing() -> None:
    world, agent, key = committed()
    world.cut("a", lost=True)
    world.fence("a")
    world.advance(5.0)
    assert world.find("Workload")["status"]["clusterName"] == "b"
    world.connect("a")
    agent.say(GatesLifted(key=key))
    world.settle()
    assert [message.key for cluster, message in world.messages(Stop) if cluster == "a"] == [key]
    assert world.find("Workload")["status"]["clusterName"] == "b"


def test_h3_a_persons_word_about_an_earlier_session_does_not_cover_what_was_told_later() -> None:
    world, _, key = committed()
    world.connect("a")
    world.settle()
    world.cut("a", lost=True)
    world.fence("a", through=1)
    world.settle()
    still_its_own_or_lost(world, key)


def still_its_own_or_lost(world: World, key: PlacementKey) -> None:
    assert {message.key for _, message in world.messages(Commit) if message.key.epoch > 1} == set()
    assert world.machine.core.ledger.engine.charged(key.uid)


def rewritten_by_another_leader(world: World, term: int) -> None:
    """Let another leader adopt the record, as rule R3 has it."""
    world.deposed(term)

    def adopt(workload: Doc) -> None:
        marks = workload["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]
        marks["gatelift.dev/term"] = str(term)

    for ref in [ref for ref in world.api.objects if ref.resource.kind == "Workload"]:
        world.api.edit(ref, adopt)


def test_h4_a_deposed_leader_that_reads_a_higher_term_steps_down_and_commands_nothing() -> None:
    world, _, key = committed()
    rewritten_by_another_leader(world, world.term + 1)
    world.settle()
    assert len(world.stepped_down) == 1
    assert world.stepped_down[0].endswith("was written in term 2, ours is 1; the Lease is in term 2, held by another")
    sent = len(world.links.log)
    world.connect("a")
    world.settle()
    assert len(world.links.log) == sent, "not even a confirmation"
    assert key in world.agents["a"].placements


def test_h5_a_woken_leaders_release_fails_on_the_resource_version_of_the_adopted_record() -> None:
    world, agent, key = committed()
    world.watch_late = True
    rewritten_by_another_leader(world, world.term + 1)
    agent.say(Refused(key=key, refusal=Refusal.TERM_STALE))
    world.advance(1.0)
    assert world.find("Workload")["status"]["clusterName"] == "a", "the release was refused by its precondition"
    world.watch_late = False
    world.advance(5.0)
    assert world.stepped_down
    assert world.find("Workload")["status"]["clusterName"] == "a"


def test_h6_a_leader_whose_view_is_behind_cannot_write_a_second_winner() -> None:
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod().document())
    world.settle()
    (offer,) = {message.key for _, message in world.messages(Offer)}
    world.watch_late = True

    def another_leader_writes(workload: Doc) -> None:
        workload.setdefault("status", {})["clusterName"] = "b"

    for ref in [ref for ref in world.api.objects if ref.resource.kind == "Workload"]:
        world.api.edit(ref, another_leader_writes)
    world.agents["a"].say(Bid(key=offer, kind=BidKind.HELD, hold_seconds=30.0))
    world.settle()
    assert not world.messages(Commit), "the winner's write failed, so nobody was told"


def test_h7_messages_of_a_used_epoch_change_nothing() -> None:
    world = a_world(a_setting())
    first = world.agents["a"]
    first.refuse_commit = Refusal.DENIED
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = {message.key for _, message in world.messages(Commit)}
    first.say(Bid(key=key, kind=BidKind.HELD, hold_seconds=30.0))
    first.say(Applied(key=key))
    first.say(GatesLifted(key=key))
    world.advance(5.0)
    assert [message.key.epoch for _, message in world.messages(Commit)] == [1, 2]
    assert ("a", Withdraw(key=key)) in world.messages(Withdraw), "a late hold is let go"
    assert ("a", Stop(key=key, reason="NotLive")) in world.messages(Stop), "a late lift is stopped"


def test_h8_a_bid_for_an_offer_of_an_earlier_session_wins_nothing() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    agent = world.agents["a"]
    agent.silent = True
    world.api.apply(a_pod().document())
    world.settle()
    (offer,) = {message.key for _, message in world.messages(Offer)}
    old = agent.session
    world.connect("a")
    stale = Reported(cluster="a", session=old, sequence=1, message=Bid(key=offer, kind=BidKind.HELD))
    world.upcall(stale)
    world.settle()
    assert not world.messages(Commit)


def test_h8_what_was_sent_in_a_session_that_was_resynced_is_computed_anew() -> None:
    world = a_world(a_setting())
    agent = world.agents["a"]

    def the_cable_breaks_before_the_commit(_: object) -> None:
        agent.silent = bool(world.messages(Offer))

    world.fail = the_cable_breaks_before_the_commit
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = {message.key for _, message in world.messages(Commit)}
    assert agent.placements[key].state == "Held"
    agent.silent = False
    world.connect("a")
    world.settle()
    assert [message.key for _, message in world.messages(Commit)] == [key, key], "the hold lived, the commit was lost"
    assert agent.placements[key].lifted


def test_h12_a_lost_cluster_is_told_nothing_and_its_late_reports_do_not_count() -> None:
    world, agent, key = committed()
    session = agent.session
    sent = len(world.links.log)
    world.cut("a", lost=True)
    for report in (Applied(key=key), GatesLifted(key=key), Stopped(key=key)):
        world.upcall(Reported(cluster="a", session=session, sequence=99, message=report))
    world.advance(60.0)
    still_its_own(world, key)
    assert len(world.links.log) == sent


def test_r1_a_placement_that_is_not_lifted_is_confirmed_in_each_new_session() -> None:
    world, agent, key = committed()
    world.connect("a")
    world.settle()
    world.connect("a", resumed=True)
    world.settle()
    assert [message.keys for _, message in world.messages(Confirm)] == [(key,), (key,)]
    assert [message.key for _, message in world.messages(Commit)] == [key]
    agent.lift(key)
    world.settle()
    world.connect("a")
    world.settle()
    assert len(world.messages(Confirm)) == 2, "running needs no confirmation"


def test_hd_134_what_runs_is_confirmed_where_its_agent_asks_for_it_once_in_a_session() -> None:
    world, agent, key = committed(auto=True)
    agent.show(key, RUNNING)
    world.settle()
    world.connect("a")
    world.settle()
    before = len(world.messages(Confirm))
    agent.say(Applied(key=key, waits=True))
    agent.say(Applied(key=key, waits=True))
    world.settle()
    assert [message.keys for _, message in world.messages(Confirm)][before:] == [(key,)]
    world.connect("a")
    world.settle()
    assert len(world.messages(Confirm)) == before + 1, "nobody has asked in this session"


def test_hd_134_what_runs_is_confirmed_only_after_its_record_was_rewritten() -> None:
    world, agent, key = committed(auto=True)
    agent.show(key, RUNNING)
    world.settle()
    world.restart()
    world.settle()
    world.api.writes.clear()

    def fail(command: object) -> None:
        assert not world.messages(Confirm), f"{key} was confirmed before the record was ours"

    world.fail = fail
    world.agents["a"].say(Applied(key=key, waits=True))
    world.settle()
    assert world.writes("Workload")
    assert [message.keys for _, message in world.messages(Confirm)] == [(key,)]


def test_hd_134_an_older_attempt_whose_agent_asks_for_a_confirmation_is_stopped() -> None:
    world, agent, key = committed(auto=True)
    world.settle()
    agent.say(Applied(key=PlacementKey(key.uid, key.epoch - 1), waits=True))
    world.settle()
    assert [message.key.epoch for _, message in world.messages(Stop)] == [key.epoch - 1]
    assert not world.messages(Confirm)


def test_r3_a_new_leader_rewrites_an_inherited_record_before_it_confirms() -> None:
    world, _, key = committed()
    world.api.writes.clear()
    world.restart()
    world.settle()
    adopted = [body for verb, ref, body in world.api.writes if ref.resource.kind == "Workload"]
    (body,) = [one for one in adopted if isinstance(one, dict)]
    mark = body["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]
    assert mark["gatelift.dev/term"] == "2"
    assert [message.keys for _, message in world.messages(Confirm)] == [(key,)]


def test_r3_a_confirmation_waits_for_the_rewritten_record() -> None:
    world, _, key = committed()

    def fail(command: object) -> None:
        assert isinstance(command, Patch)
        assert not world.messages(Confirm), f"{key} was confirmed before the record was ours"

    world.restart()
    world.fail = fail
    world.settle()
    assert world.messages(Confirm)


def test_r3_a_running_placement_is_not_rewritten() -> None:
    world, agent, key = committed(auto=True)
    agent.show(key, RUNNING)
    world.settle()
    world.api.writes.clear()
    world.restart()
    world.settle()
    assert not world.writes("Workload")


def test_r3_an_unknown_placement_is_stopped_only_after_the_record_was_read_again() -> None:
    world = a_world(a_setting())
    agent = world.agents["a"]
    unknown = PlacementKey("uid-of-nobody", 3)
    world.watch_late = True
    agent.say(Applied(key=unknown))
    world.settle()
    reads = [command for command in world.history if type(command).__name__ == "ReadAll"]
    assert len(reads) == 1
    assert [message.key for _, message in world.messages(Stop)] == [unknown]


def test_p7_the_end_of_an_old_epoch_is_acknowledged_and_changes_nothing() -> None:
    world, agent, key = committed(auto=True)
    known = world.find("Workload")["metadata"]["uid"]
    assert known == key.uid
    other = world.agents["b"]
    other.say(Finished(key=key, succeeded=True))
    world.settle()
    still_its_own(world, key)
    assert ("b", Forget(key=key)) in world.messages(Forget)
    assert agent.placements[key].lifted


def test_p7_counts_of_a_placement_on_another_cluster_are_answered_with_a_stop_once() -> None:
    world, _, key = committed(auto=True)
    other = world.agents["b"]
    for _ in range(3):
        other.say(CountsReport(key=key, pod_sets=()))
    world.settle()
    assert [cluster for cluster, _ in world.messages(Stop)] == ["b"]


def test_a_resync_with_many_unknown_placements_drops_none_without_a_person() -> None:
    world = a_world(a_setting())
    agent = world.agents["a"]
    entries = tuple(
        InventoryEntry(key=PlacementKey(f"ghost-{n}", 1), namespace="team", name="x", state="Running", lifted=True)
        for n in range(20)
    )
    view = world.links.views["a"]
    world.links.views["a"] = replace(view, session=view.session + 1, state=LinkState.CONNECTED)
    agent.session = view.session + 1
    world.upcall(
        PlacementsInventoried(cluster="a", session=agent.session, record_revision=0, applied=0, entries=entries)
    )
    world.upcall(LinkOpened(cluster="a", session=agent.session, resumed=False))
    world.settle()
    assert not world.messages(Stop)
    assert any("in no record" in note.text for note in world.notes)


def test_a_large_inventory_is_compared_in_steps_and_nothing_is_said_before_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inventories, "COMPARED_PER_CALL", 5)
    world = a_world(a_setting(cpu=100, clusters=("a",)), clusters=("a",))
    for agent in world.agents.values():
        agent.auto = False
    for number in range(20):
        world.api.apply(a_pod(f"pod-{number}").document())
    world.settle()
    assert len(world.agents["a"].commits) == 20
    world.connect("a")
    assert not world.messages(Confirm), "two calls have compared a part"
    world.settle()
    assert len(world.messages(Confirm)) == 20
