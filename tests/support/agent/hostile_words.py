"""Values that a worker may put on the wire, each with one field that is as bad as the wire takes."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any, TypeVar

from gatelift_wire.values import rules
from gatelift_wire.values.inventory import ForeignRun, InventoryEntry
from gatelift_wire.values.messages import CapacityEntry, Hello
from gatelift_wire.values.violations import WireViolation

TEXTS = ("", "Default_Flavor", "a b", "x\x00y", "\x1b[2J", "\u202e", "\u0661", "é" * 31, "a\n", "-")
TEXTS_LONG = tuple(character * length for length in (63, 64, 253, 316) for character in "a\x01")
NUMBERS = (0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63 - 1))

Value = TypeVar("Value", CapacityEntry, ForeignRun, Hello, InventoryEntry)


def hostile(base: Value) -> list[Value]:
    """Return values of a kind, each with one field that is as bad as the wire takes."""
    found = []
    for field in dataclasses.fields(base):
        value = getattr(base, field.name)
        if isinstance(value, bool) or not isinstance(value, str | int):
            continue
        tries: tuple[Any, ...] = TEXTS + TEXTS_LONG if isinstance(value, str) else NUMBERS
        for bad in tries:
            one = replace(base, **{field.name: bad})
            try:
                rules.measure(one)
            except WireViolation:
                continue
            found.append(one)
    assert len(found) > len(NUMBERS)
    return found
