"""Who waits for something to be seen, by what that is. Pure. Neighbours: `core` (owns two of these)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

SubjectT = TypeVar("SubjectT")
WaiterT = TypeVar("WaiterT")


@dataclass(slots=True)
class Waiters(Generic[SubjectT, WaiterT]):
    """Waiters in the order in which they came. Only this module writes it."""

    _by_subject: dict[SubjectT, dict[WaiterT, None]] = field(default_factory=dict)

    def wait(self, subject: SubjectT, waiter: WaiterT) -> None:
        """Let somebody wait for a subject."""
        self._by_subject.setdefault(subject, {})[waiter] = None

    def of(self, subject: SubjectT) -> Collection[WaiterT]:
        """Return who waits for a subject."""
        return self._by_subject.get(subject, {}).keys()

    def take(self, subject: SubjectT) -> Collection[WaiterT]:
        """Return who waits for a subject, and let nobody wait for it any more."""
        return self._by_subject.pop(subject, {}).keys()

    def leave(self, subject: SubjectT, waiter: WaiterT) -> bool:
        """Let somebody wait no more; True where nobody else waits for that subject either."""
        waiting = self._by_subject.get(subject)
        if waiting is None or waiter not in waiting:
            return False
        del waiting[waiter]
        if not waiting:
            del self._by_subject[subject]
        return not waiting

    def leave_all(self, waiter: WaiterT) -> None:
        """Let somebody wait for nothing any more."""
        for subject in list(self._by_subject):
            self.leave(subject, waiter)
