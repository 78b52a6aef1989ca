"""Interval lists of an Indexed Job's status, as `0-3,5,7-8`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gatelift_kube.values.numbers import whole


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


def _intervals(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        text, dash, end = part.partition("-")
        first, last = whole(text), whole(end if dash else text)
        if first is not None and last is not None:
            yield first, last
