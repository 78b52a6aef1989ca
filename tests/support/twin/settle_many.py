"""Random instances with the shipped settings, let come to rest: `make simulate`, or `-m support.twin.settle_many`.

Prints how many instances and of which seeds, the highest number of rounds of leaving until one was at rest, the highest
number of preemptions of one workload between two events from outside, and the seeds of both. A line for each seed that
finds no rest, or preempts somebody twice; ends with 1 when there was one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field

from gatelift_admission.engine import is_compiled
from support.fuzz.many import say
from support.twin.instances import instance
from support.twin.settling import Settling

TOLD_EVERY_SECONDS = 30.0


@dataclass
class Settled:
    """What became of some seeds."""

    instances: int = 0
    preemptions: int = 0
    """Of all workloads of all instances."""
    taken_back: int = 0
    """Of these, whom the same call had let in, for a head of its next cycle."""
    rounds: tuple[int, int] = (0, -1)
    """The highest number of rounds after the last event, and its seed."""
    most: tuple[int, int] = (0, -1)
    """The highest number of preemptions of one workload between two events from outside, and its seed."""
    failed: list[str] = field(default_factory=list)

    def add(self, other: Settled) -> None:
        """Take in what became of other seeds; of equals the first is named."""
        self.instances += other.instances
        self.preemptions += other.preemptions
        self.taken_back += other.taken_back
        self.rounds = max(self.rounds, other.rounds, key=lambda one: one[0])
        self.most = max(self.most, other.most, key=lambda one: one[0])
        self.failed += other.failed


def settle(seed: int) -> Settled:
    """Let one instance come to rest."""
    world, found = Settling(instance(seed)), Settled(instances=1)
    try:
        world.play()
    except Exception as error:  # noqa: BLE001 - whatever it was, this seed is told, and the others go on
        found.failed.append(f"seed {seed}: {type(error).__name__}: {error}")
    if world.most > 1:
        found.failed.append(f"seed {seed}: somebody was preempted {world.most} times, and nothing had happened between")
    found.preemptions, found.taken_back = world.preemptions, len(world.taken_back)
    found.rounds, found.most = (world.rounds, seed), (world.most, seed)
    return found


def main() -> int:
    """Let as many instances come to rest as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=10_000, help="first seed")
    parser.add_argument("--instances", type=int, default=6000, help="how many")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    told = parser.parse_args()
    engine = "compiled" if is_compiled() else "interpreted"
    total, began = Settled(), time.monotonic()
    said_at = began
    with multiprocessing.Pool(told.processes) as pool:
        for one in pool.imap(settle, range(told.first, told.first + told.instances), chunksize=8):
            total.add(one)
            for text in one.failed:
                say(text)
            if time.monotonic() - said_at > TOLD_EVERY_SECONDS:
                said_at = time.monotonic()
                say(f"{total.instances} instances, {total.preemptions} preemptions")
    say(
        f"{total.instances} instances (seeds {told.first} to {told.first + total.instances - 1}) on the {engine} engine"
        f" in {time.monotonic() - began:.0f} s: {total.preemptions} preemptions, {total.taken_back} of whom the same"
        f" call had let in; at most {total.rounds[0]} rounds (seed {total.rounds[1]}) and {total.most[0]} preemptions"
        f" of one workload between two events (seed {total.most[1]}); {len(total.failed)} failed"
    )
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
