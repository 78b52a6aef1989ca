"""What one pass knows, computed once where it begins: a case is handed down instead of its parts. Values.

A pass does not change what it began with: whatever it asks for comes back as an event, and as another pass. Neighbours:
`reconcile` begins the passes over Workloads, `owners` those over users' objects.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import Owner
from gatelift.core.records.record import Record
from gatelift.core.state.core import Core
from gatelift_kinds.kind import Kind
from gatelift_kube.objects.kueue import Workload


class Case(msgspec.Struct, frozen=True):
    """One pass over one Workload.

    `known`, `rec`: the Workload and its record, as they were last seen. `attempt`: of the record's epoch. `kind`: of
    its user's object, None for a Workload without one that travels. `owner`: that object, None where no cache has it.
    """

    core: Core
    known: Workload
    rec: Record
    attempt: Attempt
    kind: Kind[Any] | None
    owner: Owner | None
    now: float


class ObjectCase(msgspec.Struct, frozen=True):
    """One pass over one user's object: `workload` and `attempt` are its own, None where it has none (yet)."""

    core: Core
    owner: Owner
    workload: Workload | None
    attempt: Attempt | None
    now: float

    def of_workload(self) -> Case | None:
        """Return what a pass over its Workload knows, None where that has no attempt."""
        known, attempt = self.workload, self.attempt
        if known is None or attempt is None:
            return None
        rec = self.core.knowledge.readings[attempt.workload][1]
        return Case(self.core, known, rec, attempt, self.owner.kind, self.owner, self.now)
