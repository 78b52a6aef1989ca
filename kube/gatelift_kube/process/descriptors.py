"""How many files a process may have open: raised as far as it goes, and shared so that the API keeps its own."""

from __future__ import annotations

import math
import resource

WANTED = 1 << 20
"""More is asked for by nobody here, and `unlimited` is no number to reckon with."""
KEPT_BACK = 256
"""Never given to who dials in: the API's 64 connections and watches, listening sockets, files, the log."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; return how many files may be open. It stays as it is where that fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
        return wanted
    return WANTED if soft == resource.RLIM_INFINITY else soft


def share(descriptors: int, *, part: float) -> int:
    """Return a part of the descriptors that are not kept back."""
    return max(0, math.trunc((descriptors - KEPT_BACK) * part))
