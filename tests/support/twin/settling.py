"""Plays random instances on the engine with the shipped settings, and lets them come to rest after the last event.

What follows from a decision is no event from outside: reservations are written, who was asked to leave stops and waits
again, and time goes on. Neighbours: `instances` makes instances, `feed` feeds objects and events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import (
    PREEMPTION_PATIENCE,
    WAKE_PERIOD,
    WAKE_PERIOD_MAX,
    Decision,
    EngineSettings,
    Inadmissible,
    Preempt,
    Reserve,
)
from support.twin.admission_cases import STRATEGIES, Case
from support.twin.feed import START, Fed

CALLS_MAX = 400
"""Calls of `cycle` in which an instance this small comes to rest, all turns and moments of patience among them."""
BUDGET = 1000
ROUNDS_MAX = 24
"""How often those who have to leave may stop after the last event: more than there are workloads in an instance."""


def shipped(case: Case, text_refresh: float = 0.0) -> EngineSettings:
    """Return the settings that the manager ships with, sharing as a case says; texts are another matter."""
    return EngineSettings(
        wake_period=WAKE_PERIOD,
        wake_period_max=WAKE_PERIOD_MAX,
        preemption_patience=PREEMPTION_PATIENCE,
        text_refresh=text_refresh,
        fair_sharing=STRATEGIES[case["fair"]] if "fair" in case else (),
    )


@dataclass(slots=True)
class Settling(Fed):
    """One instance with the shipped settings."""

    since: Counter[str] = field(default_factory=Counter)
    """How often each workload was preempted since the last event from outside."""
    preemptions: int = 0
    """Of all workloads, at any time."""
    most: int = 0
    """The highest number of preemptions of one workload between two events from outside."""
    told: dict[str, tuple[str, str]] = field(default_factory=dict)
    text_refresh: float = 0.0
    rounds: int = 0
    """How often somebody had to stop after the last event."""
    leaving: set[str] = field(default_factory=set)
    taken_back: list[str] = field(default_factory=list)
    """Who was admitted and had to leave in one call: for a head of the next cycle, as in Kueue (decision 14)."""

    def __post_init__(self) -> None:
        """Decide as the manager does."""
        self.fast = Engine(shipped(self.case, self.text_refresh))
        self.fast.wall_clock(START, START)

    def play(self) -> None:
        """Let all steps happen, then everything that follows from them."""
        for decides in self.steps():
            self.since.clear()
            if decides:
                self.rest()
        while self._consequences():
            self.rounds += 1
            if self.rounds > ROUNDS_MAX:
                raise AssertionError(f"no rest after {ROUNDS_MAX} rounds: {dict(self.since)}")

    def _consequences(self) -> bool:
        self.rest()
        if not self.leaving:
            return False
        self.clock += 1
        for uid in sorted(self.leaving):
            self.happen("stopped", uid)
        self.leaving.clear()
        return True

    def rest(self) -> None:
        """Run cycles until nothing is left to do, and no moment to wait for."""
        for _ in range(CALLS_MAX):
            result = self.fast.cycle(self.clock, BUDGET)
            for fault in result.faults:
                raise fault.error
            self._take(result.decisions)
            due = self.fast.next_deadline()
            if due is None:
                return
            if not result.more:
                self.clock = max(self.clock, due)
        raise AssertionError("the engine does not come to rest")

    def _take(self, decisions: tuple[Decision, ...]) -> None:
        let_in = set()
        for one in decisions:
            if isinstance(one, Reserve):
                self.reserves[one.uid] = one
                self.told.pop(one.uid, None)
                let_in.add(one.uid)
                work = self.twin.world.works[one.uid]
                work.reserved, work.evicted, work.reserved_at = True, False, self.clock
            elif isinstance(one, Preempt):
                self.since[one.uid] += 1
                self.most = max(self.most, self.since[one.uid])
                self.preemptions += 1
                self.leaving.add(one.uid)
                self.twin.world.works[one.uid].evicted = True
                if one.uid in let_in:
                    self.taken_back.append(one.uid)
            elif isinstance(one, Inadmissible):
                self.told[one.uid] = one.reason, one.message

    def happen(self, what: str, value: object) -> None:
        """Let one event come in; who stops or ends has left."""
        if what in ("stopped", "finish") and isinstance(value, str):
            self.leaving.discard(value)
        Fed.happen(self, what, value)
