"""Histories about Leases that somebody deletes while they are held, on both real cores."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import ApiWrite, Create
from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from support.sim.agent import SimAgent
from support.sim.history import History

CREATE_SECONDS = 6.0
"""How long the API server takes for the pod: less than the time limit of writes."""
PAUSE_SECONDS = 6.5
"""Less than the holder of a Lease trusts itself for."""


def pauses_as_it_creates(history: History, agent: SimAgent, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let an agent pause while its create of a pod is slow, and wake when it is done; return what has happened."""
    time, port, told = history.world.time, agent.port, []
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if not isinstance(command, Create) or command.ref.resource != POD:
            send(command, deadline)
            return
        time.after(CREATE_SECONDS, lambda: port._land(command, answered=True))
        told.append("paused")
        agent.pause()
        time.after(PAUSE_SECONDS, agent.wake)

    monkeypatch.setattr(port, "_send", slow)
    return told


def test_hd_44_a_replica_that_finds_no_lease_lists_only_when_the_holders_writes_have_landed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HD-44: a person deletes the Lease of an agent that creates; its standby must not say that nothing is there."""
    history = History()
    world = history.world
    holder = history.agent("a")
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": True}})
    world.start_agent("a")
    history.passes(5.0)
    told = pauses_as_it_creates(history, holder, monkeypatch)
    history.pod("one")
    history.until("it is being created", lambda: bool(told))
    world.leases["a"].delete()
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": False}})
    history.passes(120.0)
    assert history.runs("one") == {"a"}
    assert history.containers("one") == 1
    assert not history.shows("one", "Evicted")
