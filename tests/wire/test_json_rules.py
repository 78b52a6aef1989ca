"""JSON that travels inside a message: an object, readable text, not too deep; anything else is one typed violation."""

from __future__ import annotations

import pytest

from gatelift_wire import rules
from gatelift_wire.keys import PlacementKey
from gatelift_wire.limits import NESTING_MAX
from gatelift_wire.messages import ObjectReport
from gatelift_wire.violations import WireViolation


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
