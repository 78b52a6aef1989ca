"""Who holds quota and is not ready, and who is kept from quota meanwhile (blockAdmission). Pure.

Neighbours: `core` (owns it), `rules.readiness` (decides).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class NotReady:
    """UIDs, in the order in which they came. Only this module writes it."""

    _unready: dict[str, None] = field(default_factory=dict)
    _held_back: dict[str, None] = field(default_factory=dict)

    def add(self, uid: str) -> None:
        """Remember one who holds quota and is not ready, as far as is known."""
        self._unready[uid] = None

    def everybody(self) -> Collection[str]:
        """Return who held quota and was not ready, some no more."""
        return self._unready.keys()

    def leave(self, uids: Iterable[str]) -> None:
        """Forget those who are ready, or hold nothing."""
        for uid in uids:
            del self._unready[uid]

    def hold_back(self, uid: str) -> None:
        """Take that somebody waits for those."""
        self._held_back[uid] = None

    def is_held_back(self, uid: str) -> bool:
        """Say whether somebody waits for those."""
        return uid in self._held_back

    def holds_anybody(self) -> bool:
        """Say whether anybody waits for those."""
        return bool(self._held_back)

    def let_go(self) -> list[str]:
        """Return who waited for those, and let nobody wait any more."""
        held = list(self._held_back)
        self._held_back.clear()
        return held

    def forget(self, uid: str) -> None:
        """Let somebody wait no more; who is not ready is asked about as long as it holds quota."""
        self._held_back.pop(uid, None)
