"""Python's cyclic garbage collector, set for a daemon that keeps much and makes few cycles.

Structs are invisible to it (`gc=False`), so what it walks through is mostly live state: by default a full collection
with 100,000 workloads takes longer than one call of a core may.
"""

from __future__ import annotations

import gc

THRESHOLDS = (3_000, 1, 30_000)
"""Net allocations before a collection of the youngest, and how many of these before one of the next generation.

What the youngest generation holds is live state for the most part, so a pass walks through all of it, and nothing else
is done meanwhile: 100,000 objects hold the loop for tens of milliseconds. A young pass walks through 3,000 here, one of
the second generation through 6,000, and a full one is as rare as it can be made: after 180 million.
"""


def tune() -> None:
    """Set the thresholds; once, at the start of the process."""
    gc.set_threshold(*THRESHOLDS)


def settle() -> None:
    """Take everything that is alive now out of all further collections; call it when the first lists are complete."""
    gc.collect()
    gc.freeze()
