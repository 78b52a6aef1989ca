"""Preemptions that are postponed for a moment, where quota of what they lack is being released without them.

Where workloads end all the time, the victims of a preemption may well be about to end. So where some of each cell that
a preemptor lacks was released within the last *moment* (`Settings.preemption_patience` seconds), and no preemption has
brought that about, its preemptions are postponed: it waits at the head of its queue, with its room reserved, for no
longer than a moment after victims were first found for it. Otherwise it preempts at once, as in Kueue. Pure notes.
Neighbours: `state` notes releases and wakes, `postponing` decides on it for `cycle`.
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
class PostponedPreemption:
    """The preemptions of one workload: postponed until then, or once postponed."""

    until: float
    plan: Plan | None = None
    """Its victims and what it would be assigned, where another search could find nothing else until that fits."""
    built: int = 0
    """The build of the tree for which the plan was made."""


@dataclass(slots=True)
class PostponedPreemptions:
    """The preemptors whose preemptions are postponed, and what was released in their trees."""

    waiting: dict[str, PostponedPreemption] = field(default_factory=dict)
    """By UID; one whose moment is over stays here until it leaves its queue, so that it is postponed once."""
    due: list[tuple[float, str]] = field(default_factory=list)
    """A heap of when their moments are over."""
    ends: dict[str, dict[Cell, float]] = field(default_factory=dict)
    """When something was released last that no preemption has brought about, by root and cell."""

    def clear(self) -> None:
        """Forget what was released: the trees are built anew. What is postponed does not begin again."""
        self.ends.clear()

    def ended(self, tree: Tree | None, name: str, usage: Usage, now: float) -> None:
        """Note a release of quota of the queue `name` that no preemption has brought about."""
        node = tree.queues.get(name) if tree is not None and usage else None
        if node is not None:
            self.ends.setdefault(node.root, {}).update(dict.fromkeys(usage, now))

    def expects(self, root: str, lacking: Iterable[Cell], now: float, moment: float) -> bool:
        """Return whether each cell that is lacking had such a release in a tree within the last moment."""
        ends = self.ends.get(root)
        return ends is not None and all(now - ends.get(cell, -moment) < moment for cell in lacking)

    def begin(self, uid: str, until: float) -> PostponedPreemption:
        """Postpone the preemptions of a workload until then, unless they were before; returns what is noted of it."""
        known = self.waiting.get(uid)
        if known is None:
            known = self.waiting[uid] = PostponedPreemption(until)
            heapq.heappush(self.due, (known.until, uid))
        return known

    def of(self, entry: Entry, now: float) -> PostponedPreemption | None:
        """Return what is noted of a preemptor, None if its preemptions are not postponed (any more)."""
        if not self.waiting:
            return None
        found = self.waiting.get(entry.uid)
        return found if found is not None and now < found.until else None

    def waits_on(self, entry: Entry, tree: Tree, node: TreeNode, now: float) -> bool:
        """Return whether the preemptions of a workload are postponed with a plan, and it does not fit without."""
        known = self.of(entry, now)
        return known is not None and known.plan is not None and not tree.fits(node, known.plan.assignment.usage)

    def next_time(self) -> float | None:
        """Return when the next moment is over."""
        return self.due[0][0] if self.due else None

    def over(self, now: float) -> list[str]:
        """Take out the UIDs of preemptors whose moment is over."""
        found = []
        while self.due and self.due[0][0] <= now:
            found.append(heapq.heappop(self.due)[1])
        return found
