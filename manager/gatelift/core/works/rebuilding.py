"""After a start the attempts that the records tell of are made, before anything is answered or decided.

What the links said until then waits (its amount is bounded by the agents' outboxes): an inventory that is compared with
half of the records would kill live work. Neighbours: `machine` owns this, `following` makes an attempt.
"""

from __future__ import annotations

from collections import deque

from gatelift.core.api.agenda import Key, Look
from gatelift.core.rules import containment, in_use, unrecorded
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import predecessors
from gatelift.core.state.core import DOUBTS, Core
from gatelift.core.works import following, kept_alone
from gatelift_kube.values.resources import ObjectKey

REBUILDS_PER_CALL = 300
"""Attempts made from records in one call after a start, at about 40 us each."""


class Rebuilding:
    """Which records are still to be read."""

    __slots__ = ("_left", "_recalled")

    def __init__(self) -> None:
        self._left: deque[ObjectKey] | None = None
        self._recalled = False

    def is_done(self, core: Core, now: float) -> bool:
        """Read the next ones, bounded per call; return whether all are read, and all that follows from them is done."""
        if core.rebuilt:
            return True
        if self._left is None:
            self._left = deque(core.knowledge.workloads)
        for _ in range(min(REBUILDS_PER_CALL, len(self._left))):
            key = self._left.popleft()
            if containment.is_held(core, Key(Look.WORKLOAD, key)):
                continue  # no attempt is made from half of it
            with Boundary(containment.rebuild_failed, core, key, now=now):
                kept_alone.keep(core, key)
                following.rebuild(core, key, now)
        if self._left or core.stepped_down:
            return False
        for cluster in core.links.clusters():
            predecessors.adopt(core, cluster)
        for known in unrecorded.remembered(core):  # before the queues are asked what they owe: for these as well
            with Boundary(containment.remembered_failed, core, known, now=now):
                unrecorded.charge(core, known)
        with Boundary(containment.pass_failed, core, containment.DECIDING, now=now):
            self.recall(core)
        core.has_rebuilt()
        core.agenda.mark(DOUBTS)
        return True

    def recall(self, core: Core) -> None:
        """Ask the queues what they owe, once: before anything is decided. While that raises nothing is (HD-644)."""
        if not self._recalled:
            in_use.recall(core)
            self._recalled = True
