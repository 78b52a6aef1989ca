"""HD-31: what the leader's counter proves that an agent brings back, and what its seal keeps anybody from inventing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.api import events
from gatelift.core.api.commands import SettleLease, StepDown
from gatelift.core.api.counter import Counter, Proof
from gatelift.core.clusters.link_values import CounterProved, PlacementsInventoried
from gatelift.core.conclusions import recovery
from gatelift.core.state.recovery_values import COUNTER_JUMP, Finding, RecoverWord
from gatelift_kube.deciding.election import Tenure, holder_digest
from gatelift_kube.objects.gatelift import Predecessor
from gatelift_wire.sessions.leases import UNCOUNTED, Sealed
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

KEY = bytes(range(32))


def tenure(holder: str, found: int) -> Tenure:
    return Tenure(holder_digest(holder), found)


FIRST = Counter(KEY, "origin", "m1", 100, (tenure("m1", 0),))
SECOND = Counter(KEY, "origin", "m2", 180, (tenure("m1", 0), tenure("m2", 120)))
"""It took over when the Lease counted 120."""
RESTORED = Counter(KEY, "origin", "m3", 500, (tenure("m1", 0), tenure("m3", 90)))
"""It began from a backup of when m1 led and the Lease counted 90, and has counted on since."""


def test_hd_31_what_was_granted_in_the_history_of_the_record_is_older() -> None:
    assert SECOND.judge("a", FIRST.sealed("a")) is Proof.OLDER
    assert SECOND.judge("a", SECOND.sealed("a")) is Proof.OLDER
    assert SECOND.judge("a", UNCOUNTED) is Proof.SILENT


@pytest.mark.parametrize("counter", [FIRST, SECOND, replace(FIRST, recorded=91)], ids=["m1", "m2", "m1-just-after"])
def test_hd_31_what_was_granted_after_the_backup_proves_a_restore_however_far_the_new_leader_counts(
    counter: Counter,
) -> None:
    assert RESTORED.judge("a", counter.sealed("a")) is Proof.RESTORED
    assert RESTORED.judge("a", replace(FIRST, recorded=90).sealed("a")) is Proof.OLDER


def test_hd_31_a_worker_can_repeat_a_seal_and_not_invent_one() -> None:
    true = FIRST.sealed("a")
    forged = [
        Sealed(true.counter + 1, true.seal),
        Sealed(true.counter, true.seal[:8] + bytes(40)),
        Sealed(true.counter, b""),
        Sealed(true.counter, true.seal[:16]),
        Sealed(0, true.seal),
        FIRST.sealed("b"),
        replace(FIRST, key=bytes(32)).sealed("a"),
    ]
    assert [SECOND.judge("a", each) for each in forged] == [Proof.UNVERIFIED] * len(forged)


def test_hd_31_the_number_of_another_management_cluster_says_nothing_about_ours() -> None:
    assert SECOND.judge("a", replace(FIRST, origin="elsewhere").sealed("a")) is Proof.SILENT


def test_hd_31_after_a_recovery_nobody_can_tell_what_an_older_number_proves() -> None:
    recovered = Counter(KEY, "origin", "m4", 10_002, (tenure("m4", 10_000),))
    assert recovered.judge("a", SECOND.sealed("a")) is Proof.FORMER
    assert recovered.judge("a", recovered.sealed("a")) is Proof.OLDER


def test_hd_31_without_a_key_nobody_counts() -> None:
    keyless = replace(FIRST, key=b"")
    assert keyless.sealed("a") == UNCOUNTED
    assert keyless.judge("a", FIRST.sealed("a")) is Proof.SILENT
    assert "00010203" not in repr(FIRST)
    assert "key" not in repr(FIRST)


@pytest.mark.parametrize("proof", [Proof.UNVERIFIED, Proof.FORMER])
def test_hd_31_a_seal_that_does_not_verify_cordons_that_cluster_until_its_next_greeting(proof: Proof) -> None:
    world = a_world(a_setting())
    world.upcall(CounterProved(cluster="a", proof=proof, counter=7))
    for name in ("one", "two"):
        world.api.apply(a_pod(name).document())
    world.advance(5.0)
    assert {cluster for cluster, _ in world.messages(Commit)} == {"b"}
    assert not world.machine.core.caution.halted

    world.upcall(CounterProved(cluster="a", proof=Proof.OLDER, counter=9))
    assert not world.machine.core.caution.cordons("a")


@pytest.mark.parametrize(
    ("term", "counter", "steps_down"),
    [
        pytest.param(9, 5000 + COUNTER_JUMP + 1, False, id="HD-182: above all that was shown"),
        pytest.param(9, 5000 + COUNTER_JUMP, True, id="HD-182: it counts on from where it was"),
        pytest.param(8, 5000 + COUNTER_JUMP + 1, True, id="HD-182: its term was shown before"),
    ],
)
def test_hd_182_who_takes_over_at_a_word_to_go_on_leads_above_all_that_was_shown_or_not_at_all(
    term: int, counter: int, *, steps_down: bool
) -> None:
    """HD-182: the word may be said after the Lease was found free, and before it is taken."""
    world = a_world(a_setting())
    finding = Finding(why="restored", since="2026-01-01T00:00:00Z", counter=5000, term=8)
    said = RecoverWord(since=finding.since, epochs=1000, who="a person")
    state, core = world.machine.core.caution.recovery, world.machine.core
    state.finding, state.word = finding, said
    core.term = term
    world.history.clear()
    recovery.leads(core, warm=False, counter=counter)
    assert any(isinstance(each, StepDown) for each in core.commands) is steps_down
    assert (state.finding == finding) is steps_down, "who ends takes no step of the recovery"


# --- what a lead hands on (HD-177) ----------------------------------------------------------------------------------


def told(world: World) -> list[bool]:
    """Return what the Lease was made to say, in order."""
    return [each.settled for each in world.history if isinstance(each, SettleLease)]


def a_cold_lead() -> World:
    world = a_world(a_setting())
    recovery.leads(world.machine.core, warm=False, counter=1)
    return world


def test_hd_177_a_lead_that_waits_for_nobody_says_so_once() -> None:
    world = a_cold_lead()
    world.advance(60.0)
    assert told(world) == [True]
    world = a_world(a_setting())
    world.advance(60.0)
    assert told(world) == [], "it took that over"


def test_hd_177_a_lead_that_is_halted_takes_that_back() -> None:
    world = a_world(a_setting())
    world.upcall(CounterProved(cluster="a", proof=Proof.RESTORED, counter=7, term=3))
    assert told(world) == [False]


def test_hd_177_what_was_heard_is_written_before_the_lease_says_that_nobody_needs_to_hear_it() -> None:
    """HD-177: what a cluster runs and no record explains holds its place for the next leader by the status alone."""
    world = a_cold_lead()
    core, placed = world.machine.core, PlacementKey("uid-of-nobody", 1)
    entry = InventoryEntry(key=placed, namespace="team", name="one", state="RUNNING", lifted=True)
    view = world.links.views["a"]
    world.upcall(
        PlacementsInventoried(
            cluster="a", session=view.session, record_revision=core.record_revision, applied=0, entries=(entry,)
        )
    )
    world.advance(5.0)
    assert told(world) == []
    written = Predecessor(kind="*", namespace="team", name="one", workload_uid=placed.uid, epoch=placed.epoch)
    world.links.views["a"] = replace(view, predecessors=(written,))
    world.give(events.LeadershipExtended(valid_until=world.now + 1e9))
    assert told(world) == [True]
