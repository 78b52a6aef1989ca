"""Cuts a large frame into several that follow each other, so that no turn of the core's is long. Pure.

To the session machine they are frames as if the agent had sent them so: messages keep their order and their numbers, an
inventory is complete with its last chunk and not before, and what follows the end of a session is of an earlier one.
Renewals come first, since none of them is to wait for what travels with it. Neighbours: `agents_server`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk
from gatelift_wire.values.messages import (
    Bid,
    Capacity,
    Control,
    CountsReport,
    CreditGrant,
    Evicted,
    Finished,
    Frame,
    LeaseRenew,
    ObjectReport,
    Refused,
    Stopped,
)
from gatelift_wire.values.told import FailedContainer
from gatelift_wire.values.violations import WireViolation

SLICE_MESSAGES = limits.JOINED_MESSAGES_MAX
"""Messages of one slice: as many as an agent joins, so that what agents usually send is not cut. 3 ms at the worst."""

SLICE_PARTS = 1024
"""Items of the lists in one slice, unless a single message has more: 2 ms."""

BYTES_PER_ITEM = 256
"""Bytes of texts and statuses that cost as much as an item: texts are cleaned, statuses are looked through."""

_AT_ONCE = (LeaseRenew, CreditGrant)
"""Controls that say the same before the messages beside them as after."""

_LISTS: dict[type, tuple[str, ...]] = {
    Finished: ("objects",),
    Stopped: ("objects",),
    CountsReport: ("pod_sets", "reclaimable", "troubles"),
    Capacity: ("entries", "namespaces", "foreign"),
    InventoryChunk: ("entries", "foreign"),
}

_TEXTS: dict[type, tuple[str, ...]] = {
    Bid: ("text",),
    Refused: ("text",),
    Evicted: ("message",),
    Finished: ("message",),
    FailedContainer: ("message",),
    Stopped: ("message",),
    ObjectReport: ("status",),
}


def items(frame: Frame) -> int:
    """Return how many items a frame has: messages, controls, and what stands in their lists."""
    each = (*frame.control, *frame.messages)
    return len(each) + sum(map(_parts, each))


def listed(frame: Frame) -> int:
    """Return how many placements of an inventory a frame has."""
    return sum(len(each.entries) for each in frame.control if isinstance(each, InventoryChunk))


def sliced(frame: Frame, *, is_cut: bool = False) -> Iterator[Frame]:
    """Yield a frame, or what it is cut into, in the order in which it is taken.

    `is_cut`: it is part of a larger one. Raises `WireViolation` for one that has no such order: agents send inventories
    and farewells by themselves.
    """
    weight = sum(map(_weight, (*frame.control, *frame.messages)))
    late = tuple(each for each in frame.control if not isinstance(each, _AT_ONCE))
    if len(frame.messages) <= SLICE_MESSAGES and weight <= SLICE_PARTS and not (is_cut and late):
        yield frame
        return
    early = tuple(each for each in frame.control if isinstance(each, _AT_ONCE))
    if late and frame.messages:
        raise WireViolation("Frame.messages", f"must not travel in such numbers with {type(late[0]).__name__}")
    if early or not late:
        yield from _messages(frame, early)
    for control in late:
        for part in _chunks(control):
            yield replace(frame, control=(part,))


def _messages(frame: Frame, early: tuple[Control, ...]) -> Iterator[Frame]:
    begin = parts = 0
    control = early
    for index, message in enumerate(frame.messages):
        size = _weight(message)
        if index > begin and (index - begin >= SLICE_MESSAGES or parts + size > SLICE_PARTS):
            yield _part(frame, control, begin, index)
            begin, parts, control = index, 0, ()
        parts += size
    yield _part(frame, control, begin, len(frame.messages))


def _part(frame: Frame, control: tuple[Control, ...], begin: int, end: int) -> Frame:
    return replace(frame, sequence=frame.sequence + begin, control=control, messages=frame.messages[begin:end])


def _chunks(control: Control) -> Iterator[Control]:
    if not isinstance(control, InventoryChunk) or len(control.entries) <= SLICE_PARTS:
        yield control
        return
    for begin in range(0, len(control.entries), SLICE_PARTS):
        entries = control.entries[begin : begin + SLICE_PARTS]
        if begin + SLICE_PARTS < len(control.entries):
            yield replace(control, last=False, entries=entries, foreign=(), unheard=False)
        else:
            yield replace(control, entries=entries)


def _weight(value: object) -> int:
    """Return how many items a message counts for, its texts and statuses with them."""
    parts: tuple[object, ...] = (value, getattr(value, "failed", None), *getattr(value, "objects", ()))
    size = sum(len(getattr(each, name)) for each in parts for name in _TEXTS.get(type(each), ()))
    return _parts(value) + size // BYTES_PER_ITEM


def _parts(value: object) -> int:
    return sum(len(getattr(value, name)) for name in _LISTS.get(type(value), ()))
