"""Saturating integers (2.1): int64 with a sentinel for quotas that do not fit. Neighbour: everything that adds."""

from __future__ import annotations

UNLIMITED = 2**63 - 1
LOWEST = -(2**63)


def plus(left: int, right: int) -> int:
    """Return the sum, held within int64; Unlimited plus anything is Unlimited (2.1)."""
    if UNLIMITED in (left, right):
        return UNLIMITED
    return max(LOWEST, min(UNLIMITED, left + right))


def minus(left: int, right: int) -> int:
    """Return the difference; Unlimited - Unlimited = 0, Unlimited - x = Unlimited, x - Unlimited = lowest (2.1)."""
    if left == right == UNLIMITED:
        return 0
    if left == UNLIMITED:
        return UNLIMITED
    if right == UNLIMITED:
        return LOWEST
    return max(LOWEST, min(UNLIMITED, left - right))
