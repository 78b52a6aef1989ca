"""Cuts a large frame's bytes into frames that say the same one after the other, so that none is dear to decode. Pure.

Whoever takes one has let go of it before the next is decoded: neither memory nor the garbage collector ever see all of
what one frame may hold. Neighbours: `codec` (decodes each), `pieces`.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatelift_wire.encoding import codec
from gatelift_wire.encoding.pieces import LENGTH, PIECE_BYTES, VARINT, fields
from gatelift_wire.v1 import agent_pb2 as pb

_NUMBERS = {field.name: field.number for field in pb.AgentMessage.DESCRIPTOR.fields}
_MESSAGES, _SAID_BY_EACH = _NUMBERS["reports"], (_NUMBERS["session"], _NUMBERS["acknowledged"])


def cut_from_agent(data: bytes, sequence: int) -> Iterator[bytes]:
    """Yield a frame of an agent, or the frames that it is cut into, each with its own sequence; `sequence` is its own.

    Each has at most `PIECE_BYTES` of messages, or one message; controls are in the first. Its header has been read:
    it has no more fields and messages than a frame may have.
    """
    if len(data) <= PIECE_BYTES:
        yield data
        return
    numbers: dict[int, bytes] = {}
    once: list[bytes] = []
    messages: list[tuple[int, int]] = []
    for field in fields(data, 0, len(data)):
        if field.number == _MESSAGES and field.kind == LENGTH:
            messages.append((field.first, field.end))
        elif field.number in _SAID_BY_EACH and field.kind == VARINT:
            numbers[field.number] = data[field.first : field.end]  # of a number the last word counts
        else:
            once.append(data[field.first : field.end])
    done = 0
    while done < len(messages) or once:
        count = _fitting(messages, done)
        said = [data[begin:end] for begin, end in messages[done : done + count]]
        yield codec.join_from_agent([*once, *numbers.values(), *said], sequence + done)
        once, done = [], done + count


def _fitting(messages: list[tuple[int, int]], done: int) -> int:
    """Return how many messages from this one on go into one frame: at least one, if there is one."""
    size = count = 0
    for begin, end in messages[done:]:
        size += end - begin
        if count and size > PIECE_BYTES:
            break
        count += 1
    return count
