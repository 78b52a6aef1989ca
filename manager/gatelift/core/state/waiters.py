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
    _by_waiter: dict[WaiterT, set[SubjectT]] = field(default_factory=dict)

    def wait(self, subject: SubjectT, waiter: WaiterT) -> None:
        """Let somebody wait for a subject."""
        self._by_subject.setdefault(subject, {})[waiter] = None
        self._by_waiter.setdefault(waiter, set()).add(subject)

    def wait_only(self, subject: SubjectT, waiter: WaiterT) -> None:
        """Let somebody wait for a subject, and for no other one any more."""
        if self._by_waiter.get(waiter) != {subject}:
            self.leave_all(waiter)
            self.wait(subject, waiter)

    def of(self, subject: SubjectT) -> Collection[WaiterT]:
        """Return who waits for a subject."""
        return self._by_subject.get(subject, {}).keys()

    def take(self, subject: SubjectT) -> Collection[WaiterT]:
        """Return who waits for a subject, and let nobody wait for it any more."""
        waiting = self._by_subject.pop(subject, {}).keys()
        for waiter in waiting:
            self._waits_no_more(subject, waiter)
        return waiting

    def leave(self, subject: SubjectT, waiter: WaiterT) -> bool:
        """Let somebody wait no more; True where nobody else waits for that subject either."""
        waiting = self._by_subject.get(subject)
        if waiting is None or waiter not in waiting:
            return False
        del waiting[waiter]
        self._waits_no_more(subject, waiter)
        if not waiting:
            del self._by_subject[subject]
        return not waiting

    def leave_all(self, waiter: WaiterT) -> None:
        """Let somebody wait for nothing any more: as many steps as it waits for."""
        for subject in tuple(self._by_waiter.get(waiter, ())):
            self.leave(subject, waiter)

    def _waits_no_more(self, subject: SubjectT, waiter: WaiterT) -> None:
        subjects = self._by_waiter[waiter]
        subjects.discard(subject)
        if not subjects:
            del self._by_waiter[waiter]
