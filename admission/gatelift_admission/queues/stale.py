"""Whose texts may have grown old, by cohort tree: what happens wakes only those whom it may help. Pure bookkeeping.

A text is of one evaluation: "9 more needed", "no longer fits". Too small a release wakes nobody, and who is let in
elsewhere neither; then it says what is not true any more. So each tree in which something has happened is noted, and
`retelling` goes through its texts once it has come to rest. Neighbours: `state` notes, `retelling` evaluates.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission import texts
from gatelift_admission.entries.entry import Entry

STALE_MAX: Final = 60.0
"""Seconds after which texts of a tree that never rests are brought up to date all the same."""
_REASONS: Final = frozenset(
    {texts.WAITING_FOR_QUOTA, texts.EXCEEDS_MAX_QUOTA, texts.NO_MATCHING_FLAVOR, texts.WAITING_FOR_PREEMPTED}
)


def grows_old(said: tuple[str, str] | None) -> bool:
    """Say whether a text is of one evaluation of the workload itself; that an equal one failed stays true."""
    return said is not None and said[0] in _REASONS and said[1] != texts.BYPASSED


@dataclass(slots=True)
class Stale:
    """Texts that may grow old, by the root of the tree in which their workloads wait; and who is looked at next."""

    said: dict[str, dict[str, Entry]] = field(default_factory=dict)
    since: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When something happened in a tree first since its texts were gone through, and last."""
    line: deque[Entry] = field(default_factory=deque)
    """Who is looked at again, one batch after the other; no other tree begins before it is empty."""
    pause_until: float = 0.0

    def note(self, entry: Entry, root: str) -> None:
        """Note that what is said of a workload that waits in a tree may grow old; `root` "": it does not."""
        before = entry.said_in
        if before == root:
            return
        if before:
            known = self.said.get(before)
            if known is not None:
                known.pop(entry.uid, None)
                if not known:
                    del self.said[before]
        if root:
            self.said.setdefault(root, {})[entry.uid] = entry
        entry.said_in = root

    def happened(self, root: str, now: float) -> None:
        """Note that something happened in a tree."""
        known = self.since.get(root)
        self.since[root] = (now if known is None else known[0], now)

    def regroup(self, roots: Iterable[tuple[Entry, str]], now: float) -> None:
        """Put all under the roots of a new tree (""; waits in none any more); all of them may be old."""
        listed = list(roots)
        self.said.clear()
        self.since.clear()
        for entry, root in listed:
            entry.said_in = ""
            self.note(entry, root)
        for root in self.said:
            self.happened(root, now)

    def noted(self) -> list[Entry]:
        """Return all whose texts may grow old."""
        return [entry for known in self.said.values() for entry in known.values()]

    def next_time(self, rest: float) -> float | None:
        """Return when `begin` or the next batch is due; a tree is at rest when nothing happened for `rest` seconds.

        Never, if `rest` is 0.
        """
        if rest <= 0:
            return None
        if self.line:
            return self.pause_until
        found: float | None = None
        for root in self.since:
            if root in self.said:
                due = self._due(root, rest)
                found = due if found is None or due < found else found
        return found

    def begin(self, now: float, rest: float) -> None:
        """Line up who waits in the trees that are due, unless others stand there still."""
        if self.line or not self.since:
            return
        for root in [root for root in self.since if self._due(root, rest) <= now]:
            del self.since[root]
            self.line.extend(self.said.get(root, {}).values())

    def _due(self, root: str, rest: float) -> float:
        first, last = self.since[root]
        return min(last + rest, first + STALE_MAX)
