"""What a frame says of itself, read from its bytes, and large frames parsed in pieces. Pure.

A call into protobuf's library keeps all other threads waiting until it returns, and 4 MiB of empty parts take it 100 ms
and 200 MB. So what a frame is about is read before anything is made of it, and no call gets more than `PIECE_BYTES` of
what may have parts: in protobuf, pieces of a message that are merged one after the other are that message.
Neighbours: `codec` (uses both), `limits`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf.message import Message

from gatelift_wire.values import limits

PIECE_BYTES = 64 * 1024
"""One call to the library gets no more of what may have parts: 2 ms at the worst. One text or status may be longer."""

VARINT, _FIXED64, LENGTH, _FIXED32 = 0, 1, 2, 5
_NUMBER_BITS = 64


class MalformedError(ValueError):
    """These bytes are no message."""


class TooManyError(ValueError):
    """More fields than are looked through."""


class Header(NamedTuple):
    """What a frame says of itself; the last two are how many items it has."""

    session: int
    sequence: int
    controls: int
    messages: int


class Field(NamedTuple):
    """Where one field stands: from its tag, its value from where to where; the number that a varint is."""

    number: int
    kind: int
    first: int
    begin: int
    end: int
    value: int


def header(data: bytes, numbers: tuple[int, int, int, int]) -> Header:
    """Return what a frame says of itself; `numbers` are its schema's for session, sequence, controls and messages.

    Of a number the last word counts, as in protobuf. Raises MalformedError, or TooManyError for more fields than any
    frame of joined ones has.
    """
    at_session, at_sequence, at_controls, at_messages = numbers
    session = sequence = controls = messages = 0
    for count, field in enumerate(fields(data, 0, len(data)), start=1):
        if count > limits.FRAME_FIELDS_MAX:
            raise TooManyError
        if field.kind == LENGTH:
            messages += field.number == at_messages
            controls += field.number == at_controls
        elif field.kind == VARINT:  # a number of another kind is a field that nobody knows
            session = field.value if field.number == at_session else session
            sequence = field.value if field.number == at_sequence else sequence
    return Header(session, sequence, controls, messages)


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of one message that stands in `data` there. Raises MalformedError; groups are in no schema."""
    while at < end:
        first = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        value, begin = 0, at
        if kind == LENGTH:
            size, begin = _varint(data, at, end)
            at = begin + size
        elif kind == VARINT:
            value, at = _varint(data, at, end)
        elif kind == _FIXED64:
            at += 8
        elif kind == _FIXED32:
            at += 4
        else:
            raise MalformedError
        if at > end or number == 0:
            raise MalformedError
        yield Field(number, kind, first, begin, at, value)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < _NUMBER_BITS + 6:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << _NUMBER_BITS) - 1), at
        shift += 7
    raise MalformedError


class Pieces:
    """Merges one frame's bytes into a message, never much at once. Counts what it looks through."""

    __slots__ = ("_data", "_seen")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._seen = 0

    def merge(self, message: Message, begin: int, end: int) -> None:
        """Merge what stands there. Raises MalformedError, TooManyError, and what the library raises."""
        if end - begin <= PIECE_BYTES:
            message.MergeFromString(self._data[begin:end])
            return
        known = message.DESCRIPTOR.fields_by_number
        done = begin
        for field in fields(self._data, begin, end):
            self._seen += 1
            if self._seen > limits.FRAME_PARTS_MAX + limits.FRAME_FIELDS_MAX:
                raise TooManyError
            schema = known.get(field.number)
            nested = (
                schema is not None
                and schema.message_type is not None
                and field.kind == LENGTH
                and field.end - field.begin > PIECE_BYTES
            )
            if (nested or field.end - done > PIECE_BYTES) and field.first > done:
                message.MergeFromString(self._data[done : field.first])
                done = field.first
            if nested:
                self.merge(_part(message, schema), field.begin, field.end)
                done = field.end
        if done < end:
            message.MergeFromString(self._data[done:end])


def _part(message: Any, schema: Any) -> Message:
    """Return the part that a field's next value is merged into: one more of a list, or the only one."""
    part: Any = getattr(message, schema.name)
    if schema.is_repeated:
        added: Message = part.add()
        return added
    part.SetInParent()
    only: Message = part
    return only
