"""When quota of pods that are being stopped is free again (KEP-6143), as the manager says it with a commit. Pure."""

from __future__ import annotations

import enum


class ReleaseRule(enum.StrEnum):
    """The values travel; the first two are what people write."""

    ON_TERMINATING = "OnTerminating"
    """Once all of it is on its way out: each pod's deletion is accepted, or it is over."""
    ON_TERMINAL = "OnTerminal"
    """Once all of it has stopped, or its deadline has passed."""
    AFTER_GRACE = "AfterGrace"
    """Once the time has passed that its running pods were given: Kueue's rule for pods before KEP-6143."""
