"""The same trouble again and again is one line a minute: what daemons tell their log, bounded in number.

A watch that fails is opened anew several times a second at first, and an agent that waits for a person asks every few
seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from gatelift_kube.process.clock import Clock, monotonic

REPEAT_SECONDS = 60.0
"""After this long the same is worth a line again: a log that is looked at shows what still holds."""

KEPT_MAX = 1024
"""Different facts that are remembered; the one told longest ago is forgotten first."""

PEERS_MAX = 16
"""Peers that are named of one trouble within that time; of a crowd the first say where it comes from."""
OTHERS = "others"
"""In the place of a peer: all that are not named."""


class Repetitions:
    """Says of each fact whether it is worth a line now, and how often it went without one since its last."""

    def __init__(self, seconds: float = REPEAT_SECONDS, clock: Clock = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._told: dict[Hashable, tuple[float, int]] = {}

    def untold(self, fact: Hashable) -> int | None:
        """Return how often `fact` came since its last line, None when it is to have none now; 0 for the first."""
        now = self._clock()
        at, count = self._told.get(fact, (now - self._seconds, 0))
        if now - at < self._seconds:
            self._told[fact] = at, count + 1
            return None
        self._told.pop(fact, None)
        if len(self._told) >= KEPT_MAX:
            del self._told[next(iter(self._told))]
        self._told[fact] = now, 0
        return count


class PeerRepetitions:
    """The same of what many peers may do: some are named, the others are one. Strangers fill no log."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._each = Repetitions(clock=clock)
        self._named: dict[str, tuple[float, set[str]]] = {}

    def untold(self, peer: str, trouble: str) -> tuple[str, int] | None:
        """Return who is named with a trouble, and how often it went without a line; None: no line. Troubles are few."""
        now = self._clock()
        began, named = self._named.get(trouble, (now, set()))
        if now - began >= REPEAT_SECONDS:
            began, named = now, set()
        if peer not in named:
            peer = peer if len(named) < PEERS_MAX else OTHERS
            named.add(peer)
        self._named[trouble] = began, named
        count = self._each.untold((peer, trouble))
        return (peer, count) if count is not None else None


def watch_problems(log: Any, clock: Clock = monotonic) -> Callable[[str], None]:
    """Return what takes the problems of watches (`Reflector.on_problem`) and logs each at most once a minute."""
    return problems(log, "watch interrupted", clock)


def problems(log: Any, event: str, clock: Clock = monotonic) -> Callable[[str], None]:
    """Return what takes texts of problems and logs each at most once a minute, as `event`."""
    repetitions = Repetitions(clock=clock)

    def told(problem: str) -> None:
        untold = repetitions.untold(problem)
        if untold is not None:
            log.warning(event, problem=problem, **({"times_before": untold} if untold else {}))

    return told
