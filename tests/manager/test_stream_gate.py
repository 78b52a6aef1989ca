"""IS-10: what of a frame is decoded, and in which slices the core takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.adapters.frame_slices import BYTES_PER_ITEM, SLICE_MESSAGES, SLICE_PARTS, items, sliced
from gatelift.adapters.stream_gate import GREETING_BYTES_MAX, StreamGate, Worth
from gatelift_wire.encoding.pieces import Header
from gatelift_wire.sessions import session
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Close,
    CreditGrant,
    Evicted,
    Finished,
    Frame,
    Hello,
    LeaseRenew,
    ObjectReport,
    Stopped,
    Welcome,
)
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import TooLarge, WireViolation

KEY = PlacementKey("uid", 1)
STATE = ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=b"{}")
HELLO = Header(session=0, sequence=0, controls=1, messages=0)


def welcomed(*, resume: bool = False, received: int = 0) -> StreamGate:
    gate = StreamGate()
    assert gate.look(HELLO, 100) is Worth.WHOLE
    welcome = Welcome(session=7, instance="m", version=1, resume=resume, origin="o", received=received)
    gate.told(Frame(session=7, term=1, sequence=1, control=(welcome,)))
    return gate


def numbered(sequence: int, messages: int = 0, of: int = 7) -> Header:
    return Header(session=of, sequence=sequence, controls=0, messages=messages)


# --- session and sequence ------------------------------------------------------------------------------------------


def test_is_10_a_frame_of_an_older_session_is_not_taken_apart() -> None:
    gate = welcomed()
    assert gate.look(numbered(1, 256, of=6), limits.FRAME_BYTES_MAX) is Worth.NOTHING
    assert gate.look(numbered(1, 1), 100) is Worth.WHOLE, "and it has not moved the numbers"


def test_is_10_a_frame_of_a_session_that_is_not_yet_is_refused() -> None:
    with pytest.raises(WireViolation, match="session: must be 7, is 8"):
        welcomed().look(numbered(1, of=8), 100)


def test_is_10_a_gap_is_refused_and_what_came_before_is_not_taken_apart_again() -> None:
    gate = welcomed()
    assert gate.look(numbered(5, 3), 100) is Worth.WHOLE, "the first frame says where numbers begin"
    with pytest.raises(WireViolation, match="sequence: must be 8, is 9; messages between are missing"):
        gate.look(numbered(9, 1), 100)
    assert gate.look(numbered(5, 3), 100) is Worth.CONTROLS
    assert gate.look(numbered(7, 2), 100) is Worth.WHOLE, "one of the two is new"
    assert gate.look(numbered(9), 100) is Worth.WHOLE


def test_is_10_a_resumed_session_goes_on_where_its_welcome_says() -> None:
    gate = welcomed(resume=True, received=41)
    assert gate.look(numbered(40, 2), 100) is Worth.CONTROLS
    with pytest.raises(WireViolation, match="must be 42, is 43"):
        gate.look(numbered(43, 1), 100)


@pytest.mark.parametrize(
    "header",
    [Header(1, 1, 1, 0), Header(0, 1, 1, 1), Header(0, 1, 2, 0), Header(0, 1, 0, 0)],
    ids=["with a session", "with a report", "two controls", "nothing"],
)
def test_is_10_before_welcome_a_frame_is_one_small_control(header: Header) -> None:
    with pytest.raises(WireViolation, match="the first on a stream must be a Hello of session 0, alone"):
        StreamGate().look(header, 100)
    with pytest.raises(TooLarge, match="before Welcome"):
        StreamGate().look(HELLO, GREETING_BYTES_MAX + 1)


# --- slices --------------------------------------------------------------------------------------------------------


def test_is_10_what_an_agent_usually_sends_is_not_cut() -> None:
    frame = Frame(session=7, sequence=1, control=(LeaseRenew(sent_at=1.0),), messages=(Stopped(key=KEY),) * 64)
    assert list(sliced(frame)) == [frame]


def test_is_10_messages_keep_their_order_and_their_numbers_and_no_slice_is_large() -> None:
    keys = [PlacementKey("uid", number) for number in range(1, 257)]
    messages = tuple(Finished(key=key, succeeded=True, objects=(STATE,) * (key.epoch * 37 % 700)) for key in keys)
    frame = Frame(session=7, sequence=11, acknowledged=3, messages=messages)
    found = list(sliced(frame))
    assert [each for one in found for each in one.messages] == list(messages)
    expected = 11
    for one in found:
        assert (one.session, one.sequence, one.acknowledged) == (7, expected, 3)
        assert len(one.messages) <= SLICE_MESSAGES
        assert items(one) <= SLICE_PARTS + SLICE_MESSAGES
        expected += len(one.messages)


def test_is_10_long_texts_and_statuses_count_as_the_items_that_they_cost_as_much_as() -> None:
    text = Evicted(key=KEY, reason="R", message="x" * limits.TEXT_MAX)
    status = ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=b'{"a":"' + b"x" * 1_000_000 + b'"}')
    frame = Frame(session=7, sequence=1, messages=(*(text,) * 20, status, text))
    found = list(sliced(frame))
    per_slice = SLICE_PARTS * BYTES_PER_ITEM // limits.TEXT_MAX
    assert [len(each.messages) for each in found] == [per_slice, per_slice, 20 - 2 * per_slice, 1, 1]
    assert [one for each in found for one in each.messages] == list(frame.messages)


def test_is_10_a_renewal_is_taken_before_what_travels_with_it() -> None:
    controls = (LeaseRenew(sent_at=1.0), CreditGrant(credits=2))
    found = list(sliced(Frame(session=7, sequence=1, control=controls, messages=(Stopped(key=KEY),) * 200)))
    assert [each.control for each in found] == [controls, (), (), ()]


def entries(count: int) -> tuple[InventoryEntry, ...]:
    return tuple(
        InventoryEntry(key=PlacementKey(f"u{number}", 1), namespace="n", name="p", state="RUNNING", lifted=True)
        for number in range(count)
    )


def test_is_10_an_inventory_is_complete_with_its_last_slice_and_not_before() -> None:
    listed = entries(4000)
    chunk = InventoryChunk(request=3, applied=5, last=True, entries=listed, unheard=True)
    found = [one.control[0] for one in sliced(Frame(session=7, control=(LeaseRenew(sent_at=1.0), chunk)))]
    assert isinstance(found[0], LeaseRenew)
    chunks = [each for each in found[1:] if isinstance(each, InventoryChunk)]
    assert [(each.last, each.unheard) for each in chunks] == [(False, False)] * 3 + [(True, True)]
    assert tuple(entry for each in chunks for entry in each.entries) == listed
    assert {(each.request, each.applied) for each in chunks} == {(3, 5)}


def test_is_10_a_large_frame_that_has_no_order_is_refused() -> None:
    farewell = Close(reason=CloseReason.SHUTTING_DOWN)
    frame = Frame(session=7, sequence=1, control=(farewell,), messages=(Stopped(key=KEY),) * 200)
    with pytest.raises(WireViolation, match=r"Frame\.messages: must not travel in such numbers with Close"):
        list(sliced(frame))
    assert list(sliced(replace(frame, messages=frame.messages[:3])))


def open_session() -> ManagerSession:
    manager = ManagerSession(instance="m")
    manager.lead(1, 0.0)
    manager.handle(session.StreamOpened(stream_id=1), 0.0)
    hello = Hello(instance="a", kinds=("Pod",), version_min=1, version_max=1)
    manager.handle(session.FrameReceived(stream_id=1, frame=Frame(session=0, control=(hello,))), 0.0)
    manager.welcome(1, 7, "o", 0.0)
    manager.ask_inventory(1, 0.0)
    return manager


def taken(manager: ManagerSession, frames: list[Frame]) -> list[object]:
    out: list[object] = []
    for frame in frames:
        out += manager.handle(session.FrameReceived(stream_id=1, frame=frame), 1.0)
    return [each for each in out if not isinstance(each, session.Transmit)]


def test_is_10_a_session_hears_the_same_of_slices_as_of_the_frames_that_they_were() -> None:
    frames = [
        Frame(session=7, sequence=1, control=(InventoryChunk(request=1, applied=0, last=True, entries=entries(3000)),)),
        Frame(session=7, sequence=1, control=(LeaseRenew(sent_at=1.0),), messages=(Stopped(key=KEY),) * 200),
        Frame(session=7, sequence=201, messages=(Finished(key=KEY, succeeded=True, objects=(STATE,) * 2000),) * 3),
    ]
    cut = [slice_ for frame in frames for slice_ in sliced(frame)]
    assert len(cut) > len(frames)
    of_slices, of_frames = taken(open_session(), cut), taken(open_session(), frames)
    assert sorted(map(repr, of_slices)) == sorted(map(repr, of_frames)), "but that the renewal is heard first"
    opened, reports = session.Opened, session.Delivered
    assert [each for each in of_slices if isinstance(each, opened | reports)] == [
        each for each in of_frames if isinstance(each, opened | reports)
    ]


def test_is_10_a_session_that_ends_between_two_slices_takes_nothing_of_the_rest() -> None:
    manager = open_session()
    chunk = InventoryChunk(request=1, applied=0, last=True, entries=entries(3000))
    cut = list(sliced(Frame(session=7, sequence=1, control=(chunk,))))
    assert taken(manager, cut[:2]) == []
    manager.handle(session.StreamClosed(stream_id=1, text="gone"), 1.0)
    assert taken(manager, cut[2:]) == []
