"""What may still be occupied after its quota was freed (KEP-6143), as a ClusterQueue says it: a condition. Pure.

One line for people that programs read as well: `gatelift get queues` and `top` show it from the queue alone, without a
look at any Workload. Neighbours: `ghosts` counts, `rules.checks` has it written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from gatelift_admission.values import amounts
from gatelift_admission.values.model import Usage

CONDITION: Final = "gatelift.dev/Ghost"
"""Of a ClusterQueue; it has it only while something is occupied."""
REASON: Final = "QuotaReleased"
_BEGIN: Final = "Pods that are being stopped may still occupy nodes after their quota was freed: "
_CELLS_MAX: Final = 128
"""More than a queue is likely to have; a condition holds 32 KiB."""
_CELL: Final = re.compile(r"(\S+) (\S+) of flavor ([^\s,]+)")


class Occupied(NamedTuple):
    """One resource in one flavor."""

    resource: str
    amount: str
    flavor: str


def text(usage: Usage) -> str:
    """Return an amount by resource and flavor as people read it, "" for nothing."""
    cells = [
        f"{resource} {amounts.to_text(amount, resource)} of flavor {flavor}"
        for (flavor, resource), amount in sorted(usage.items())
        if amount
    ]
    left = len(cells) - _CELLS_MAX
    return ", ".join(cells[:_CELLS_MAX]) + (f" and {left} more" if left > 0 else "")


def message(usage: Usage) -> str:
    """Return what the condition says, "" for nothing."""
    found = text(usage)
    return f"{_BEGIN}{found}" if found else ""


def read(said: str) -> Iterator[Occupied]:
    """Yield what such a message says; nothing of one that is another."""
    if said.startswith(_BEGIN):
        for found in _CELL.finditer(said, len(_BEGIN)):
            yield Occupied(found[1], found[2], found[3])
