"""A second, literal implementation of quota: KEP-79's statement evaluated afresh for each question.

Nothing is shared with the engine but the input values. What a node has left is T(queue) = quota - usage and
T(cohort) = quota + sum of min(lending limit, T(child)); a state is right if T(x) >= -borrowing limit at every node
that has a parent, and T(root) >= 0. What a queue may still take is the largest amount that keeps it right.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TwinNode:
    """A queue (without children) or a cohort, for one cell of quota."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None
    parent: str = ""
    usage: int = 0
    children: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Twin:
    """All nodes by name; names are `queue/x` and `cohort/x`."""

    nodes: dict[str, TwinNode]

    def left(self, name: str) -> int:
        """Return T(name)."""
        node = self.nodes[name]
        total = node.nominal - node.usage
        for child_name in node.children:
            child = self.nodes[child_name]
            rest = self.left(child_name)
            total += rest if child.lending is None else min(child.lending, rest)
        return total

    def right(self) -> bool:
        """Return whether no limit is broken anywhere."""
        for name, node in self.nodes.items():
            if not node.parent and self.left(name) < 0:
                return False
            if node.parent and node.borrowing is not None and self.left(name) < -node.borrowing:
                return False
        return True

    def available(self, name: str, ceiling: int) -> int:
        """Return the largest amount up to `ceiling` that the queue may take on top, by trying one after the other."""
        node = self.nodes[name]
        before = node.usage
        found = 0
        for amount in range(1, ceiling + 1):
            node.usage = before + amount
            if not self.right():
                break
            found = amount
        node.usage = before
        return found
