"""Histories about a leader that found an old Lease, and concludes nothing before all clusters were heard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift_kube.values.resources import POD, WORKER_CLUSTER, WORKLOAD
from support.sim.disasters import home_put_back
from support.sim.history import History
from support.sim.manager import SimManager


def cold_leader_waits_for(history: History, missing: str) -> None:
    """Let another leader find an old Lease while a cluster that the record calls connected is cut off."""
    history.cut(missing)
    if any(each.elector.leads() for each in history.world.managers):
        history.kill_leader()
    history.until("another one leads", history.leads)
    assert history.leader.machine.core.caution.halted


def goes_on(history: History) -> None:
    history.until("dispatch goes on", lambda: not history.leader.machine.core.caution.halted)


@pytest.mark.parametrize("breaks", [False, True], ids=["one session", "resumed meanwhile"])
def test_hd_89_what_was_over_before_a_cold_leader_took_over_is_acknowledged_though_its_session_was_resumed(
    *, breaks: bool
) -> None:
    """HD-89: the last word was heard while nothing could be concluded, and a resumed session asks for no inventory."""
    history = History()
    history.edit("home", WORKER_CLUSTER, "a", {"spec": {"cordoned": True}})
    history.pod("one", seconds=30.0)
    assert history.until_runs("one") == "b"
    history.passes(20.0)
    leader = history.leader
    leader.dies_after_write(kind=WORKLOAD)  # its end is written, and not acknowledged any more
    history.until("the leader is dead", lambda: leader.process.dead)
    assert history.shows("one", "Finished")
    assert history.objects("b", POD)
    cold_leader_waits_for(history, "a")
    history.until_connected("b")
    history.passes(5.0)
    if breaks:
        history.world.net.break_all("b")
        history.passes(15.0)
    assert history.leader.machine.core.caution.halted, "a is not lost yet"
    goes_on(history)
    history.until("its pod is removed", lambda: not history.objects("b", POD))


# --- a lead that ends before it has heard all (HD-177) ------------------------------------------------------------


def unknown_to_the_record(history: History) -> None:
    """Restore the management cluster, under its managers' feet, to before what runs on b now; b is cut off.

    Nobody can prove it: a has greeted nobody since before the backup.
    """
    world = history.world
    world.start_manager()
    for cluster in ("a", "b"):
        history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": True}})
    history.pod("one")
    history.passes(20.0)
    history.cut("a")
    history.passes(12.0)
    copy, lease = history.home.store.copy(), replace(world.manager_lease)
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": False}})
    assert history.until_runs("one") == "b"
    history.cut("b")
    home_put_back(world, copy, lease)
    history.edit("home", WORKER_CLUSTER, "a", {"spec": {"cordoned": False}})
    history.until("all that knew the lost history have ended", lambda: not any(map(outlives, world.managers)))


def outlives(manager: SimManager) -> bool:
    return manager.outlives_a_restore


@pytest.mark.parametrize("leads", [1, 2], ids=["", "and the next as well"])
def test_hd_177_who_follows_a_lead_that_had_yet_to_hear_a_cluster_waits_for_it_as_well(leads: int) -> None:
    """HD-177: the standby saw the Lease move, but its holder had found an old record, and died before it heard b."""
    history = History()
    unknown_to_the_record(history)
    history.mend("a")
    history.until("one leads", history.leads)
    for _ in range(leads):
        before = history.leader
        assert before.machine.core.caution.halted
        history.world.start_manager()
        history.passes(8.0)
        assert not history.lost("b")
        history.kill_leader()
        history.until("the next one leads", history.leads)
        assert history.leader is not before
    history.passes(20.0)
    assert not history.lost("b")
    assert "before b has" in history.leader.machine.core.caution.halted
    history.mend("b")
    goes_on(history)
    history.passes(60.0)
    assert history.runs("one") == {"b"}


def test_hd_177_who_follows_a_lead_that_has_heard_all_waits_for_nobody() -> None:
    history = History()
    history.kill_leader()
    history.until("one leads", history.leads)
    assert history.leader.machine.core.caution.halted
    goes_on(history)
    history.world.start_manager()
    history.passes(30.0)
    history.cut("b")
    history.kill_leader()
    history.until("the next one leads", history.leads)
    assert not history.leader.machine.core.caution.halted
    history.pod("one")
    assert history.until_runs("one") == "a"
    assert not history.lost("b")


def test_hd_177_a_first_installation_is_settled_from_its_first_renewal_on() -> None:
    history = History()
    lease = history.world.manager_lease
    history.until("it is renewed", lambda: lease.settled == lease.term == 1, 5.0)


def test_hd_177_a_cluster_that_counts_as_lost_is_waited_for_by_nobody() -> None:
    """HD-177: the wait ends as ever, by a conditional write, whoever waits."""
    history = History()
    cold_leader_waits_for(history, "b")
    history.world.start_manager()
    history.passes(8.0)
    history.kill_leader()
    history.until("the next one leads", history.leads)
    history.pod("one")
    assert history.until_runs("one") == "a"
    assert history.lost("b")
