"""Whether others need to leave at all: what is about to come free by itself is waited for, for a moment.

Where workloads end all the time, those who would have to leave for a preemptor may well be about to end. So where
something of what it lacks has come free by itself within the last *moment* (`Settings.preemption_patience` seconds), a
preemptor waits before anybody is asked to leave: at the head of its queue, with its room kept, and for no longer than a
moment after it was first found that somebody would have to. Where nothing has ended it preempts at once, as in Kueue.
Pure notes. Neighbours: `state` notes what ends and wakes, `patient` decides on it for `cycle`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from gatelift_admission.entries.entry import Entry
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Usage


@dataclass(slots=True)
class Waiting:
    """A preemptor that has asked nobody to leave yet, or had its moment to wait."""

    until: float
    plan: Plan | None = None
    """Whom it would preempt for what, where nothing else can come of another look until that fits."""
    built: int = 0
    """The build of the tree for which the plan was made."""


@dataclass(slots=True)
class Patience:
    """Who waits for what others are about to give back, and what they gave back."""

    waiting: dict[str, Waiting] = field(default_factory=dict)
    """By UID; whoever has had its moment stays until it leaves its queue, so that it gets no other."""
    due: list[tuple[float, str]] = field(default_factory=list)
    """A heap of when they have waited for long enough."""
    ends: dict[str, dict[Cell, float]] = field(default_factory=dict)
    """When something came free by itself last, in each tree."""

    def clear(self) -> None:
        """Forget what came free: the trees are built anew. Who waits does not begin again."""
        self.ends.clear()

    def ended(self, tree: Tree | None, name: str, usage: Usage, now: float) -> None:
        """Note that quota of the queue `name` came free without anybody having been asked for it."""
        node = tree.queues.get(name) if tree is not None and usage else None
        if node is not None:
            self.ends.setdefault(node.root, {}).update(dict.fromkeys(usage, now))

    def expects(self, root: str, lacking: Iterable[Cell], now: float, moment: float) -> bool:
        """Return whether something of all that is lacking came free by itself in a tree within the last moment."""
        ends = self.ends.get(root)
        return ends is not None and all(now - ends.get(cell, -moment) < moment for cell in lacking)

    def begin(self, uid: str, until: float) -> Waiting:
        """Let a preemptor wait until then, unless it has begun to before; returns how it waits."""
        known = self.waiting.get(uid)
        if known is None:
            known = self.waiting[uid] = Waiting(until)
            heapq.heappush(self.due, (known.until, uid))
        return known

    def of(self, entry: Entry, now: float) -> Waiting | None:
        """Return how a preemptor waits, None if it does not (any more)."""
        if not self.waiting:
            return None
        found = self.waiting.get(entry.uid)
        return found if found is not None and now < found.until else None

    def waits_on(self, entry: Entry, tree: Tree, node: TreeNode, now: float) -> bool:
        """Return whether a preemptor waits for others to end, and what came free changes nothing about that."""
        known = self.of(entry, now)
        return known is not None and known.plan is not None and not tree.fits(node, known.plan.assignment.usage)

    def next_time(self) -> float | None:
        """Return when the next of them has waited for long enough."""
        return self.due[0][0] if self.due else None

    def over(self, now: float) -> list[str]:
        """Take out the UIDs of those who have waited for long enough."""
        found = []
        while self.due and self.due[0][0] <= now:
            found.append(heapq.heappop(self.due)[1])
        return found
