"""A line in which shares take turns, and in each of them its own shares: who asks for much waits behind himself. Pure.

A share is a path of names, such as a cluster and a namespace of it. Within the last one who came first is first. Kept
are only those that wait. Neighbours: `executor`, `event_series`, the manager's agenda: in them namespaces take turns.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

WaitingT = TypeVar("WaitingT")
Share = tuple[str, ...]


@dataclass(slots=True)
class _ShareTurns(Generic[WaitingT]):
    """Those that wait in one share, or in the shares of it, whose turn is next first."""

    own: OrderedDict[WaitingT, None] = field(default_factory=OrderedDict)
    shares: OrderedDict[str, _ShareTurns[WaitingT]] = field(default_factory=OrderedDict)
    count: int = 0

    def put(self, waiting: WaitingT, share: Share) -> None:
        self.count += 1
        if not share:
            self.own[waiting] = None
            return
        below = self.shares.get(share[0])
        if below is None:
            below = self.shares[share[0]] = _ShareTurns()
        below.put(waiting, share[1:])

    def drop(self, waiting: WaitingT, share: Share) -> None:
        self.count -= 1
        if not share:
            del self.own[waiting]
            return
        below = self.shares[share[0]]
        below.drop(waiting, share[1:])
        if below.is_empty:
            del self.shares[share[0]]

    def take(self) -> WaitingT:
        self.count -= 1
        if self.own:
            return self.own.popitem(last=False)[0]
        name, below = self.shares.popitem(last=False)
        waiting = below.take()
        if not below.is_empty:
            self.shares[name] = below
        return waiting

    def of_most(self) -> WaitingT:
        """Return the next of the share that has most."""
        if not self.shares:
            return next(iter(self.own))
        return max(self.shares.values(), key=lambda each: each.count).of_most()

    @property
    def is_empty(self) -> bool:
        return not self.count


@dataclass(slots=True)
class FairLine(Generic[WaitingT]):
    """Each stands there once, with the share that it came with. Changed by its methods only."""

    _turns: _ShareTurns[WaitingT] = field(default_factory=_ShareTurns)
    _shares: dict[WaitingT, Share] = field(default_factory=dict)

    def stand(self, waiting: WaitingT, share: Share) -> None:
        """Stand in line; who is there already keeps its place."""
        if waiting not in self._shares:
            self._shares[waiting] = share
            self._turns.put(waiting, share)

    def leave(self, waiting: WaitingT) -> None:
        """Leave the line."""
        share = self._shares.pop(waiting, None)
        if share is not None:
            self._turns.drop(waiting, share)

    def take(self) -> WaitingT:
        """Take whose turn it is; the caller has looked that there is somebody."""
        waiting = self._turns.take()
        del self._shares[waiting]
        return waiting

    def take_of_most(self) -> WaitingT:
        """Take the first of the share that has most, for whom there is no room; the caller has looked as above."""
        waiting = self._turns.of_most()
        self.leave(waiting)
        return waiting

    def __contains__(self, waiting: WaitingT) -> bool:
        """Say whether somebody stands there."""
        return waiting in self._shares

    def __len__(self) -> int:
        """Return how many stand there."""
        return len(self._shares)
