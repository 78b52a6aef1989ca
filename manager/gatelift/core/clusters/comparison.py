"""How far a cluster's inventory is compared with the record, and for what absence from it proves nothing (rule R4).

One cluster's. What follows from an absence says `conclusions.absences`. Neighbours: `cluster_record` (owns it), `link`
(hears that dispatch is done), `identity` (doubts about who serves a cluster).
"""

from __future__ import annotations

from gatelift.core.clusters import identity
from gatelift.core.clusters.cluster_facts import Facts
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER


class InventoryComparison:
    """Which sessions it is about; the facts have the doubts themselves, and are handed in."""

    def __init__(self, name: str) -> None:
        self._is_local = name == LOCAL_CLUSTER
        self._first = 0
        """The first session of this WorkerCluster object, until its inventory is compared: whatever is charged to the
        name was placed by way of an earlier object."""
        self.awaited = False
        """The inventory of a resync has come and dispatch has not said yet what it found missing."""
        self.inventory_open = False
        """An inventory was asked for whose comparison with the record has not come to its end."""
        self.settled_before = 0
        """Doubts that were over when this process took over: inventories decide about what was in them."""

    @property
    def proves_by(self) -> tuple[int, int]:
        """What of this decides, with the facts, what absence proves and whose word covers it."""
        return self._first, self.settled_before

    def begin_anew(self) -> None:
        """Await nothing: a term begins or is over. An inventory that is open stays so."""
        self._first, self.awaited = 0, False

    def unproven(self, facts: Facts) -> bool:
        """Say whether absence from the present agent's inventory proves nothing for what was placed before it."""
        return self._first > 0 or identity.doubted_in(facts) > 0

    def unproven_through(self, facts: Facts) -> int:
        """Return the last session whose placements the present agent cannot be expected to know."""
        return max(self._first, identity.doubted_in(facts)) - 1

    def may_resume(self, facts: Facts) -> bool:
        """Say whether a session may go on without an inventory.

        Not while who serves the cluster is in doubt, and not before dispatch is done with what was listed last: it
        concludes nothing from the inventory of a session that is over, and would get no other one.
        """
        return not (self.inventory_open or identity.doubted_in(facts))

    def resyncs(self, session: int, facts: Facts) -> None:
        """Take that a session is written and begins with an inventory."""
        facts.unexplained = None
        self.inventory_open = True
        self._first = session if not facts.opened_session and not self._is_local else 0

    def compared(self, session: int, unexplained: int, facts: Facts) -> None:
        """Take how many placements charged here the inventory of a resync does not list, where that proves nothing.

        With none left a doubt is over. One about the first session of all is dated to the second, for which the agent
        greets anew: a person's word about what was placed before must have a session to name.
        """
        first = self._first
        self.awaited = False
        # The agent keeps the number before it answers the inventory; of a resumed session it may forget.
        facts.unexplained, facts.opened_session, self._first = unexplained, session, 0
        if unexplained and first:
            facts.replaced_session = max(first, 2)
        elif not unexplained and identity.doubted_in(facts):
            # The inventory has decided: a person's word that comes later is about what the record has lost alone.
            facts.settled_session = self.settled_before = identity.doubted_in(facts)
