"""When a failed request is tried again, and after how long. Pure: randomness comes in as a fraction.

The rule behind the table: a request that certainly did nothing may be repeated; one that may have done something only
if repeating it does no harm (`Intent`). Conflicts and refusals are never repeated here: they need a new decision.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_kube.deciding.errors import (
    ApiError,
    BusyError,
    ConflictError,
    KubeError,
    ServerError,
    TimedOutError,
    UnauthorizedError,
    UnreachableError,
)


class Intent(enum.Enum):
    """What repeating a request would mean when the first one may have happened."""

    READ = "read"  # harmless
    CONDITIONAL = "conditional"  # the precondition (resourceVersion; the UID of a delete) stops a second effect
    ONCE = "once"  # a create, or a patch that would overwrite what others wrote meanwhile


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delays between tries: `first_seconds`, doubled each time, up to `max_seconds`; at most `tries` tries."""

    tries: int = 5
    """With the delays below five tries span 3 s: a restart of an API server behind a load balancer."""
    first_seconds: float = 0.1
    max_seconds: float = 2.0
    retry_after_max_seconds: float = 5.0
    """A longer Retry-After is not waited for here: the caller has other work to do and other limits."""

    def seconds(self, tried: int, fraction: float) -> float:
        """Return the delay after `tried` tries; `fraction` in 0..1 spreads it over half to whole."""
        return min(self.max_seconds, self.first_seconds * 2.0 ** min(tried - 1, 32)) * (0.5 + 0.5 * fraction)


def is_transient(error: KubeError) -> bool:
    """Return whether the same request may succeed later without anybody changing anything."""
    if isinstance(error, BusyError | ServerError | TimedOutError | UnreachableError):
        return not (isinstance(error, ServerError) and error.status == 501)
    if isinstance(error, UnauthorizedError):
        return True  # the client has renewed its token by then
    # Quota admission lost a race for its own object: nothing was written (seen as 409 on pods since 1.2).
    return isinstance(error, ConflictError) and error.kind == "resourcequotas"


def delay(error: KubeError, *, tried: int, intent: Intent, policy: RetryPolicy, fraction: float) -> float | None:
    """Return the seconds to wait before the next try, or None where there must be none.

    `tried` counts the tries made, 1 or more. A Retry-After of the server is the least that is waited, with a spread of
    up to a quarter on top, so that all clients that were turned away together do not come back together.
    """
    if tried >= policy.tries or not is_transient(error):
        return None
    if error.maybe_done and intent is Intent.ONCE:
        return None
    if isinstance(error, UnauthorizedError) and tried > 1:
        return None  # the renewed token is refused as well
    own = policy.seconds(tried, fraction)
    asked = error.retry_after if isinstance(error, ApiError) else None
    if asked is None:
        return own
    return None if asked > policy.retry_after_max_seconds else max(own, asked * (1 + 0.25 * fraction))
