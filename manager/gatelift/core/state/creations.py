"""Which Workload is being made for which user's object. Pure. Neighbours: `core` (owns it), `works.owners`."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_kube.values.resources import ObjectKey, ObjectRef


@dataclass(slots=True)
class Creations:
    """Kept until the Workload is seen, also where the outcome of its create is unknown. Only this module writes it."""

    _owners: dict[ObjectKey, ObjectRef] = field(default_factory=dict)

    def begin(self, workload: ObjectKey, owner: ObjectRef) -> None:
        """Take that the answer to a write of a Workload is waited for by this object."""
        self._owners[workload] = owner

    def owner_of(self, workload: ObjectKey) -> ObjectRef | None:
        """Return who waits for a Workload to be made."""
        return self._owners.get(workload)

    def done(self, workload: ObjectKey) -> None:
        """Take that nobody waits for a Workload to be made any more."""
        self._owners.pop(workload, None)

    def __bool__(self) -> bool:
        """Say whether anything is being made."""
        return bool(self._owners)
