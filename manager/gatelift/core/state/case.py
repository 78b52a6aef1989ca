"""What one pass knows, computed once where it begins: a case is handed down instead of its parts. Values.

A pass does not change what it began with: whatever it asks for comes back as an event, and as another pass. Neighbours:
`reconcile` begins the passes over Workloads, `owners` those over users' objects.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core.records.attempts import Attempt
from gatelift.core.records.record import Record
from gatelift.core.records.work import Owner, Work
from gatelift.core.state.core import Core
from gatelift_kinds.kind import Kind
from gatelift_kube.objects.kueue import Workload


class Case(msgspec.Struct, frozen=True):
    """One pass over one Workload.

    `known`, `rec`: the Workload and its record, as they were last seen. `attempt`: of the record's epoch. `kind`: of
    its users' objects, None for a Workload without one that travels. `work`: whose it is, without objects where no
    cache has one.
    """

    core: Core
    known: Workload
    rec: Record
    attempt: Attempt
    kind: Kind[Any] | None
    work: Work
    now: float


class ObjectCase(msgspec.Struct, frozen=True):
    """One pass over one user's object: `workload` and `attempt` are those of its work, None where it has none (yet)."""

    core: Core
    owner: Owner
    work: Work
    workload: Workload | None
    attempt: Attempt | None
    now: float

    def of_workload(self) -> Case | None:
        """Return what a pass over its Workload knows, None where that has no attempt."""
        known, attempt = self.workload, self.attempt
        if known is None or attempt is None:
            return None
        rec = self.core.knowledge.readings[attempt.workload][1]
        return Case(self.core, known, rec, attempt, self.owner.kind, self.work, self.now)
