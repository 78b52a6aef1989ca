"""Pods that a driver has made at this worker by itself, as long as they wait at their gate and are nobody's yet.

By the group that they name. `advancing.adopting` takes them in or turns them away; here they are only known. Of which
placement a group is the manager says with its commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_agent.core.values.wakes import Alarms
from gatelift_kube.values.resources import ObjectRef
from gatelift_wire.values.keys import PlacementKey

Group = tuple[str, str]
"""A namespace and a group's name."""


@dataclass(slots=True, kw_only=True)
class Newcomer:
    """One of them. `since`: when it was first seen; `told`: why it is not taken in, as people were told."""

    ref: ObjectRef
    uid: str
    group: Group
    role: str
    made_at: str
    since: float
    told: str = ""
    unlike: str = ""
    """The shape that it was found to differ from; it is not compared with that again."""
    asked: int = 0
    """The write that ends it, 0 for none."""
    beyond_since: float | None = None
    """Since when it has no place, None: it was not looked at so, or has one."""
    counted: bool = False
    """It counts as turned away."""
    attempts: int = 0
    retry_at: float = 0.0

    def is_unlike(self, shape: str, text: str) -> bool:
        """Take that it differs from a shape, and how; True where that is news."""
        news, self.unlike, self.told = text != self.told, shape, text
        return news

    def is_beyond(self, now: float) -> float:
        """Take that it has no place; return since when."""
        if self.beyond_since is None:
            self.beyond_since = now
        return self.beyond_since

    def asks(self, write_id: int) -> None:
        """Take that its end was asked for."""
        self.asked = write_id

    def counts(self) -> bool:
        """Count it as turned away; False where it is counted already."""
        news, self.counted = not self.counted, True
        return news

    def is_not_ended(self, retry_at: float) -> None:
        """Take that its end failed, and when it may be asked for again."""
        self.asked, self.attempts, self.retry_at = 0, self.attempts + 1, retry_at

    @property
    def age(self) -> tuple[str, str, str]:
        """The order in which they get a place: the oldest first."""
        return self.made_at, self.ref.key.name, self.uid


@dataclass(slots=True)
class Newcomers:
    """`alarms`: when one is to be looked at of which no placement is live. Only this class writes what it holds."""

    alarms: Alarms[ObjectRef] = field(default_factory=Alarms)
    _known: dict[ObjectRef, Newcomer] = field(default_factory=dict)
    _groups: dict[Group, dict[ObjectRef, Newcomer]] = field(default_factory=dict)
    _placements: dict[Group, PlacementKey] = field(default_factory=dict)

    def put(self, one: Newcomer) -> bool:
        """Know one; False where it is known already."""
        known = self._known.get(one.ref)
        if known is not None and (known.uid, known.group, known.role) == (one.uid, one.group, one.role):
            return False
        self.drop(one.ref)
        self._known[one.ref] = one
        self._groups.setdefault(one.group, {})[one.ref] = one
        return True

    def drop(self, ref: ObjectRef) -> None:
        """Know one no more: it is gone, or somebody's."""
        known = self._known.pop(ref, None)
        if known is not None:
            self.alarms.drop(ref)
            self._groups[known.group].pop(ref, None)
            if not self._groups[known.group]:
                del self._groups[known.group]

    def forget_namespace(self, namespace: str) -> None:
        """Know none of a namespace that is watched no more."""
        for ref in [ref for ref in self._known if ref.key.namespace == namespace]:
            self.drop(ref)

    def at(self, ref: ObjectRef) -> Newcomer | None:
        """Return the one there."""
        return self._known.get(ref)

    def of(self, group: Group) -> list[Newcomer]:
        """Return those of a group, the oldest first."""
        found = self._groups.get(group)
        return sorted(found.values(), key=lambda each: each.age) if found else []

    def opens(self, group: Group, key: PlacementKey) -> None:
        """Take that a group is a placement's."""
        self._placements[group] = key

    def closes(self, group: Group, key: PlacementKey) -> None:
        """Take that it is not any more."""
        if self._placements.get(group) == key:
            del self._placements[group]

    def placement(self, group: Group) -> PlacementKey | None:
        """Return the placement of a group."""
        return self._placements.get(group)
