"""What an agent says of the count of its own Lease: what it found until a session has begun, then what it counts."""

from __future__ import annotations

from gatelift_wire.sessions.session import StreamOpened, Transmit
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values.messages import Hello, LeaseRenew, Message


def said(session: AgentSession, stream: int, now: float) -> Hello:
    outputs = session.handle(StreamOpened(stream_id=stream), now)
    (hello,) = [control for each in outputs if isinstance(each, Transmit) for control in each.frame.control]
    assert isinstance(hello, Hello)
    return hello


def test_hd_22_a_greeting_says_what_was_found_however_often_the_lease_was_renewed_since() -> None:
    session = AgentSession(instance="a1")
    session.identify("u1", 50)
    session.start(1.0)
    session.set_mark(90)
    hello = said(session, 1, 1.0)
    assert (hello.cluster_uid, hello.mark) == ("u1", 50)


def test_marks_and_uids_have_defaults_for_ends_of_before() -> None:
    message: Message | LeaseRenew = LeaseRenew(sent_at=1.0)
    assert isinstance(message, LeaseRenew)
    assert message.mark == 0
    assert Hello(instance="a").cluster_uid == ""
