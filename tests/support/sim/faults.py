"""How bad a simulated world is: probabilities and times, drawn from the seed, so that each seed is another world."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, fields

from support.sim.clock import Timeline

CLOCK_DRIFT_MAX = 0.01
"""What the protocol's margins allow for; a clock of a computer is a hundred times better."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """All of them; the defaults are a world without faults."""

    write_slow: float = 0.0
    """A write lands late, up to the time limit of writes."""
    write_lost: float = 0.0
    """A write never lands; nobody can tell."""
    answer_lost: float = 0.0
    """A write lands; its answer is lost."""
    write_late: float = 0.0
    """The answer is `unknown` at once, and the write lands after it."""
    write_after: float = 0.0
    """A write lands after its time limit, up to `port.AFTER_SECONDS_MAX` after everybody has given it up."""
    answer_refused: float = 0.0
    """A write is answered 403, 409, 422, 429 or 500, by no fault of its own."""
    watch_lag: float = 0.0
    """A watch is seconds behind."""
    watch_break: float = 0.0
    """A watch ends; its successor goes on."""
    watch_gone: float = 0.0
    """A watch ends and its history is compacted (410): what happened between is seen by a list only."""
    frame_slow: float = 0.0
    """A frame takes up to seconds."""
    frame_twice: float = 0.0
    """A frame comes twice."""
    stream_break: float = 0.0
    """A stream breaks as a frame is sent."""
    wrong_manager: float = 0.0
    """A dial reaches a manager that does not lead."""
    pod_slow: float = 0.0
    """Controllers and kubelets take up to seconds."""
    clock_drift: float = 0.0
    """How much faster or slower than true a process's clock may run; each has one of its own."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each of them came true."""

    def strikes(self, name: str, time: Timeline) -> bool:
        """Draw whether a fault comes true now, and count it."""
        if not time.chance(getattr(self, name)):
            return False
        self.counts[name] += 1
        return True

    def end(self) -> None:
        """Let nothing fail any more."""
        for each in fields(self):
            if each.name != "counts":
                setattr(self, each.name, 0.0)


def drawn(rng: random.Random) -> Faults:
    """Return the faults of one world: some kinds are absent, the others rare or frequent."""

    def some(most: float) -> float:
        return rng.choice((0.0, 0.0, most / 10, most / 3, most))

    return Faults(
        write_slow=some(0.15),
        write_lost=some(0.08),
        answer_lost=some(0.08),
        write_late=some(0.08),
        write_after=rng.choice((0.0, 0.0, 0.0, 0.01, 0.05)),
        answer_refused=rng.choice((0.0, 0.0, 0.01, 0.05)),
        watch_lag=some(0.1),
        watch_break=some(0.05),
        watch_gone=some(0.05),
        frame_slow=some(0.1),
        frame_twice=some(0.05),
        stream_break=some(0.01),
        wrong_manager=some(0.3),
        pod_slow=some(0.3),
        clock_drift=rng.choice((0.0, CLOCK_DRIFT_MAX, CLOCK_DRIFT_MAX)),
    )
