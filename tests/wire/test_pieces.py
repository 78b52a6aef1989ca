"""IS-10: what a frame says of itself is read before anything is made of it; no call to protobuf's library is long."""

from __future__ import annotations

import random
from typing import Any

import pytest

from gatelift_wire.encoding import codec
from gatelift_wire.encoding.pieces import PIECE_BYTES, Header, Pieces, TooManyError
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Finished, Frame, LeaseRenew, ObjectReport, Stopped
from gatelift_wire.values.violations import TooLarge, WireViolation

KEY = PlacementKey("uid", 1)
STATE = ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=b"{}")


def an_inventory(entries: int) -> InventoryChunk:
    listed = tuple(
        InventoryEntry(
            key=PlacementKey(f"uid-{number}", 1),
            namespace="n",
            name=f"pod-{number}",
            state="RUNNING",
            lifted=True,
            counts=(("active", 1),),
        )
        for number in range(entries)
    )
    return InventoryChunk(request=1, applied=0, last=True, entries=listed)


LARGE = Frame(
    session=7,
    sequence=3,
    acknowledged=2,
    control=(LeaseRenew(sent_at=1.0), an_inventory(4000)),
    messages=(
        Finished(key=KEY, succeeded=True, objects=(STATE,) * 8000),
        ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=b'{"a":"' + b"x" * 200_000 + b'"}'),
        *(Stopped(key=KEY),) * 100,
    ),
)


def test_is_10_a_frame_says_session_sequence_and_its_items_before_anything_is_made_of_it() -> None:
    assert codec.header_from_agent(codec.encode_from_agent(LARGE)) == Header(7, 3, 2, 102)


def test_is_10_of_joined_frames_the_last_word_counts() -> None:
    frames = [
        codec.encode_from_agent(Frame(session=7, sequence=number, messages=(Stopped(key=KEY),))) for number in (3, 4)
    ]
    joined = codec.join_from_agent(frames, 3)
    assert codec.header_from_agent(joined) == Header(7, 3, 0, 2)
    assert codec.decode_from_agent(joined).sequence == 3


def test_is_10_controls_are_read_without_the_messages_beside_them() -> None:
    found = codec.controls_from_agent(codec.encode_from_agent(LARGE))
    assert (found.control, found.messages) == (LARGE.control, ())
    assert (found.session, found.sequence, found.acknowledged) == (7, 3, 2)


def test_is_10_a_frame_parsed_in_pieces_is_the_frame() -> None:
    data = codec.encode_from_agent(LARGE)
    assert len(data) > 4 * PIECE_BYTES
    assert codec.decode_from_agent(data) == LARGE
    whole, pieced = pb.AgentMessage.FromString(data), pb.AgentMessage()
    Pieces(data).merge(pieced, 0, len(data))
    assert pieced == whole


class Watched:
    """A message that notes how many bytes each call to the library got."""

    def __init__(self, message: Any, sizes: list[int]) -> None:
        self._message, self._sizes, self.DESCRIPTOR = message, sizes, message.DESCRIPTOR

    def MergeFromString(self, data: bytes) -> None:  # noqa: N802 (protobuf's own name)
        self._sizes.append(len(data))
        self._message.MergeFromString(data)

    def SetInParent(self) -> None:  # noqa: N802 (protobuf's own name)
        self._message.SetInParent()

    def add(self) -> Watched:
        return Watched(self._message.add(), self._sizes)

    def __getattr__(self, name: str) -> Watched:
        part = getattr(self._message, name)
        return Watched(part, self._sizes) if hasattr(part, "DESCRIPTOR") else _List(part, self._sizes)


class _List(Watched):
    def __init__(self, items: Any, sizes: list[int]) -> None:
        self._message, self._sizes = items, sizes


def test_is_10_no_call_to_the_library_gets_much_that_has_parts() -> None:
    objects = pb.Report(finished=pb.Finished(objects=[pb.ObjectReport()] * 33_000))
    deep = pb.AgentControl(
        inventory_chunk=pb.InventoryChunk(entries=[pb.InventoryEntry(counts=[pb.NamedAmount()] * 33_000)])
    )
    data = pb.AgentMessage(session=1, control=[deep], reports=[objects]).SerializeToString()
    sizes: list[int] = []
    message = pb.AgentMessage()
    Pieces(data).merge(Watched(message, sizes), 0, len(data))  # type: ignore[arg-type]  # as much of one as is used
    assert message == pb.AgentMessage.FromString(data)
    assert max(sizes) <= PIECE_BYTES


def test_is_10_a_frame_of_millions_of_parts_is_refused_before_they_are_made() -> None:
    report = pb.Report(finished=pb.Finished(objects=[pb.ObjectReport()] * 200_000))
    data = pb.AgentMessage(session=1, reports=[report]).SerializeToString()
    sizes: list[int] = []
    with pytest.raises(TooManyError):
        Pieces(data).merge(Watched(pb.AgentMessage(), sizes), 0, len(data))  # type: ignore[arg-type]  # as above
    assert sum(sizes) < 4 * PIECE_BYTES
    with pytest.raises(TooLarge, match=f"at most {limits.FRAME_PARTS_MAX} items in its lists"):
        codec.decode_from_agent(data)


def test_is_10_many_small_messages_of_many_parts_are_refused_as_they_come() -> None:
    report = pb.Report(finished=pb.Finished(objects=[pb.ObjectReport()] * 8000))
    data = pb.AgentMessage(session=1, reports=[report] * 200).SerializeToString()
    with pytest.raises(TooLarge, match=f"at most {limits.FRAME_PARTS_MAX} items in its lists"):
        codec.decode_from_agent(data)


def test_is_10_too_many_items_are_counted_before_they_are_made() -> None:
    data = pb.AgentMessage(session=1, reports=[pb.Report()] * (limits.FRAME_MESSAGES_MAX + 1)).SerializeToString()
    with pytest.raises(TooLarge, match=r"Frame\.messages: must have at most 256 items, has 257"):
        codec.header_from_agent(data)
    with pytest.raises(TooLarge, match=f"Frame: must have at most {limits.FRAME_FIELDS_MAX} fields"):
        codec.header_from_agent(b"\x08\x01" * (limits.FRAME_FIELDS_MAX + 1))


def test_is_10_whatever_comes_a_header_is_read_or_a_violation_is_typed() -> None:
    chance = random.Random(10)  # noqa: S311 (chance, no secret)
    data = codec.encode_from_agent(Frame(session=300, sequence=3, messages=(Finished(key=KEY, succeeded=True),)))
    for _ in range(3000):
        spoiled = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
        cut = bytes(spoiled[: chance.randint(1, len(spoiled))])
        try:
            found = codec.header_from_agent(cut)
            frame = codec.decode_from_agent(cut)
        except WireViolation:
            continue
        assert (found.session, found.sequence, found.messages) == (frame.session, frame.sequence, len(frame.messages))
