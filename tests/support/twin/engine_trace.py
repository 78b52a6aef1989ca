"""Plays random instances on the admission engine alone and prints what it decides and shows, a line for each instance.

Two builds of the engine that print the same have decided the same. The instances are those of the twin; their events
do not depend on the engine but for what it has reserved. Run: `python -m support.twin.engine_trace FIRST COUNT` prints
digests, `python -m support.twin.engine_trace FIRST 1 --whole` all that one instance shows.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from gatelift_admission.engine import is_compiled
from gatelift_admission.values.model import Preempt, Reserve
from support.twin.engine import Twin
from support.twin.feed import Fed
from support.twin.instances import instance, with_slices

CALLS_MAX = 200
"""Calls of `cycle` in which an instance this small comes to rest, some of them with a budget of one step."""


class Nobody:
    """Stands where `Fed` has the twin: it keeps when somebody was let in, and who was asked to leave."""

    def __init__(self) -> None:
        self.world = SimpleNamespace(namespaces={}, works={}, fair=None, slices={})

    def feed(self, *_: Any) -> None:
        """Ignore an object."""

    def remove(self, *_: Any) -> None:
        """Ignore the end of an object."""

    def reach(self, *_: Any, **__: Any) -> None:
        """Ignore who cannot be stopped now."""


@dataclass(slots=True)
class Alone(Fed):
    """The engine, and all that it said."""

    lines: list[str] = field(default_factory=list)
    budget: int = 150

    def play(self) -> None:
        """Play all steps."""
        for decides in self.steps():
            if decides:
                self._cycle()
            self._show()

    def _cycle(self) -> None:
        works: dict[str, Any] = self.twin.world.works
        for _ in range(CALLS_MAX):
            result = self.fast.cycle(self.clock, self.budget)
            self.lines.append(repr(result))
            for one in result.decisions:
                if isinstance(one, Reserve):
                    self.reserves[one.uid] = one
                    works[one.uid] = SimpleNamespace(reserved_at=self.clock, evicted=False)
                elif isinstance(one, Preempt):
                    works[one.uid].evicted = True
            if not result.more:
                return
        raise AssertionError(f"no rest after {CALLS_MAX} calls")

    def _show(self) -> None:
        engine = self.fast
        self.lines += [repr(engine.cluster_queue_status(name)) for name in self.queues]
        self.lines += [repr(engine.pending_positions(name)) for name in self.queues]
        for uid in self.objects:
            self.lines.append(repr((uid, engine.phase(uid), engine.charged(uid), engine.requests(uid))))
            self.lines.append(repr(engine.explain(uid)))


def trace(seed: int) -> list[str]:
    """Return all that the engine says of one instance; each third one has calls that are cut after every step.

    Each fourth one has slices of elastic workloads.
    """
    case = with_slices(seed, instance(seed)) if seed % 4 == 0 else instance(seed)
    alone = Alone(case, twin=cast("Twin", Nobody()), budget=1 if seed % 3 == 0 else 150)
    alone.play()
    return alone.lines


def digests(first: int, count: int) -> Iterator[str]:
    """Yield one line for each instance: its seed, how much it said, and the digest of that."""
    for seed in range(first, first + count):
        lines = trace(seed)
        yield f"{seed} {len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"


def main(arguments: list[str]) -> None:
    """Print what was asked for."""
    first, count = int(arguments[0]), int(arguments[1])
    print(is_compiled())  # noqa: T201 - it is for another process to read
    for line in trace(first) if "--whole" in arguments else digests(first, count):
        print(line)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
