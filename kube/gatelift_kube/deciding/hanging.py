"""Namespaces whose writes hang, as behind an admission webhook that answers none: they wait for themselves. Pure.

Neighbour: `executor`, whose writes these are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

HANGS_SECONDS = 1.0
"""A write that has no answer after this hangs: what an API server needs where nobody it asks keeps it waiting is
milliseconds, and it lets go of nothing for being late."""
KEPT_SECONDS = 60.0
"""For so long a namespace goes aside after its last write that hung, unless one is answered in time before."""

WriteT = TypeVar("WriteT", bound=Hashable)


@dataclass(slots=True)
class Hanging(Generic[WriteT]):
    """Writes under way, by since when, and the namespaces that go aside. Changed by its methods only."""

    _begun: dict[WriteT, tuple[str, float]] = field(default_factory=dict)  # the oldest first
    _hang: dict[WriteT, str] = field(default_factory=dict)
    _until: dict[str, float] = field(default_factory=dict)

    def began(self, write: WriteT, namespace: str, now: float) -> None:
        """Take that a write is sent."""
        self._begun[write] = namespace, now

    def ended(self, write: WriteT, now: float) -> None:
        """Take its outcome: in time it ends that its namespace goes aside, unless another one hangs."""
        hung = self._hang.pop(write, None)
        if hung is not None:
            self._until[hung] = now + KEPT_SECONDS
            return
        namespace, began = self._begun.pop(write)
        in_time = now - began < HANGS_SECONDS
        if in_time and namespace in self._until and namespace not in self._hang.values():
            del self._until[namespace]

    def found(self, now: float) -> Iterator[WriteT]:
        """Give those that hang by now, each once."""
        self._until = {each: until for each, until in self._until.items() if until > now}
        while self._begun:
            write, (namespace, began) = next(iter(self._begun.items()))
            if now - began < HANGS_SECONDS:
                return
            del self._begun[write]
            self._hang[write] = namespace
            self._until[namespace] = now + KEPT_SECONDS
            yield write

    def is_aside(self, namespace: str) -> bool:
        """Say whether a namespace goes aside."""
        return namespace in self._until

    @property
    def idle(self) -> bool:
        """Say whether no write is under way that may yet be found to hang."""
        return not self._begun
