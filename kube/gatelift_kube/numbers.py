"""Whole numbers that others write into labels and annotations. Pure."""

from __future__ import annotations

DIGITS_MAX = 18
"""Fits into 63 bits; longer ones cost time to read, and Python refuses those above 4300 digits."""


def whole(text: str) -> int | None:
    """Return a whole number from 0 to 18 digits long; None for any other text, other scripts' digits too."""
    return int(text) if len(text) <= DIGITS_MAX and text.isascii() and text.isdigit() else None
