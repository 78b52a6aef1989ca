"""Which Workload is being made for which user's object. Pure. Neighbours: `core` (owns it), `works.owners`."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_kube.values.resources import ObjectKey, ObjectRef


@dataclass(slots=True)
class Creations:
    """Kept until the Workload is seen, also where the outcome of its create is unknown. Only this module writes it."""

    _owners: dict[ObjectKey, ObjectRef] = field(default_factory=dict)
    _made_for: dict[ObjectRef, dict[ObjectKey, None]] = field(default_factory=dict)
    """The same by the object; in the order in which they were begun."""

    def begin(self, workload: ObjectKey, owner: ObjectRef) -> None:
        """Take that the answer to a write of a Workload is waited for by this object."""
        self.done(workload)
        self._owners[workload] = owner
        self._made_for.setdefault(owner, {})[workload] = None

    def of(self, owner: ObjectRef) -> tuple[ObjectKey, ...]:
        """Return the Workloads that are being made for an object: several where each size has a name of its own."""
        return tuple(self._made_for.get(owner, ()))

    def owner_of(self, workload: ObjectKey) -> ObjectRef | None:
        """Return who waits for a Workload to be made."""
        return self._owners.get(workload)

    def done(self, workload: ObjectKey) -> None:
        """Take that nobody waits for a Workload to be made any more."""
        owner = self._owners.pop(workload, None)
        if owner is not None:
            made = self._made_for[owner]
            del made[workload]
            if not made:
                del self._made_for[owner]

    def __bool__(self) -> bool:
        """Say whether anything is being made."""
        return bool(self._owners)
