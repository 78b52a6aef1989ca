"""What one field of a value may hold, as a rule that is made: of a text, a number, JSON, a list. Pure.

Neighbour: `rules` has the rule of each field, in one table.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import msgspec

from gatelift_wire.values import limits
from gatelift_wire.values.keys import is_uid
from gatelift_wire.values.violations import TooLarge, WireViolation

Rule = Callable[[Any], int]
"""Checks one field's value and returns an upper bound of its encoded size; the violation it raises has no path yet."""

TAG_BYTES = 7
"""Field number (at most 2 bytes) and length (at most 5) of anything encoded."""

SCALAR_BYTES = 12
"""Field number and the longest varint or double."""


def text(longest: int, *, least: int = 0) -> Rule:
    """Return the rule of texts by their bytes."""

    def rule(value: str) -> int:
        try:
            size = len(value) if value.isascii() else len(value.encode())
        except UnicodeEncodeError:
            raise WireViolation("", "must be valid Unicode text") from None
        if size > longest:
            raise TooLarge("", f"must have at most {longest} bytes, has {size}")
        if size < least:
            raise WireViolation("", "must not be empty")
        return size + TAG_BYTES

    return rule


def printed(longest: int, *, least: int = 0) -> Rule:
    """Return the rule of texts that are shown as they are: nothing in them moves a cursor or turns a line."""
    plain = text(longest, least=least)

    def rule(value: str) -> int:
        weight = plain(value)
        if not value.isprintable():
            raise WireViolation("", "must have no characters that control a terminal or the direction of writing")
        return weight

    return rule


def segment(longest: int, *, least: int = 0) -> Rule:
    """Return the rule of names of objects: each becomes one segment of a URL's path (Kubernetes' own rule for all)."""
    plain = printed(longest, least=least)

    def rule(value: str) -> int:
        weight = plain(value)
        if value in (".", "..") or "/" in value or "%" in value:
            raise WireViolation("", "must be a name that an object can have: not '.' or '..', without '/' and '%'")
        return weight

    return rule


def uid_of_a_workload(value: str) -> int:
    """Check a UID that a key has."""
    weight = text(limits.UID_MAX, least=1)(value)
    if not is_uid(value):
        raise WireViolation("", "must be a UID: letters and digits, with '-', '_' and '.' between them")
    return weight


def number(least: int = 0, most: int = limits.NUMBER_MAX) -> Rule:
    """Return the rule of whole numbers."""

    def rule(value: int) -> int:
        if not least <= value <= most:
            raise WireViolation("", f"must be between {least} and {most}, is {value}")
        return SCALAR_BYTES

    return rule


def real(least: float = 0.0, most: float = limits.SECONDS_MAX) -> Rule:
    """Return the rule of numbers that are finite."""

    def rule(value: float) -> int:
        if not (math.isfinite(value) and least <= value <= most):
            raise WireViolation("", f"must be between {least:g} and {most:g}, is {value:g}")
        return SCALAR_BYTES

    return rule


def flag(_value: object) -> int:
    """Return what a yes or no weighs."""
    return SCALAR_BYTES


def choice(value: enum.Enum) -> int:
    """Check that a value is a member of its enum."""
    if not isinstance(value, enum.Enum):
        raise WireViolation("", "must be one of the enum's values")
    return SCALAR_BYTES


def maybe(inner: Rule) -> Rule:
    """Return the rule of what may be absent."""

    def rule(value: Any) -> int:
        return 0 if value is None else inner(value)

    return rule


def raw(longest: int) -> Rule:
    """Return the rule of bytes that nobody looks into."""

    def rule(value: bytes) -> int:
        if len(value) > longest:
            raise TooLarge("", f"must have at most {longest} bytes, has {len(value)}")
        return len(value) + TAG_BYTES

    return rule


class _Object(msgspec.Struct):
    """Any JSON object: it is gone through, and nothing of it is made."""


def json_object(longest: int) -> Rule:
    """Return the rule of JSON that is an object, or nothing."""
    size_rule = raw(longest)
    decode = msgspec.json.Decoder(_Object).decode

    def rule(value: bytes) -> int:
        weight = size_rule(value)
        if value:
            try:
                str(value, "utf-8")  # the decoder looks at no text that it skips
                decode(value)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise WireViolation("", f"must be empty or a JSON object ({error})") from None
            _look_through(value)
        return weight

    return rule


def status(longest: int) -> Rule:
    """Return the rule of a status, which its reader takes apart in one go: in a long one values are counted first."""
    whole = json_object(longest)

    def rule(value: bytes) -> int:
        if len(value) > limits.STATUS_LOOKED_AT_BYTES:
            few = value.count(b'"') <= 4 * limits.STATUS_VALUES_MAX  # two for a name, two for a text
            outside = _outside_of_texts(value) if few else b""
            if not few or outside.count(b",") > limits.STATUS_VALUES_MAX:
                raise TooLarge("", f"must have at most {limits.STATUS_VALUES_MAX} values")
            if _LONG_NUMBER in outside.translate(_DIGITS_ALIKE):
                raise TooLarge("", f"must have no number of more than {limits.STATUS_DIGITS_MAX} digits")
        return whole(value)

    return rule


_DIGITS_ALIKE = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG_NUMBER = b"0" * (limits.STATUS_DIGITS_MAX + 1)
"""Looked for as text, in linear time: a pattern begins anew at each digit, which took 50 ms of one call."""


def _outside_of_texts(value: bytes) -> bytes:
    """Return what of JSON stands outside of its texts: quotes come in pairs once the escapes are out."""
    plain = value.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in value else value
    return b"".join(plain.split(b'"')[::2])


_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def _look_through(value: bytes) -> None:
    """Refuse valid JSON that has too many parts or is nested too deep; nearly all has too few brackets for either.

    Each step is one pass at the speed of C. Outside of texts every bracket is one.
    """
    if value.count(b"{") + value.count(b"[") <= limits.NESTING_MAX:
        return
    steps = _outside_of_texts(value).translate(_STEPS, _NO_BRACKETS)
    if len(steps) > 2 * limits.JSON_PARTS_MAX:
        raise TooLarge("", f"must have at most {limits.JSON_PARTS_MAX} objects and lists, has {len(steps) // 2}")
    if max(accumulate(memoryview(steps).cast("b")), default=0) > limits.NESTING_MAX:
        raise WireViolation("", f"must be nested at most {limits.NESTING_MAX} deep")


def many(inner: Rule, most: int, *, least: int = 0) -> Rule:
    """Return the rule of a list."""

    def rule(values: tuple[Any, ...]) -> int:
        if len(values) > most:
            raise TooLarge("", f"must have at most {most} items, has {len(values)}")
        if len(values) < least:
            raise WireViolation("", f"must have at least {least} items, has {len(values)}")
        if not values:
            return 0
        weight = done = 0
        try:
            for done, value in enumerate(values):  # noqa: B007  # read where the violation is caught
                weight += inner(value) + TAG_BYTES
        except WireViolation as violation:
            raise violation.within(f"[{done}]") from None
        return weight

    return rule


def pair(second: Rule) -> Rule:
    """Return the rule of a name and what belongs to it."""
    first = text(limits.WORD_MAX, least=1)

    def rule(value: tuple[str, Any]) -> int:
        return first(value[0]) + second(value[1]) + TAG_BYTES

    return rule


def each_once(inner: Rule) -> Rule:
    """Return the rule of a list of named things, by pair or by value, in which each name stands once."""

    def rule(values: tuple[Any, ...]) -> int:
        weight = inner(values)
        names: set[str] = set()
        for at, value in enumerate(values):
            name = value[0] if isinstance(value, tuple) else value.name
            if name in names:
                raise WireViolation(f"[{at}]", "must name what no other one names")
            names.add(name)
        return weight

    return rule
