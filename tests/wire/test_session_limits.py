from dataclasses import replace

import pytest

from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.cutting import inventory_chunks
from gatelift_wire.sessions.session import SessionOutput, SessionState, Transmit
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import ForeignRun, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Confirm, Finished, Frame, Hello, Message, ObjectReport, Stop
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import IllegalUse, TooLarge, WireViolation
from support.wire.session_link import Link


def key(epoch: int) -> PlacementKey:
    return PlacementKey("u", epoch)


def open_link() -> Link:
    link = Link(AgentSession(instance="agent-1"), ManagerSession(instance="manager-1"))
    link.settle()
    return link


def sent(outputs: list[SessionOutput]) -> list[Message]:
    return [message for output in outputs if isinstance(output, Transmit) for message in output.frame.messages]


def ended(outputs: list[SessionOutput]) -> list[tuple[CloseReason | None, str]]:
    return [(output.reason, output.text) for output in outputs if isinstance(output, wire.SessionEnded)]


def test_the_window_holds_back_what_the_peer_has_not_acknowledged() -> None:
    agent = open_link().agent_session
    reports = [Applied(key=key(n)) for n in range(1, limits.WINDOW_MESSAGES_MAX + 101)]
    assert len(sent(agent.send(reports, 1.0))) == limits.WINDOW_MESSAGES_MAX
    stream = agent._stream
    assert stream is not None
    frame = Frame(session=1, term=1, sequence=1, acknowledged=100)
    assert sent(agent.handle(wire.FrameReceived(stream_id=stream, frame=frame), 1.1)) == reports[-100:]


def test_every_quarter_window_is_acknowledged_at_once() -> None:
    link = open_link()
    for number in range(1, limits.ACK_EVERY + 1):
        link.say(link.agent, Applied(key=key(number)))
    while link.deliver(link.manager):
        pass
    assert link.deliver(link.agent)
    assert link.agent_session.unacknowledged == 0


def test_a_full_outbox_ends_the_session_and_the_next_one_resyncs() -> None:
    agent = open_link().agent_session
    outputs = agent.send([Applied(key=key(n)) for n in range(1, limits.OUTBOX_MESSAGES_MAX + 2)], 1.0)
    assert ended(outputs)[0][0] is CloseReason.OUTBOX_FULL
    assert (agent.state, agent.unacknowledged) == (SessionState.CLOSED, 0)
    assert agent._lineage is None


def test_a_long_cut_overflows_into_a_resync() -> None:
    link = open_link()
    link.up = False
    link.cut(lose=True)
    agent = link.agent_session
    for start in range(0, limits.OUTBOX_MESSAGES_MAX + 1, 4096):
        agent.send([Applied(key=key(n)) for n in range(start + 1, start + 4097)], 1.0)
    assert agent.unacknowledged == 0
    link.agent.sent.clear()
    link.settle()
    assert link.agent.lineage == link.manager.lineage == 2


def test_a_message_that_breaks_a_limit_is_refused_before_anything_is_queued() -> None:
    manager = open_link().manager_session
    good = Stop(key=key(1), reason="Evicted")
    with pytest.raises(TooLarge, match=r"Stop\.message: must have at most 32768 bytes"):
        manager.send([good, Stop(key=key(2), reason="Evicted", message="x" * 40_000)], 1.0)
    with pytest.raises(WireViolation, match=r"Stop\.key\.epoch: must be between 1 and"):
        manager.send([Stop(key=key(0), reason="Evicted")], 1.0)
    assert manager.last_sequence == 0
    assert sent(manager.send([good], 1.0)) == [good]


def test_states_of_many_objects_go_ahead_of_the_end_that_is_too_heavy_with_them() -> None:
    agent = open_link().agent_session
    status = b'{"a":"' + b"x" * 300_000 + b'"}'
    objects = tuple(ObjectReport(key=key(1), kind="Pod", name=f"p{n}", uid="x", status=status) for n in range(5))
    told = sent(agent.send([Finished(key=key(1), succeeded=True, objects=objects)], 1.0))
    assert told == [*objects, Finished(key=key(1), succeeded=True)]


def test_a_long_confirmation_is_cut() -> None:
    manager = open_link().manager_session
    keys = tuple(key(n) for n in range(1, limits.KEYS_MAX + 11))
    told = sent(manager.send([Confirm(keys=keys)], 1.0))
    assert [len(one.keys) for one in told if isinstance(one, Confirm)] == [limits.KEYS_MAX, 10]


def entry(number: int) -> InventoryEntry:
    return InventoryEntry(key=key(number), namespace="n", name="p", state="RUNNING", lifted=True)


def test_an_agent_with_too_many_placements_says_so() -> None:
    link = open_link()
    manager, agent = link.manager_session, link.agent_session
    manager.ask_inventory(9, 1.0)
    agent._asked = 9
    outputs = agent.answer_inventory(9, [entry(1)] * (limits.INVENTORY_ENTRIES_MAX + 1), 1.0)
    assert ended(outputs) == [(CloseReason.TOO_LARGE, "inventory: must have at most 100000 entries, has 100001")]


def test_an_oversized_inventory_ends_one_session_at_the_manager() -> None:
    link = open_link()
    manager = link.manager_session
    stream = manager._stream
    assert stream is not None
    manager.ask_inventory(9, 1.0)
    entries = [entry(n) for n in range(1, limits.INVENTORY_ENTRIES_MAX + 2)]
    ends: list[tuple[CloseReason | None, str]] = []
    for chunk in inventory_chunks(9, 0, entries):
        frame = Frame(session=1, sequence=1, control=(chunk,))
        ends += ended(manager.handle(wire.FrameReceived(stream_id=stream, frame=frame), 1.0))
    assert ends == [(CloseReason.TOO_LARGE, "inventory: must have at most 100000 entries")]


def test_the_largest_inventory_travels() -> None:
    link = open_link()
    manager = link.manager_session
    link._take(link.manager, manager.ask_inventory(9, link.now))
    link.deliver(link.agent)
    stream = manager._stream
    assert stream is not None
    got: list[SessionOutput] = []
    for chunk in inventory_chunks(10, 0, []):
        assert (chunk.last, chunk.entries) == (True, ())
    manager.ask_inventory(10, link.now)
    for chunk in inventory_chunks(10, 0, [entry(n) for n in range(1, limits.INVENTORY_ENTRIES_MAX + 1)]):
        frame = Frame(session=1, sequence=1, control=(chunk,))
        got += manager.handle(wire.FrameReceived(stream_id=stream, frame=frame), link.now)
    received = [output for output in got if isinstance(output, wire.InventoryReceived)]
    assert [len(output.entries) for output in received] == [limits.INVENTORY_ENTRIES_MAX]


def test_foreign_runs_come_with_the_last_chunk_and_nowhere_else() -> None:
    run = ForeignRun(origin="former", kind="Job", namespace="team", name="one", count=2)
    link = open_link()
    manager = link.manager_session
    link._take(link.manager, manager.ask_inventory(9, link.now))
    stream = manager._stream
    assert stream is not None
    (chunk,) = inventory_chunks(9, 0, [entry(1)], (run,))
    early = Frame(session=1, sequence=1, control=(replace(chunk, last=False),))
    outputs = manager.handle(wire.FrameReceived(stream_id=stream, frame=early), link.now)
    assert "InventoryChunk.foreign" in ended(outputs)[0][1]
    link = open_link()
    manager = link.manager_session
    link._take(link.manager, manager.ask_inventory(9, link.now))
    stream = manager._stream
    assert stream is not None
    frame = Frame(session=1, sequence=1, control=(chunk,))
    outputs = manager.handle(wire.FrameReceived(stream_id=stream, frame=frame), link.now)
    assert [one.foreign for one in outputs if isinstance(one, wire.InventoryReceived)] == [(run,)]


def test_that_nodes_are_unheard_comes_with_the_last_chunk_and_nowhere_else() -> None:
    link = open_link()
    manager = link.manager_session
    link._take(link.manager, manager.ask_inventory(9, link.now))
    stream = manager._stream
    assert stream is not None
    (chunk,) = inventory_chunks(9, 0, [entry(1)], unheard=True)
    early = Frame(session=1, sequence=1, control=(replace(chunk, last=False),))
    outputs = manager.handle(wire.FrameReceived(stream_id=stream, frame=early), link.now)
    assert "InventoryChunk.unheard" in ended(outputs)[0][1]


def test_a_session_number_that_is_not_new_is_the_cores_mistake() -> None:
    manager = open_link().manager_session
    manager.handle(wire.StreamOpened(stream_id=50), 1.0)
    greeting = Frame(session=0, sequence=1, control=(_hello(),))
    manager.handle(wire.FrameReceived(stream_id=50, frame=greeting), 1.0)
    with pytest.raises(IllegalUse, match="session number: must be above 1, is 1"):
        manager.welcome(50, 1, "origin", 1.0)
    assert manager.state is SessionState.GREETING


def _hello() -> Hello:
    return Hello(instance="agent-2")


def test_an_inventory_request_number_that_does_not_grow_is_the_cores_mistake() -> None:
    manager = open_link().manager_session
    with pytest.raises(IllegalUse, match="inventory request: must be above 1, is 1"):
        manager.ask_inventory(1, 1.0)


def test_a_lease_longer_than_the_time_to_lost_is_refused() -> None:
    with pytest.raises(IllegalUse, match="lease_seconds: 55"):
        ManagerSession(instance="m", lease_seconds=55.0)


def test_a_thousand_agents_never_dial_in_step() -> None:
    """Agents whose jitter differs by a thousandth come back from one break spread over the first step."""
    times = set()
    for number in range(1000):
        agent = AgentSession(instance="a", jitter=number / 1000)
        agent.start(0.0)
        agent.handle(wire.StreamClosed(stream_id=1, text="refused"), 0.0)
        deadline = agent.next_deadline()
        assert deadline is not None
        assert 0.5 <= deadline <= limits.REDIAL_FIRST_SECONDS
        times.add(round(deadline, 4))
    assert len(times) > 900
