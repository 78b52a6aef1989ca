"""Histories about a leader that found an old Lease, and concludes nothing before all clusters were heard."""

from __future__ import annotations

import pytest

from gatelift_kube.resources import POD, WORKER_CLUSTER, WORKLOAD
from support.history import History


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
