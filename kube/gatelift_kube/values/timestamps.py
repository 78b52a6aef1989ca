"""RFC 3339 texts and seconds since 1970. Pure.

The API server writes metav1.Time to the second and metav1.MicroTime (leases, events) to the microsecond, both in UTC.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache


def to_text(seconds: float) -> str:
    """Return metav1.Time: `2026-11-21T04:15:00Z`; parts of a second are cut off, as Go does."""
    return _second(math.floor(seconds))


@lru_cache(maxsize=256)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_micro_text(seconds: float) -> str:
    """Return metav1.MicroTime: `2026-11-21T04:15:00.250000Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_seconds(text: str) -> float:
    """Return seconds since 1970. Raises ValueError, naming the text, where it is no RFC 3339 time with a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an RFC 3339 time such as 2026-11-21T04:15:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write Z for UTC")
    return moment.timestamp()


_RFC_3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")
"""What an API server reads; Python reads more."""


def stored_time(text: str) -> str:
    """Return a text that an API server reads as a time, as it stores it; "" for one that it refuses, or stores as none.

    To the second and in UTC; the first moment of year 1 is none, and after 9999 there is no text that is read again.
    """
    if _RFC_3339.fullmatch(text) is None:
        return ""
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC).replace(microsecond=0, tzinfo=None)
    except (ValueError, OverflowError):  # a month of 13, a day of 31 in June; beyond the years 1 and 9999 in UTC
        return ""
    return f"{moment.isoformat()}Z" if moment != datetime.min else ""  # noqa: DTZ901 (without a zone by now)
