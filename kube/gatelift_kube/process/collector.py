"""Python's cyclic garbage collector, set for a daemon that keeps much and makes few cycles.

Structs are invisible to it (`gc=False`), so what it walks through is mostly live state: by default a full collection
with 100,000 workloads takes longer than one call of a core may.
"""

from __future__ import annotations

import gc

THRESHOLDS = (100_000, 20, 100)
"""Allocations before a collection of each generation: rare enough to be unseen, often enough to free real cycles."""


def tune() -> None:
    """Set the thresholds; once, at the start of the process."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take everything that is alive now out of all further collections; call it when the first lists are complete."""
    gc.collect()
    gc.freeze()
