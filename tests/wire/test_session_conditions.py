"""Conditions of the session that no other test had in view: HD-55."""

from __future__ import annotations

from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.leases import start_right_seconds
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Frame, Hello, LeaseRenew, Welcome
from gatelift_wire.values.refusals import CloseReason
from support.wire.session_link import Link

LATE = 12.0
"""Seconds for which an answer may wait for a write of facts."""


def _open() -> Link:
    link = Link(AgentSession(instance="agent-1"), ManagerSession(instance="manager-1"))
    link.settle()
    return link


def _welcomed() -> ManagerSession:
    """Return a manager's session that has asked for inventory 1 and waits for it."""
    manager = ManagerSession(instance="manager-1")
    manager.lead(1, 0.0)
    manager.handle(wire.StreamOpened(stream_id=1), 0.0)
    manager.handle(_frame(Hello(instance="agent-1"), session=0), 0.0)
    manager.welcome(1, 1, "origin", 0.0)
    manager.ask_inventory(1, 0.0)
    return manager


def _frame(control: Hello | InventoryChunk | LeaseRenew, session: int = 1) -> wire.FrameReceived:
    return wire.FrameReceived(stream_id=1, frame=Frame(session=session, sequence=1, control=(control,)))


def _ended(outputs: list[wire.SessionOutput]) -> list[CloseReason | None]:
    return [output.reason for output in outputs if isinstance(output, wire.SessionEnded)]


def test_hd_55_what_an_inventory_had_applied_is_the_same_in_all_its_chunks() -> None:
    """R4: a commit that was applied between two chunks may be absent from the first."""
    manager = _welcomed()
    manager._outbox.transmitted = 5
    entry = InventoryEntry(key=PlacementKey("u", 1), namespace="n", name="p", state="RUNNING", lifted=True)
    assert _ended(manager.handle(_frame(InventoryChunk(request=1, applied=3, entries=(entry,), last=False)), 1.0)) == []
    outputs = manager.handle(_frame(InventoryChunk(request=1, applied=4, last=True)), 1.0)
    assert _ended(outputs) == [CloseReason.PROTOCOL_VIOLATION]
    assert not any(isinstance(output, wire.InventoryReceived) for output in outputs)


def test_hd_55_a_renewal_that_is_answered_late_counts_from_its_reception() -> None:
    """R1: the agent counts from its sending, so the manager may not count from anything earlier than its arrival."""
    manager = _welcomed()
    manager.handle(_frame(LeaseRenew(sent_at=900.0)), 100.0 - limits.LOST_SECONDS)
    manager.grant(100.0 - limits.LOST_SECONDS + LATE)
    assert manager.right_until >= 100.0 - limits.LOST_SECONDS + start_right_seconds(limits.LEASE_SECONDS)


def test_hd_55_an_agent_resumes_with_its_own_manager_only() -> None:
    """R6: another process never kept its outbox, whatever its Welcome says."""
    link = _open()
    link.cut(lose=True)
    while link.agent_session.state is not wire.SessionState.GREETING:
        link.wait(0.5)
    stream = link.agent_session._stream
    assert stream is not None
    welcome = Welcome(session=9, instance="manager-2", version=1, resume=True, origin="origin", received=0)
    frame = Frame(session=9, term=1, sequence=1, control=(welcome,))
    outputs = link.agent_session.handle(wire.FrameReceived(stream_id=stream, frame=frame), link.now)
    assert not any(isinstance(output, wire.Welcomed) for output in outputs)
    assert not link.agent_session.live


def test_hd_55_the_right_to_start_ends_with_its_session() -> None:
    """R1: a new session grants anew, though the lease of the one before has not run out."""
    link = _open()
    assert link.agent_session.lease_valid(link.now)
    link.cut(lose=True)
    while not link.agent_session.live:
        link.wait(0.5)
        link.deliver(link.manager)
        if link.to_agent:
            link.deliver(link.agent)
    assert not link.agent_session.lease_valid(link.now)
    link.settle()
    assert link.agent_session.lease_valid(link.now)


def test_hd_60_another_agent_that_greets_ends_no_session_of_the_one_that_is_served() -> None:
    """R8: the two are bound by no Lease, so what one says of the cluster is not all that the other one does."""
    manager = ManagerSession(instance="manager-1")
    manager.lead(1, 0.0)
    manager.handle(wire.StreamOpened(stream_id=1), 0.0)
    manager.handle(_frame(Hello(instance="agent-1", cluster_uid="u", lease="x/one"), session=0), 0.0)
    for lease in ("x/two", "x/one"):
        manager.handle(wire.StreamOpened(stream_id=2), 0.0)
        hello = Hello(instance="agent-2", cluster_uid="u", lease=lease)
        outputs = manager.handle(
            wire.FrameReceived(stream_id=2, frame=Frame(session=0, sequence=1, control=(hello,))), 0.0
        )
        turned_away = any(isinstance(output, wire.AnotherGreeted) for output in outputs)
        assert turned_away is (lease == "x/two")
        greeted = [output.stream_id for output in outputs if isinstance(output, wire.GreetingReceived)]
        assert greeted == ([] if turned_away else [2])
