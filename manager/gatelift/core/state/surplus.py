"""Since when objects are too many: one that is so for a moment alone is none. Pure.

A list anew tells of what was made before what was deleted by its name: in between there are more than ever were.
Neighbour: `works.too_many` deletes them.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gatelift_kube.values.resources import ObjectKey

SETTLE_SECONDS = 1.0
"""A list is taken in within this, and what an end of ours frees is known."""
REMEMBERED_MAX = 1000
"""Works of which that is kept; above, the oldest waits once more."""


@dataclass(slots=True)
class SettledSurplus:
    """By work, and in it by UID."""

    _since: dict[ObjectKey, dict[str, float]] = field(default_factory=dict)

    def settled(self, work: ObjectKey, uids: Collection[str], now: float) -> tuple[frozenset[str], float | None]:
        """Take who is too many now; return who has been so for long enough, and when the next one will have."""
        before = self._since.pop(work, {})
        if not uids:
            return frozenset(), None
        since = {uid: before.get(uid, now) for uid in uids}
        self._since[work] = since
        if len(self._since) > REMEMBERED_MAX:
            del self._since[next(iter(self._since))]
        due = frozenset(uid for uid, at in since.items() if now >= at + SETTLE_SECONDS)
        later = [at + SETTLE_SECONDS for uid, at in since.items() if uid not in due]
        return due, min(later, default=None)
