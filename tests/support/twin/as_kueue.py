"""Plays a case on the literal twin alone, as Kueue would decide it: without what decision 14 has chosen otherwise.

Kueue runs cycle after cycle, also while nothing happens, and a release wakes all of its tree. So the caller says how
many cycles run before the next event. Neighbours: `play` holds the twin and the engine in step, and lets the twin
take over what decision 14 lists; `settling` plays the engine with the shipped settings.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from support.twin.feed import Fed

CYCLES = 12
"""Cycles that run after an event unless the caller says how many: more than an instance this small needs."""


@dataclass(slots=True)
class Kueue(Fed):
    """One instance, and what became of it."""

    admitted: list[str] = field(default_factory=list)
    """Who was let in, in order."""
    preempted: Counter[str] = field(default_factory=Counter)
    told: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """What each was told, (reason, message), by cycle."""

    def __post_init__(self) -> None:
        """Let the twin decide as Kueue does."""
        Fed.__post_init__(self)
        self.twin.world.as_kueue = True

    def play(self, idle: int = CYCLES) -> None:
        """Let all steps happen, with so many cycles where the engines are to decide."""
        for decides in self.steps():
            if decides:
                self.run(idle)

    def run(self, cycles: int = CYCLES) -> None:
        """Run cycles; whoever is asked to leave has not stopped yet."""
        for _ in range(cycles):
            outcome = self.twin.cycle(self.clock)
            self.admitted += outcome.admitted
            self.preempted.update(list(outcome.preempted))
            for uid, text in outcome.told.items():
                self.told.setdefault(uid, []).append(text)

    def stop_victims(self) -> bool:
        """Let all stop who were asked to leave, and wait again; says whether there were any."""
        works = self.twin.world.works
        leaving = sorted(uid for uid, work in works.items() if work.reserved and work.evicted)
        self.clock += 1
        for uid in leaving:
            queue = works[uid].queue
            self.feed(uid)
            self.twin.flush(queue, self.clock)
        return bool(leaving)

    def happen(self, what: str, value: object) -> None:
        """Let one event come in; an end wakes all of its tree."""
        work = self.twin.world.works.get(value) if isinstance(value, str) else None
        Fed.happen(self, what, value)
        if what == "finish" and work is not None and work.reserved:
            self.twin.flush(work.queue, self.clock)

    def held(self) -> set[str]:
        """Return who holds quota."""
        return {uid for uid, work in self.twin.world.works.items() if work.reserved}
