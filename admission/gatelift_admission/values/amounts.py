"""Quantities as the Kubernetes API writes them, and the integers the engine counts with.

An *amount* is an int: milli-units for `cpu`, base units for every other resource, held within int64.
`UNLIMITED` (the largest int64) is what a quota becomes whose value does not fit. Every neighbour uses these
functions; nothing else in the engine parses or prints a quantity.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

AMOUNT_MAX: Final = 2**63 - 1
AMOUNT_MIN: Final = -(2**63)
UNLIMITED: Final = AMOUNT_MAX
QUANTITY_LENGTH_MAX: Final = 128
"""Longest accepted text: int64 needs 19 digits; the rest bounds the work on hostile input."""
EXPONENT_BOUND: Final = 200
"""Beyond 10^200 a non-zero value is above int64 for any accepted length, below 10^-200 it is the smallest step."""
PARSE_CACHE: Final = 4096
"""Distinct quantities of one installation are few; 4096 entries are below a megabyte."""

_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_UP: Final = ("", "k", "M", "G", "T", "P", "E")
_BINARY_UP: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY_RESOURCES: Final = frozenset({"memory", "ephemeral-storage"})
_BINARY_MIN: Final = 1024


class QuantityError(ValueError):
    """A text is not a Kubernetes quantity; the message names the text and what would be right."""


def clamp(value: int) -> int:
    """Return `value` held within int64."""
    if value > AMOUNT_MAX:
        return AMOUNT_MAX
    return max(value, AMOUNT_MIN)


def add(left: int, right: int) -> int:
    """Return the saturating sum; Unlimited plus anything stays Unlimited."""
    if UNLIMITED in (left, right):
        return UNLIMITED
    return clamp(left + right)


def sub(left: int, right: int) -> int:
    """Return the saturating difference: Unlimited - Unlimited = 0, Unlimited - x = Unlimited, x - Unlimited = min."""
    if left == UNLIMITED:
        return 0 if right == UNLIMITED else UNLIMITED
    if right == UNLIMITED:
        return AMOUNT_MIN
    return clamp(left - right)


def multiply(amount: int, times: int) -> int:
    """Return the saturating product with a count of zero or more."""
    return clamp(amount * times)


def parse(quantity: str | float, resource: str) -> int:
    """Return the amount of `quantity`: `cpu` in milli-units, others in base units, rounded away from zero.

    Raises QuantityError for what the API server refuses (`1e3Mi`, `1.5 Gi`, `Infinity`). Saturates at int64.
    """
    text = quantity if isinstance(quantity, str) else repr(quantity)
    return _parse(text, 3 if resource == "cpu" else 0)


def nano(quantity: str | float) -> int:
    """Return the billionths of `quantity`, for weights. Raises QuantityError."""
    return _parse(quantity if isinstance(quantity, str) else repr(quantity), 9)


@lru_cache(maxsize=PARSE_CACHE)
def _parse(text: str, scale: int) -> int:
    match = _QUANTITY.fullmatch(text) if len(text) <= QUANTITY_LENGTH_MAX else None
    if match is None or not (match["whole"] or match["part"]):
        raise QuantityError(f"{text[:40]!r} is not a quantity: write a number with an optional suffix, as 500m or 2Gi")
    part = match["part"] or ""
    digits = int((match["whole"] or "0") + part)
    suffix = match["suffix"] or ""
    exponent = int(match["exponent"]) if match["exponent"] else _DECIMAL.get(suffix, 0)
    exponent = max(-EXPONENT_BOUND - len(part), min(exponent, EXPONENT_BOUND)) + scale - len(part)
    digits <<= _BINARY.get(suffix, 0)
    value = digits * 10**exponent if exponent >= 0 else -(-digits // 10**-exponent)
    return clamp(-value if match["sign"] == "-" else value)


def is_binary(resource: str) -> bool:
    """Return whether amounts of `resource` print with Ki, Mi, Gi."""
    return resource in _BINARY_RESOURCES or resource.startswith("hugepages-")


@lru_cache(maxsize=PARSE_CACHE)
def to_text(amount: int, resource: str) -> str:
    """Return the canonical quantity, as Kubernetes prints it: 1500m, 2, 1k, 3Gi; Unlimited is `<unlimited>`."""
    if amount == UNLIMITED:
        return "<unlimited>"
    if resource == "cpu":
        return _decimal(amount, "m")
    if is_binary(resource) and abs(amount) >= _BINARY_MIN:
        return _scaled(amount, 1024, _BINARY_UP)
    return _decimal(amount, "")


def to_quantity(amount: int, resource: str) -> str:
    """Return a quantity that the API server takes in a status: Unlimited is the largest amount there is."""
    if amount != UNLIMITED:
        return to_text(amount, resource)
    return f"{amount}m" if resource == "cpu" else str(amount)


def _decimal(amount: int, unit: str) -> str:
    suffixes = ("m", *_DECIMAL_UP) if unit == "m" else _DECIMAL_UP
    return _scaled(amount, 1000, suffixes) if amount else "0"


def _scaled(amount: int, base: int, suffixes: tuple[str, ...]) -> str:
    step = 0
    while step < len(suffixes) - 1 and amount % base == 0:
        amount //= base
        step += 1
    return f"{amount}{suffixes[step]}"
