"""Whole numbers in texts that others write: labels, annotations, versions, settings, arguments. Pure.

The one place that reads them; `tests/house/test_numbers.py` finds a bare `int(text)` elsewhere.
"""

from __future__ import annotations

DIGITS_MAX = 18
"""Fits into 63 bits; longer ones cost time to read, and Python refuses those above 4300 digits."""
SIGNED_DIGITS_MAX = 19
SIGNED_MIN, SIGNED_MAX = -(2**63), 2**63 - 1


def whole(text: str) -> int | None:
    """Return a whole number from 0 to 18 digits long; None for any other text, other scripts' digits too."""
    return int(text) if len(text) <= DIGITS_MAX and text.isascii() and text.isdigit() else None


def signed(text: str) -> int | None:
    """Return a whole number of 64 bits, with a sign or without, as the API's own parsers take it; None for others."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if len(digits) > SIGNED_DIGITS_MAX or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if SIGNED_MIN <= number <= SIGNED_MAX else None
