"""Whether a cluster's last inventory can be decided now that it could not be then (P10), by one link.

An agent that has just begun to watch says that it has not heard of all nodes since: what its inventory does not list
may have been removed by force before, and run on. Such a placement counts as lost. When the agent says that all nodes
were heard of, or are gone, the cluster greets anew, and its next inventory decides; where nothing waits, it need not.
"""

from __future__ import annotations

from dataclasses import dataclass

GREET_ANEW = "not all that is charged here was listed; all nodes were heard of since: greet anew"


@dataclass(slots=True)
class Unheard:
    """`inventory`: the last one left open what it does not list. `over`: it would not now. `undecided`: how many.

    `resyncs`: its next session is not a resumed one, which would ask for no inventory.
    """

    inventory: bool = False
    over: bool = False
    undecided: int = 0
    resyncs: bool = False

    def inventoried(self, *, unheard: bool) -> None:
        """Take an inventory."""
        self.inventory, self.over, self.undecided, self.resyncs = unheard, False, 0, False

    def said(self, *, unheard: bool) -> None:
        """Take what the agent says after it, in the same session."""
        self.over = not unheard

    def greets_anew(self) -> bool:
        """Say, once, that the next inventory decides what this one did not."""
        if not (self.inventory and self.over and self.undecided):
            return False
        self.inventory, self.resyncs = False, True
        return True
