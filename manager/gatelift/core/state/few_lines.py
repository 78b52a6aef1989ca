"""What one cluster's words may leave in the log and in events: the first few of a kind, then how many more there were.

A worker's list may have tens of thousands of entries, each of which deserves a line for a person; all of them together
are what nobody reads, and what fills a disk. Counted from one inventory of a cluster to its next. Neighbours:
`inventories` (begins, and says the rest), `belief`, `reports`, `predecessors` (whose lines are counted).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gatelift.core.records.attempts import Attempt
    from gatelift.core.state.core import Core

LINES_MAX = 20
"""Lines of one cluster between two of its inventories: enough to see what it is about."""


@dataclass(slots=True)
class FewLines:
    """How many lines each cluster was worth, and how many of them nobody has been told of."""

    _said: Counter[str] = field(default_factory=Counter)
    _unsaid: Counter[str] = field(default_factory=Counter)

    def may(self, cluster: str) -> bool:
        """Take that there is a line to say; False: it is only counted."""
        if self._said[cluster] < LINES_MAX:
            self._said[cluster] += 1
            return True
        self._unsaid[cluster] += 1
        return False

    def rest(self, cluster: str) -> int:
        """Return how many lines were only counted since this was asked last."""
        return self._unsaid.pop(cluster, 0)

    def begin(self, cluster: str) -> None:
        """Count anew."""
        self._said.pop(cluster, None)


def note(core: Core, cluster: str, text: str, attempt: Attempt | None = None) -> bool:
    """Leave a warning about what a cluster says, if it has not had its share; False: it is counted."""
    if not core.caution.lines.may(cluster):
        return False
    core.note(text, attempt, warning=True, cluster=cluster)
    return True


def begin(core: Core, cluster: str) -> None:
    """Take that a cluster lists anew all that it has."""
    end(core, cluster)
    core.caution.lines.begin(cluster)


def end(core: Core, cluster: str) -> None:
    """Say how many lines were left out, if any were."""
    rest = core.caution.lines.rest(cluster)
    if rest:
        core.note(f"{rest} further lines about what it says are left out", warning=True, cluster=cluster)
