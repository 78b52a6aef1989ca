"""Ends of objects that leave a live placement, said to the manager and not acknowledged yet. Pure.

What shows such an end stays until the manager has it: an agent that begins anew knows of nothing that was removed
before it watched, and would doubt it for as long as a node may be silent (P10). Neighbours: `parting` says them,
`link` numbers what goes out and reads how far the manager has come.
"""

from __future__ import annotations

from collections import deque

from gatelift_agent.core.placement.placements import Tracked
from gatelift_wire.values.keys import PlacementKey

Word = tuple[PlacementKey, Tracked]


class LastWords:
    """Those of the present session, in the order in which they were said."""

    __slots__ = ("_said", "_sent")

    def __init__(self) -> None:
        self._said: list[Word] = []
        self._sent: deque[tuple[int, Word]] = deque()

    def add(self, key: PlacementKey, tracked: Tracked) -> None:
        """Take that the end of an object is said with what goes out next."""
        tracked.leave_said = True
        self._said.append((key, tracked))

    def sent(self, number: int) -> None:
        """Take that all that was said went into the outbox, up to this number."""
        if self._said:
            self._sent.extend((number, word) for word in self._said)
            self._said = []

    def heard(self, number: int) -> list[Word]:
        """Take that the manager has acknowledged everything up to this number; return what it has heard by that."""
        found: list[Word] = []
        while self._sent and self._sent[0][0] <= number:
            _, word = self._sent.popleft()
            word[1].leave_heard = True
            found.append(word)
        return found

    def anew(self) -> None:
        """Take that a session began which knows nothing of the one before."""
        self._said = []
        self._sent.clear()
