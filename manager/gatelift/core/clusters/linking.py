"""What all links share: who leads and until when, the counters, and where one step's wishes are collected. Pure.

Neighbours: `links` (owns them), `link` (uses them).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.commands import Command
from gatelift.core.api.counter import Counter
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.link_values import CounterProved, Upcall, WriteIds
from gatelift_wire.sessions import session as wire


@dataclass(slots=True)
class Effects:
    """What one step wants, collected in order."""

    commands: list[Command] = field(default_factory=list)
    upcalls: list[Upcall] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Leading:
    """What every link shares: who leads, until when, and the counters."""

    ids: WriteIds
    wall: Wall
    origin: str = ""
    term: int = 0
    valid_until: float = 0.0
    record_revision: int = 0
    counter: Counter = field(default_factory=Counter)

    def shown(self, cluster: str, output: wire.CounterShown) -> CounterProved:
        """Judge the counter that an agent of `cluster` brings back."""
        proof = self.counter.judge(cluster, output.sealed)
        return CounterProved(cluster=cluster, proof=proof, counter=output.sealed.counter, term=output.term)

    def valid(self, now: float) -> bool:
        """Say whether this process may command: it leads and its own Lease is valid."""
        return self.term > 0 and self.valid_until > now
