"""What looking for flavors comes to: the modes, each flavor that was tried, and the outcome for a whole workload.

Neighbours: `assigner` and `plain` make these, `search` tries, `texts` has the words.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission import texts
from gatelift_admission.demand.growth import Held
from gatelift_admission.values.model import Amounts, Cell, Usage

Cursor = tuple[dict[str, int], ...]
"""Per pod set and resource: index of the flavor tried last, -1 once the last flavor of the group was reached."""
Option = tuple[tuple[Cell, int], ...]
"""Cells and amounts that all have to be available for one flavor to fit."""
Pins = tuple[dict[str, str], ...]
"""Per pod set: the one flavor that each resource may be given."""


class Mode(enum.IntEnum):
    """How well an assignment fits, worst first. NO_CANDIDATES: within quota, but others hold it and stay."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


SEVERITY: Final = {texts.WAITING_FOR_QUOTA: 0, texts.EXCEEDS_MAX_QUOTA: 1, texts.NO_MATCHING_FLAVOR: 2}


@dataclass(frozen=True, slots=True)
class Trial:
    """One flavor tried for one group of one pod set; mode and level are those of its worst resource."""

    flavor: str
    mode: Mode
    level: int
    reasons: tuple[str, ...]
    reason: str
    option: Option
    """What has to be available for this flavor; empty when no release of quota can help."""
    borrowing: int = 0
    """The highest level over its resources."""
    short: tuple[Cell, ...] = ()
    """Cells in which somebody would have to leave."""
    lowest: Mode = Mode.FIT
    """The worst mode of a resource, whatever its level: what the pod set is in, where the level counts first."""

    def text(self) -> str:
        """Return the attempt as the QuotaReserved event lists it."""
        mode = {Mode.FIT: "Fit", Mode.NO_FIT: "NoFit"}.get(self.mode)
        parts = [mode or f"preemptionMode={_PREEMPTION_MODE[self.mode]}"]
        if self.level:
            parts.append(f"borrow={self.level}")
        return f"{self.flavor}({';'.join([*parts, *self.reasons])})"


_PREEMPTION_MODE: Final = {Mode.NO_CANDIDATES: "NoCandidates", Mode.PREEMPT: "Preempt", Mode.RECLAIM: "Reclaim"}


@dataclass(slots=True)
class AssignedPodSet:
    """One pod set with its flavors; `flavors` is empty when nothing was found (or nothing was requested)."""

    name: str
    count: int
    requests: Amounts
    flavors: dict[str, str] = field(default_factory=dict)
    mode: Mode = Mode.FIT
    level: int = 0
    short: tuple[Cell, ...] = ()
    reasons: list[str] = field(default_factory=list)
    reason: str = ""
    attempts: list[Trial] = field(default_factory=list)
    tried: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Assignment:
    """The outcome for a whole workload."""

    pod_sets: list[AssignedPodSet] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    mode: Mode = Mode.FIT
    borrowing: int = 0
    needs: frozenset[Cell] = frozenset()
    """Cells in which somebody would have to leave."""
    lacks: tuple[Option, ...] = ()
    """The options of the first search that failed: one of them must become available before the workload can fit."""
    lacks_anything: bool = False
    """Earlier pod sets had a choice of flavors, so any release in the queue's cells may change the outcome."""
    out_of_reach: int = 0
    """How many would have to leave who cannot be stopped now, where that is all that would help."""
    held: Held | None = None
    """What is charged already beside this, of a slice that grows its chain."""

    @property
    def reason(self) -> str:
        """Return the reason of the condition: the most severe one over pod sets."""
        found = [one.reason for one in self.pod_sets if one.reason]
        return max(found, key=lambda reason: SEVERITY[reason], default=texts.NO_MATCHING_FLAVOR)

    @property
    def message(self) -> str:
        """Return the assignment message: one part per pod set that does not fit."""
        parts = [texts.cannot_assign(one.name, one.reasons) for one in self.pod_sets if one.reasons]
        text = "; ".join(parts)
        if self.out_of_reach:
            text = texts.out_of_reach(text, self.out_of_reach)
        return texts.cut(text, texts.CONDITION_MESSAGE_MAX)

    @property
    def considered(self) -> str:
        """Return the flavors tried, per pod set, for the QuotaReserved event."""
        parts = [
            f"{one.name}: {', '.join(attempt.text() for attempt in one.attempts)}"
            for one in self.pod_sets
            if one.attempts
        ]
        return " | ".join(parts)

    @property
    def cursor(self) -> Cursor:
        """Return where the next search would go on."""
        return tuple(one.tried for one in self.pod_sets)

    @property
    def pins(self) -> Pins:
        """Return the flavors that were found, as the only ones for another search."""
        return tuple(dict(one.flavors) for one in self.pod_sets)

    @property
    def has_more_flavors(self) -> bool:
        """Return whether a search ended before the last flavor of its group."""
        return any(index != -1 for one in self.pod_sets for index in one.tried.values())

    def forget_cursor(self) -> None:
        """Let the next search begin at the first flavor: what was found depends on others of the same round."""
        for one in self.pod_sets:
            one.tried.clear()
