"""Delays of what fails again and again. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays of a key that fails again and again: `first_seconds`, then times `factor`, up to `max_seconds`."""

    first_seconds: float = 0.05
    factor: float = 2.0
    max_seconds: float = 60.0

    def seconds(self, failures: int, fraction: float = 1.0) -> float:
        """Return the delay after `failures` failures in a row (1 or more); `fraction` in 0..1 spreads its upper half.

        A fraction of 1 gives the whole delay, of 0 the half, so that many keys that failed at once do not return at
        once.
        """
        # The exponent is capped because a float overflows long before the number of failures does.
        whole = min(self.max_seconds, self.first_seconds * self.factor ** min(failures - 1, 64))
        return whole * (0.5 + 0.5 * fraction)
