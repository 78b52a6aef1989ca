"""Interval lists of an Indexed Job's status, as `0-3,5,7-8`. Pure."""

from __future__ import annotations

from collections.abc import Iterator


def count_below(limit: int, *lists: str) -> int:
    """Return how many different indexes below `limit` the lists name. Malformed parts count for nothing."""
    ended = 0
    reached = 0
    for first, last in sorted(interval for text in lists for interval in _intervals(text)):
        start, stop = max(first, reached), min(last + 1, limit)
        if stop > start:
            ended += stop - start
            reached = stop
    return ended


DIGITS_MAX = 10
"""Of an index: `completions` is an int32."""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def _intervals(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if _is_number(first) and (_is_number(last) if dash else True):
            yield int(first), int(last) if dash else int(first)
