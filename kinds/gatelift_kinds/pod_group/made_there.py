"""Pods that a driver has made at a worker by itself, as the worker's agent counts them: there is no pod at home. Pure.

Known only while a placement is live there, and by what was said of it since this process began: until then they may
run. Their quota comes back with the end of their group. Neighbours: `elsewhere` keeps it, `ends` and `places` ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gatelift_wire.values.messages import PodSetCounts


class MadeThere:
    """Counts by role. `known`: somebody has said them."""

    __slots__ = ("_by_role", "known")

    def __init__(self, by_role: Iterable[PodSetCounts] = (), *, known: bool = True) -> None:
        self._by_role = {one.name: one for one in by_role}
        self.known = known

    @property
    def goes_on(self) -> bool:
        """Say whether one of them waits, or may run; before anything is known of them: yes."""
        return not self.known or any(one.active or one.terminating for one in self._by_role.values())

    @property
    def succeeded(self) -> int:
        """How many have succeeded."""
        return sum(one.succeeded for one in self._by_role.values())

    @property
    def failed(self) -> int:
        """How many are there that have failed."""
        return sum(one.failed for one in self._by_role.values())

    def running(self, role: str) -> int:
        """Return how many of a role wait, or may run."""
        found = self._by_role.get(role)
        return found.active + found.terminating if found is not None else 0

    def at_rest(self) -> MadeThere:
        """Return what is left of them to be told once nothing of them runs."""
        every = self._by_role.values()
        return MadeThere(PodSetCounts(name=one.name, succeeded=one.succeeded, failed=one.failed) for one in every)

    def says(self, counts: Iterable[PodSetCounts]) -> bool:
        """Say whether all that is known is this."""
        return self.known and self._by_role == {one.name: one for one in counts}


NONE: Final = MadeThere()
UNKNOWN: Final = MadeThere(known=False)
