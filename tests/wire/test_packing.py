"""Frames that wait travel together: what joins, what does not, when it is due, and that nothing is lost or turned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift_wire.encoding import codec
from gatelift_wire.sessions.packing import Packer, patience
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    CreditGrant,
    Forget,
    Frame,
    GatesLifted,
    LeaseRenew,
    Message,
    ObjectReport,
    Withdraw,
)

GAP = limits.WRITE_GAP_SECONDS
HOLD = limits.HOLD_SECONDS


def key(number: int) -> PlacementKey:
    return PlacementKey(f"uid-{number}", 1)


def frame(sequence: int, *messages: Message, acknowledged: int = 0, session: int = 7, **parts: object) -> Frame:
    return Frame(session=session, sequence=sequence, acknowledged=acknowledged, messages=messages, **parts)  # type: ignore[arg-type]  # named by the test


def lifted(number: int) -> Frame:
    return frame(number, GatesLifted(key=key(number)))


def shown(number: int) -> Frame:
    return frame(number, ObjectReport(key=key(number), kind="Pod", name="p", uid="u", status=b"{}"))


def packed(*frames: Frame, now: float = 0.0) -> Packer:
    packer = Packer(codec.join_from_agent)
    for one in frames:
        packer.put(one, codec.encode_from_agent(one), now)
    return packer


def busy(*frames: Frame, now: float) -> Packer:
    """Return the same of a stream on which much was written until long before the gap."""
    packer = Packer(codec.join_from_agent)
    for number in range(limits.WRITES_AT_ONCE):
        packer.put(lifted(number), codec.encode_from_agent(lifted(number)), now - 2 * GAP)
        packer.take(now - 2 * GAP)
    for one in frames:
        packer.put(one, codec.encode_from_agent(one), now)
    return packer


def taken(packer: Packer, now: float = 0.0) -> list[Frame]:
    found = []
    while packer.due is not None:
        found.append(codec.decode_from_agent(packer.take(now)))
    return found


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), max_size=60), st.integers(1, 2**40))
def test_messages_keep_order_and_number_and_the_last_acknowledgement_is_said(
    steps: list[tuple[int, int, bool]], first: int
) -> None:
    sequence, acknowledged, sent, given_frames = first, 0, [], []
    for count, acks, control in steps:
        acknowledged += acks
        messages = tuple(GatesLifted(key=key(sequence + index)) for index in range(count))
        controls = (CreditGrant(credits=1),) if control else ()
        given_frames.append(
            Frame(session=7, sequence=sequence, acknowledged=acknowledged, control=controls, messages=messages)
        )
        sent += list(enumerate(messages, start=sequence))
        sequence += count
    came = taken(packed(*given_frames))
    assert [pair for one in came for pair in enumerate(one.messages, start=one.sequence)] == sent
    assert [len(one.control) for one in came if one.control] == [1] * sum(bool(one.control) for one in given_frames)
    assert [one.acknowledged for one in came] == sorted(one.acknowledged for one in came)
    assert not came or came[-1].acknowledged == acknowledged
    assert all(one.session == 7 for one in came)


def test_frames_of_the_manager_join_with_their_term() -> None:
    packer = Packer(codec.join_from_manager)
    for number in (4, 5):
        one = Frame(session=7, term=3, sequence=number, acknowledged=9 + number, messages=(Forget(key=key(number)),))
        packer.put(one, codec.encode_from_manager(one), 0.0)
    joined = codec.decode_from_manager(packer.take(0.0))
    both = (Forget(key=key(4)), Forget(key=key(5)))
    assert joined == Frame(session=7, term=3, sequence=4, acknowledged=14, messages=both)
    assert packer.due is None


def test_an_acknowledgement_rides_on_what_comes_after_it() -> None:
    [only] = taken(packed(frame(5, acknowledged=8), frame(5, GatesLifted(key=key(5)), acknowledged=9)))
    assert (only.sequence, only.acknowledged, len(only.messages)) == (5, 9, 1)


@pytest.mark.parametrize(
    "after",
    [
        frame(3, GatesLifted(key=key(3))),
        frame(2, GatesLifted(key=key(2)), session=8),
        frame(2, GatesLifted(key=key(2)), control=(CreditGrant(credits=1),)),
    ],
    ids=["a gap in the numbers", "another session", "a control"],
)
def test_what_does_not_go_on_where_the_other_ended_travels_alone(after: Frame) -> None:
    packer = packed(lifted(1), after)
    assert packer.due == 0.0, "nothing can join the first any more"
    assert taken(packer) == [lifted(1), after]


def test_joined_frames_keep_within_the_limits() -> None:
    many = taken(packed(*(lifted(number) for number in range(1, 2 * limits.JOINED_MESSAGES_MAX + 2))))
    assert [len(one.messages) for one in many] == [limits.JOINED_MESSAGES_MAX, limits.JOINED_MESSAGES_MAX, 1]
    acks = packed(*(frame(1, acknowledged=number) for number in range(limits.JOINED_FRAMES_MAX + 1)))
    assert len(taken(acks)) == 2
    status = b'{"a":"' + b"x" * (limits.FRAME_BYTES_TARGET // 2) + b'"}'
    report = ObjectReport(key=key(1), kind="Pod", name="p", uid="", status=status)
    assert len(taken(packed(*(frame(number, report) for number in (1, 2, 3))))) == 3


def test_on_a_busy_stream_an_urgent_frame_is_due_at_once_and_the_next_after_the_gap() -> None:
    packer = busy(lifted(1), now=5.0)
    assert packer.due == 5.0
    packer.take(5.0)
    packer.put(lifted(2), codec.encode_from_agent(lifted(2)), 5.001)
    assert packer.due == 5.0 + GAP
    packer.put(lifted(3), codec.encode_from_agent(lifted(3)), 5.002)
    assert packer.due == 5.0 + GAP
    assert len(taken(packer)) == 1


def test_hd_690_where_little_is_written_nothing_waits_but_what_tidies_up() -> None:
    """HD-690: the only report in a second was held for others to travel with it, and its answer kept a gap to it."""
    packer = Packer(codec.join_from_agent)
    for number in range(limits.WRITES_AT_ONCE):
        now = 5.0 + number * GAP / 10
        packer.put(shown(number), codec.encode_from_agent(shown(number)), now)
        assert packer.due == now
        packer.take(now)
    last = 5.0 + (limits.WRITES_AT_ONCE - 1) * GAP / 10
    packer.put(shown(99), codec.encode_from_agent(shown(99)), last)
    assert packer.due == last + HOLD, "this is no calm stream any more"
    packer.take(last + HOLD)
    later = 5.0 + 2.5 * limits.WRITE_EVERY_SECONDS
    for number, due in ((1, later), (2, later + HOLD)):
        packer.put(shown(number), codec.encode_from_agent(shown(number)), later)
        assert packer.due == due, "one comes back after a while, and no more than that"
        packer.take(later)
    assert packed(frame(1, Applied(key=key(1))), now=5.0).due == 5.0 + limits.TIDY_SECONDS


def test_hd_690_what_is_written_in_a_second_has_a_bound() -> None:
    packer, writes, seconds = Packer(codec.join_from_agent), 0, 4.0
    for step in range(int(seconds * 1000)):
        now = step / 1000
        packer.put(lifted(step), codec.encode_from_agent(lifted(step)), now)
        while packer.due is not None and packer.due <= now:
            packer.take(now)
            writes += 1
    assert writes <= seconds / GAP + limits.WRITES_AT_ONCE


def test_what_nobody_waits_for_is_held_and_goes_with_what_somebody_waits_for() -> None:
    packer = busy(shown(1), now=5.0)
    assert packer.due == 5.0 + HOLD
    packer.put(shown(2), codec.encode_from_agent(shown(2)), 5.01)
    assert packer.due == 5.0 + HOLD, "the first one's time counts"
    packer.put(lifted(3), codec.encode_from_agent(lifted(3)), 5.011)
    assert packer.due == 5.011
    [only] = taken(packer, 5.011)
    assert len(only.messages) == 3


def test_nothing_is_held_when_the_end_is_near() -> None:
    packer = busy(shown(1), now=5.0)
    packer.hurry(5.001)
    assert packer.due == 5.001


def test_what_waits_is_counted_until_it_is_taken() -> None:
    packer = packed(shown(1), shown(2))
    assert (packer.frames, packer.size) == (2, 2 * len(codec.encode_from_agent(shown(1))))
    taken(packer)
    assert (packer.frames, packer.size) == (0, 0)


def test_what_only_tidies_up_waits_longest_and_what_somebody_waits_for_not_at_all() -> None:
    assert patience(frame(1)) == patience(frame(1, Forget(key=key(1)))) == limits.TIDY_SECONDS
    assert patience(frame(1, Forget(key=key(1)), Withdraw(key=key(2)))) == HOLD
    assert patience(frame(1, Applied(key=key(1)))) == limits.TIDY_SECONDS  # the lift behind it says the same
    assert patience(frame(1, Applied(key=key(1)), GatesLifted(key=key(1)))) == 0.0
    assert patience(frame(1, control=(CreditGrant(credits=1),))) == 0.0


def test_what_is_held_and_comes_first_goes_when_the_one_behind_it_must() -> None:
    packer = packed(frame(1, acknowledged=3), now=5.0)
    assert packer.due == 5.0 + limits.TIDY_SECONDS
    packer.put(shown(1), codec.encode_from_agent(shown(1)), 5.01)
    assert packer.due == 5.01
    packer = busy(frame(1, acknowledged=3), now=5.0)
    packer.put(shown(1), codec.encode_from_agent(shown(1)), 5.01)
    assert packer.due == 5.01 + HOLD


def test_is_10_a_renewal_does_not_wait_for_the_inventory_of_its_own_agent() -> None:
    entry = InventoryEntry(key=key(1), namespace="n", name="p", state="RUNNING", lifted=True)
    chunks = [
        frame(3, control=(InventoryChunk(request=1, applied=0, last=number == 4, entries=(entry,)),))
        for number in range(5)
    ]
    renewal = frame(3, control=(LeaseRenew(sent_at=9.0),))
    assert taken(packed(lifted(2), *chunks, renewal)) == [lifted(2), renewal, *chunks]


def test_is_10_a_renewal_overtakes_no_message_and_nothing_of_another_session() -> None:
    chunk = InventoryChunk(request=1, applied=0, last=True)
    renewal = frame(4, control=(LeaseRenew(sent_at=9.0),))
    before = [frame(3, control=(chunk,)), lifted(3)]
    assert taken(packed(*before, renewal)) == [*before, renewal]
    of_another = frame(4, control=(chunk,), session=6)
    assert taken(packed(of_another, renewal)) == [of_another, renewal]
