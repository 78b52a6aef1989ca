"""Durations as Kueue's configuration writes them (`15m`, `1h30m`, `500ms`), in seconds. Pure."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

SECONDS_MAX = 9_223_372_036.0
"""The longest that Kueue's durations (64 bits of nanoseconds) can say: 292 years. No clock or date overflows by it."""

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def parse_duration(text: object) -> float:
    """Return seconds. Accepts Go's notation and plain numbers of seconds.

    Raises ValueError, one line that says what is accepted; negative durations are refused as Kueue does.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        # pydantic turns a ValueError, not a TypeError, into a line with the path of the key
        found = str(text).lower() if isinstance(text, bool) else repr(text)
        raise ValueError(f"{found} is not a duration: write it like 30s, 15m or 1h30m")  # noqa: TRY004  # see above
    if isinstance(text, int | float):
        seconds = float(text)
    else:
        body = text.strip()
        if body == "0":
            return 0.0
        sign = -1.0 if body.startswith("-") else 1.0
        body = body.lstrip("-")
        if not body or _PART.sub("", body):
            raise ValueError(f"{text!r} is not a duration: write it like 30s, 15m or 1h30m")
        seconds = sign * sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(body))
    if seconds < 0:
        raise ValueError(f"{text!r} is negative: a duration is 0 or more")
    if not seconds <= SECONDS_MAX:
        raise ValueError(f"{text!r} is longer than a duration can be: at most {SECONDS_MAX // 3600:.0f}h")
    return seconds


Seconds = Annotated[float, BeforeValidator(parse_duration)]
"""A duration in seconds, written as Go writes them; the type of settings."""
