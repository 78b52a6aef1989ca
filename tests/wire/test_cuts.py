"""IS-10: a large frame is cut into frames that say the same one after the other, and none of them is dear to decode."""

from __future__ import annotations

import random

import pytest

from gatelift_wire.encoding import codec, cuts
from gatelift_wire.encoding.pieces import PIECE_BYTES
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CreditGrant, Finished, Frame, LeaseRenew, ObjectReport, Report, Stopped

KEY = PlacementKey("uid", 1)
STATE = ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=b"{}")
UNKNOWN = b"\xfa\x3f"  # the tag of field 1023, which no schema has, with a length


def cut_from_agent(data: bytes) -> list[bytes]:
    return list(cuts.cut_from_agent(data, codec.header_from_agent(data).sequence))


def a_message(rng: random.Random) -> Report:
    match rng.randrange(3):
        case 0:
            return Stopped(key=KEY)
        case 1:
            return Finished(key=KEY, succeeded=True, objects=(STATE,) * rng.choice((1, 500, 8000)))
        case _:
            text = b'{"a":"' + b"x" * rng.randrange(0, 2 * PIECE_BYTES) + b'"}'
            return ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=text)


@pytest.mark.parametrize("seed", range(30))
def test_is_10_parts_say_what_the_frame_says_in_order_and_are_small(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (a seed that is told)
    messages = tuple(a_message(rng) for _ in range(rng.randrange(1, 20)))
    control = (LeaseRenew(sent_at=1.0), CreditGrant(credits=3))[: rng.randrange(3)]
    frame = Frame(session=7, sequence=40, acknowledged=9, control=control, messages=messages)
    data = codec.encode_from_agent(frame)
    parts = cut_from_agent(data)
    found = [codec.decode_from_agent(one) for one in parts]
    assert tuple(each for one in found for each in one.messages) == messages
    assert [one.control for one in found] == [control] + [()] * (len(found) - 1)
    assert {(one.session, one.acknowledged) for one in found} == {(7, 9)}
    sequence = 40
    for one, part in zip(found, parts, strict=True):
        assert one.sequence == sequence, "each says where it stands"
        assert len(one.messages) == 1 or len(part) <= PIECE_BYTES + 256, "one that is larger has one message"
        sequence += len(one.messages)


def test_is_10_a_small_frame_is_not_touched() -> None:
    data = codec.encode_from_agent(Frame(session=7, sequence=1, messages=(Stopped(key=KEY),) * 20))
    assert cut_from_agent(data) == [data]


def test_is_10_a_large_frame_without_messages_stays_whole() -> None:
    data = pb.AgentMessage(session=7, control=[pb.AgentControl()]).SerializeToString() + UNKNOWN + _sized(100_000)
    (part,) = cut_from_agent(data)
    assert pb.AgentMessage.FromString(part) == pb.AgentMessage.FromString(data)


def test_is_10_of_joined_frames_the_last_word_counts_in_each_part() -> None:
    large = Finished(key=KEY, succeeded=True, objects=(STATE,) * 8000)
    joined = b"".join(
        codec.encode_from_agent(Frame(session=number, sequence=number, acknowledged=number, messages=(large,)))
        for number in (3, 4)
    )
    found = [codec.decode_from_agent(part) for part in cut_from_agent(joined)]
    assert [(one.session, one.sequence, one.acknowledged) for one in found] == [(4, 4, 4), (4, 5, 4)]


def test_is_10_what_nobody_knows_is_not_said_by_each_part() -> None:
    large = Finished(key=KEY, succeeded=True, objects=(STATE,) * 8000)
    data = codec.encode_from_agent(Frame(session=7, sequence=1, messages=(large,) * 5)) + UNKNOWN + _sized(1_000_000)
    parts = cut_from_agent(data)
    assert len(parts) == 5
    assert sum(map(len, parts)) < len(data) + 1024


def _sized(count: int) -> bytes:
    """Return so many bytes behind their length."""
    size, length = count, b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return length + bytes([size]) + bytes(count)
