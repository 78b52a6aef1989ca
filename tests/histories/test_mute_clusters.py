"""HD-352: a worker greets, renews its lease and never says what it has, while a leader waits for it: for so long only.

It never counts as lost. What the record has there is as that of a cluster that is lost; and where the record has lost
what runs there, the greeting itself has proven that, before any list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gatelift.assembly import new_machine
from gatelift.config import read_text
from gatelift.core.state.recovery_progress import Recovery
from gatelift.core.state.recovery_values import RecoveryStage
from gatelift.core.state.settings import CoreSettings
from gatelift_kinds.registry import SERVED
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire.values.inventory import InventoryChunk
from gatelift_wire.values.limits import CATCH_UP_SECONDS
from histories.test_recovery import cordon, found, say, until_found
from support.sim.disasters import home_put_back
from support.sim.history import History

BOUND = CoreSettings(origin="", kinds=SERVED).unheard_after
BEGINS_SECONDS = 60.0
"""In which another manager leads, and the clusters greet it."""

Lists = Callable[[InventoryChunk], tuple[InventoryChunk, ...]]


def says_nothing(_: InventoryChunk) -> tuple[InventoryChunk, ...]:
    return ()


def says_what_is_refused(chunk: InventoryChunk) -> tuple[InventoryChunk, ...]:
    """Send an empty chunk that is not the last, which ends the session at once: it greets anew after that."""
    return (replace(chunk, entries=(), foreign=(), unheard=False, last=False),)


def until_next_leads(history: History) -> None:
    before = history.leader
    history.kill_leader()
    history.until("the next one leads", lambda: history.leads() and history.leader is not before)
    assert history.leader.machine.core.caution.halted


def waits(history: History) -> str:
    return history.leader.machine.core.caution.halted


def passed_over(history: History) -> bool:
    return any("nobody waits for it any more" in line for line in history.world.time.trace)


@pytest.mark.parametrize("lists", [says_nothing, says_what_is_refused])
def test_hd_352_a_cluster_that_greets_and_never_lists_what_it_has_stops_the_dispatch_of_all_for_so_long_only(
    lists: Lists,
) -> None:
    """HD-352: it renews its lease, so it is never lost, and each of its sessions began the wait anew."""
    history = History()
    history.world.board.lists["b"] = lists
    until_next_leads(history)
    history.pod("home", queue="stays")
    history.pod("travels")
    history.passes(BOUND / 2)
    assert "before b has" in waits(history)
    history.until("dispatch goes on", lambda: not waits(history), BOUND / 2 + BEGINS_SECONDS)
    assert not history.lost("b")
    assert history.until_runs("home") == "local"
    assert history.until_runs("travels") == "a"
    assert passed_over(history)


def test_hd_352_what_the_record_has_at_a_cluster_that_is_passed_over_is_charged_and_runs_nowhere_else() -> None:
    history = History()
    cordon(history, "a")
    history.pod("one")
    assert history.until_runs("one") == "b"
    cordon(history, "a", on=False)
    history.world.board.lists["b"] = says_nothing
    until_next_leads(history)
    history.until("dispatch goes on", lambda: not waits(history), BOUND + BEGINS_SECONDS)
    history.passes(2 * BOUND)
    assert history.runs("one") == {"b"}
    assert history.shows("one", "Admitted")
    del history.world.board.lists["b"]
    history.until_connected("b")
    history.passes(30.0)
    assert history.runs("one") == {"b"}
    assert history.containers("one") == 1


def test_hd_352_a_slow_cluster_has_one_whole_list_after_its_first_greeting_to_be_heard() -> None:
    """HD-352: as long as an inventory may take, however late it has greeted."""
    history = History()
    history.world.board.lists["b"] = says_nothing
    until_next_leads(history)
    history.passes(110.0)
    assert "before b has" in waits(history)
    del history.world.board.lists["b"]
    history.world.net.break_all("b")
    history.until("dispatch goes on", lambda: not waits(history), 60.0)
    assert not passed_over(history)


def test_hd_352_where_its_greeting_proves_that_the_record_is_old_it_is_waited_for_however_long_it_says_nothing() -> (
    None
):
    """HD-352: what it runs the record has lost, and may not be run elsewhere for want of a list: H19."""
    history = History()
    world = history.world
    for cluster in ("a", "b"):
        cordon(history, cluster)
    history.pod("one")
    history.passes(20.0)
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    cordon(history, "b", on=False)
    assert history.until_runs("one") == "b"
    history.passes(30.0)
    for manager in world.managers:
        manager.kill()
    world.board.lists["b"] = says_nothing
    home_put_back(world, copy, lease)
    cordon(history, "a", on=False)
    history.until("one leads", history.leads)
    finding = until_found(history)
    history.passes(2 * BOUND)
    assert history.runs("one") == {"b"}
    say(history, finding)
    history.until("it waits", lambda: found(history).stage is RecoveryStage.WAITING)
    history.passes(2 * BOUND)
    assert found(history).stage is RecoveryStage.WAITING
    assert history.runs("one") == {"b"}
    del world.board.lists["b"]
    history.until("it is recovered", lambda: found(history).finding is None)
    history.passes(30.0)
    assert history.containers("one") <= 1


def test_hd_352_while_a_lead_waits_long_what_waits_says_for_whom_and_that_is_taken_back_when_it_is_over() -> None:
    """HD-352: `explain` said that its turn comes next, and its pod said nothing."""
    history = History()
    history.world.board.lists["b"] = says_nothing
    until_next_leads(history)
    history.pod("one", cpu="100")
    history.passes(5.0)
    assert reason_of(history, "one") != "DispatchHalted"
    history.passes(25.0)
    assert reason_of(history, "one") == "DispatchHalted"
    assert "before b has" in found(history).waits
    assert "before b has" in message_of(history, "one")
    history.until("dispatch goes on", lambda: not waits(history), BOUND)
    history.passes(10.0)
    assert reason_of(history, "one") == "ExceedsMaxQuota"
    assert not found(history).waits


def test_hd_352_a_lead_that_hears_its_clusters_at_once_writes_nothing_of_that_wait() -> None:
    history = History()
    until_next_leads(history)
    history.pod("one")
    assert history.until_runs("one")
    assert not [line for line in history.world.time.trace if "DispatchHalted" in line]
    assert not found(history).waits


def reason_of(history: History, name: str) -> str:
    return str(quota(history, name).get("reason", ""))


def message_of(history: History, name: str) -> str:
    return str(quota(history, name).get("message", ""))


def quota(history: History, name: str) -> dict[str, object]:
    known = history.workload(name)
    conditions = known.get("status", {}).get("conditions", []) if known is not None else []
    return next((each for each in conditions if each["type"] == "QuotaReserved"), {})


def a_cluster(*, session: int, term: int) -> WorkerCluster:
    return WorkerCluster(
        metadata=ObjectMeta(name="b", uid="b"), status=WorkerClusterStatus(connected=True, session=session, term=term)
    )


@pytest.mark.parametrize(
    ("session", "term", "begins"),
    [(8, 2, True), (7, 2, False), (8, 1, False)],
    ids=["first of this term", "of before, written to for something else", "by a leader of before, landing late"],
)
def test_hd_352_the_time_counts_from_a_session_that_was_written_in_this_term(
    session: int, term: int, *, begins: bool
) -> None:
    """HD-352: who has not greeted has shown no number, and is waited for until it counts as lost."""
    state = Recovery(clusters={"b": a_cluster(session=7, term=1)})
    state.begin_term(warm=False, counter=1, began="")
    assert state.begins(a_cluster(session=session, term=term), 2, 10.0) is begins
    assert state.unheard() == ({"b": 10.0} if begins else {})


def test_hd_352_the_time_is_that_of_a_silence_and_of_one_inventory_whatever_the_file_says() -> None:
    file = "gatelift: {leases: {lostAfter: 100s}}"
    machine = new_machine(read_text(file), "origin", "instance")
    assert machine.core.settings.unheard_after == 100.0 + CATCH_UP_SECONDS
