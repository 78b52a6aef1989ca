"""When quota of pods that are being stopped is free again (KEP-6143): the manager's rule, and an agent's word. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class ReleaseRule(enum.StrEnum):
    """The values travel; the first two are what people write."""

    ON_TERMINATING = "OnTerminating"
    """Once all of it is on its way out: each pod's deletion is accepted, or it is over."""
    ON_TERMINAL = "OnTerminal"
    """Once all of it has stopped, or its deadline has passed."""
    AFTER_GRACE = "AfterGrace"
    """Once the time has passed that its running pods were given: Kueue's rule for pods before KEP-6143."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """All of a placement leave (KEP-6143): each pod is being deleted, is over, or was never let go and is written to.

    `since_seconds`: how long ago that was seen. `grace_seconds`: the longest that one of those that hold resources had
    been given by then, `running_grace_seconds` that one of those whose containers run. `holds`: this worker frees
    quota when they have stopped, whatever rule its manager has.
    """

    since_seconds: float = 0.0
    grace_seconds: float = 0.0
    running_grace_seconds: float = 0.0
    holds: bool = False
