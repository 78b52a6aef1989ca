"""JSON that travels inside a message: an object, readable text, not too deep; anything else is one typed violation."""

from __future__ import annotations

import pytest

from gatelift_wire.encoding import codec
from gatelift_wire.values import rules
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import (
    FRAME_PARTS_MAX,
    JSON_PARTS_MAX,
    NESTING_MAX,
    OBJECTS_MAX,
    STATUS_LOOKED_AT_BYTES,
    STATUS_VALUES_MAX,
)
from gatelift_wire.values.messages import Finished, Frame, ObjectReport
from gatelift_wire.values.violations import TooLarge, WireViolation


def check(status: bytes) -> None:
    rules.check_message(ObjectReport(key=PlacementKey("u", 1), kind="Pod", name="p", uid="u", status=status))


def nested(depth: int) -> bytes:
    """Return an object that is nested so deep."""
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    "status",
    [
        b'{" \x80":0}',
        b'{"a":"\xff"}',
        b'{"a":{"b":["\xc3"]}}',
        b"\xef\xbb\xbf{}",
        b"[]",
        b'"a"',
        b"{",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        nested(NESTING_MAX + 1),
        b'{"a":' + b"[" * NESTING_MAX + b"]" * NESTING_MAX + b"}",
    ],
    ids=lambda status: repr(status[:16]),
)
def test_what_is_no_readable_object_is_a_violation_that_names_the_field(status: bytes) -> None:
    with pytest.raises(WireViolation) as violation:
        check(status)
    assert violation.value.field.endswith("status")


@pytest.mark.parametrize(
    "status",
    [
        b"",
        b"{}",
        '{"message":"größer ✓"}'.encode(),
        nested(NESTING_MAX),
        b'{"a":[' + b",".join([b"{}"] * 500) + b"]}",
        b'{"a":"' + b"[{" * 500 + b'","b":"\\"[[[["}',
    ],
    ids=lambda status: repr(status[:16]),
)
def test_what_kubernetes_says_travels(status: bytes) -> None:
    check(status)


@pytest.mark.parametrize(
    "many",
    [
        b'{"a":[' + b",".join([b"[]"] * JSON_PARTS_MAX) + b"]}",
        b'{"a":[' + b",".join([b'{"n":"\\"]"}'] * JSON_PARTS_MAX) + b"]}",
    ],
    ids=["lists", "objects"],
)
def test_hd_113_more_parts_than_a_kubernetes_object_has_are_a_violation(many: bytes) -> None:
    with pytest.raises(TooLarge) as violation:
        check(many)
    assert violation.value.field.endswith("status")


@pytest.mark.parametrize(
    ("many", "what"),
    [
        (b"{" + b",".join(b'"%d":1' % number for number in range(STATUS_VALUES_MAX + 2)) + b"}", "values"),
        (b'{"a":[' + b",".join([b"1"] * (STATUS_VALUES_MAX + 2)) + b"]}", "values"),
        (b'{"a":[' + b",".join([b'""'] * 300_000) + b"]}", "values"),
        (b'{"a":"' + b"x" * STATUS_LOOKED_AT_BYTES + b'","b":' + b"9" * 4299 + b"}", "digits"),
        (b'{"a":"' + b"x" * STATUS_LOOKED_AT_BYTES + b'","b":[-0.' + b"1" * 4299 + b"]}", "digits"),
    ],
    ids=["names", "numbers", "texts", "digits", "digits of a fraction"],
)
def test_is_10_a_status_that_takes_long_to_read_is_a_violation(many: bytes, what: str) -> None:
    """Its reader is the event loop of all clusters: one of a megabyte of small values held it for 80 ms."""
    with pytest.raises(TooLarge, match=what):
        check(many)


def test_is_10_commas_digits_and_quotes_in_texts_are_no_values() -> None:
    check(b'{"completedIndexes":"' + b"1," * 200_000 + b'","message":"' + b"9" * 100_000 + b'\\"' * 1000 + b'"}')


@pytest.mark.parametrize(
    "text", [b"[" * 200_000, b"\\\\", b'\\"[', b'\\\\\\\\\\"]' * 1000], ids=lambda text: repr(text[:9])
)
def test_hd_113_brackets_in_texts_are_no_parts(text: bytes) -> None:
    check(b'{"a":"' + text + b'","b":[' + b",".join([b"{}"] * 500) + b"]}")
    with pytest.raises(WireViolation):
        check(b'{"a":"' + text + b'","b":' + nested(NESTING_MAX) + b"}")


def test_hd_113_a_frame_has_not_more_parts_than_an_honest_one() -> None:
    key = PlacementKey("u", 1)
    states = tuple(ObjectReport(key=key, kind="Pod", name="p", uid="", status=b"") for _ in range(OBJECTS_MAX))
    full = FRAME_PARTS_MAX // OBJECTS_MAX
    frame = Frame(session=1, messages=(Finished(key=key, succeeded=True, objects=states),) * full)
    assert codec.decode_from_agent(codec.encode_from_agent(frame)) == frame
    counts = (("a", 1),) * 128
    entries = tuple(
        InventoryEntry(key=key, namespace="", name="", state="R", lifted=True, counts=counts) for _ in range(1024)
    )
    for more in (
        Frame(session=1, messages=(*frame.messages, frame.messages[0])),
        Frame(session=1, control=(InventoryChunk(request=1, applied=1, last=False, entries=entries),)),
    ):
        with pytest.raises(TooLarge, match="items in its lists"):
            codec.decode_from_agent(codec.encode_from_agent(more))
