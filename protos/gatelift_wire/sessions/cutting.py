"""Cuts what is too long for one frame or one message. Pure. Neighbours: `rules` (weights)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gatelift_wire.values import limits
from gatelift_wire.values.inventory import ForeignRun, InventoryChunk, InventoryEntry
from gatelift_wire.values.messages import Confirm, Finished, Frame, Message, Stopped
from gatelift_wire.values.rules import check_message, measure


def split(frame: Frame) -> tuple[Frame, ...]:
    """Cut a frame into frames below the target, in order; controls go with the first.

    A single message above the target travels alone. Raises `TooLarge` when one exceeds `MESSAGE_BYTES_MAX`.
    """
    base = measure(replace(frame, messages=()))
    batches: list[list[Message]] = [[]]
    weight = base
    for message in frame.messages:
        own = check_message(message)
        full = weight + own > limits.FRAME_BYTES_TARGET or len(batches[-1]) >= limits.FRAME_MESSAGES_MAX
        if full and (batches[-1] or frame.control):
            batches.append([])
            weight = base
        batches[-1].append(message)
        weight += own
    frames = []
    sequence = frame.sequence
    for index, batch in enumerate(batches):
        control = frame.control if index == 0 else ()
        frames.append(replace(frame, sequence=sequence, control=control, messages=tuple(batch)))
        sequence += len(batch)
    return tuple(frames)


def fit(message: Message) -> Iterator[tuple[Message, int]]:
    """Yield what says the same as `message` in messages below the limit, each with its weight.

    Long `Confirm`s are cut; states of objects in a `Finished` or `Stopped` too heavy go ahead as `ObjectReport`s of
    their own, which says the same. Raises `WireViolation` or `TooLarge` (nothing was yielded then) for all else.
    """
    if isinstance(message, Confirm) and (longest := max(len(message.keys), len(message.sizes))) > limits.KEYS_MAX:
        each = limits.KEYS_MAX
        parts: list[Message] = [
            Confirm(keys=message.keys[start : start + each], sizes=message.sizes[start : start + each])
            for start in range(0, longest, each)
        ]
    elif isinstance(message, Finished | Stopped) and _heavy(message):
        parts = [*message.objects, _without_objects(message)]
    else:
        parts = [message]
    yield from [(part, check_message(part)) for part in parts]


def _without_objects(message: Finished | Stopped) -> Message:
    """Return it without what went ahead; of whom that was, a stop says, as who is missing is gone (HD-662)."""
    if isinstance(message, Finished):
        return replace(message, objects=())
    told = tuple(each.owner_uid for each in message.objects if each.owner_uid)
    return replace(message, objects=(), members=told if len(told) <= limits.OBJECTS_MAX else ())


def _heavy(message: Finished | Stopped) -> bool:
    if len(message.objects) > limits.OBJECTS_MAX:
        return True
    return sum(len(report.status) for report in message.objects) > limits.FRAME_BYTES_TARGET


def inventory_chunks(
    request: int,
    applied: int,
    entries: Sequence[InventoryEntry],
    foreign: tuple[ForeignRun, ...] = (),
    *,
    unheard: bool = False,
) -> Iterator[InventoryChunk]:
    """Yield the chunks of one inventory, each below the frame target; the last one says so and has what is of all."""
    pending: list[InventoryEntry] = []
    weight = 0
    for entry in entries:
        own = measure(entry)
        if pending and (
            weight + own > limits.FRAME_BYTES_TARGET // 2 or len(pending) >= limits.INVENTORY_CHUNK_ENTRIES
        ):
            yield InventoryChunk(request=request, applied=applied, last=False, entries=tuple(pending))
            pending, weight = [], 0
        pending.append(entry)
        weight += own
    yield InventoryChunk(
        request=request, applied=applied, last=True, entries=tuple(pending), foreign=foreign, unheard=unheard
    )


def fit_all(messages: Iterable[Message]) -> list[tuple[Message, int]]:
    """Apply `fit` to all of them before anything is queued, so that a refusal leaves nothing half done."""
    return [part for message in messages for part in fit(message)]
