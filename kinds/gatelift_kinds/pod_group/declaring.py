"""Which pod of a group declares the sets of all of them, and what fits them: kept up by each change of one pod. Pure.

The oldest pod that declares is the driver; where several declare they have to say the same, which `composition` tells.
A declaration that comes, changes or goes says anew what every other pod is: each of those is read again by itself
(`unread`), since nothing goes through all of them at once. Neighbours: `declaration` reads the text, `roles` compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gatelift_kinds.pod_group import roles
from gatelift_kinds.pod_group.declaration import Declaration, declared
from gatelift_kinds.pod_group.marks import GroupMarks
from gatelift_kinds.pod_group.ordered import Ordered
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.pod_group.tally import Named
from gatelift_kinds.shared.json_parts import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The pod that declares: its own role, its spec as served, and whether that has what a flavor adds."""

    uid: str
    declaration: Declaration
    role: str
    spec: Json
    lifted: bool


class Declaring:
    """The pods of a group that declare its sets. `unread`: UIDs of pods that were read by another declaration."""

    __slots__ = ("_ages", "_declaring", "unread")

    def __init__(self) -> None:
        self._declaring: dict[str, tuple[Named, Driver]] = {}
        self._ages: Ordered[Named] = Ordered()
        self.unread: set[str] = set()

    @property
    def driver(self) -> Driver | None:
        """The oldest pod that declares; None where none does."""
        oldest = self._ages.first()
        return self._declaring[oldest[0][-1]][1] if oldest else None

    def put(self, member: Named, said: GroupMarks, spec: Json, known: Iterable[str], *, lifted: bool) -> None:
        """Take in a pod, or another version of it; `known`: the UIDs of all."""
        uid, before = member[-1], self.driver
        self._leave(uid)
        found = declared(said.sets).declaration if said.sets else None
        if found is not None:
            role = found.own(said.role)
            driver = Driver(uid=uid, declaration=found, role=role, spec=spec, lifted=lifted)
            self._declaring[uid] = (member, driver)
            self._ages.add(member)
        self.unread.discard(uid)
        self._look_again(before, known)

    def drop(self, uid: str, known: Iterable[str]) -> None:
        """Let go of a pod that is gone."""
        before = self.driver
        self._leave(uid)
        self.unread.discard(uid)
        self._look_again(before, known)

    def fit(self, uid: str, said: GroupMarks, spec: Json, *, lifted: bool) -> RoleFit:
        """Return the role of a pod, or why it has none."""
        driver = self.driver
        unreadable = declared(said.sets).errors if said.sets else ()
        if unreadable and not lifted:
            return RoleFit("", str(unreadable[0]))
        if driver is None:
            return roles.fit(said, spec, lifted=lifted)
        of = None if driver.uid == uid else driver.spec
        return roles.fit(said, spec, driver.declaration, of, lifted=lifted, driver_lifted=driver.lifted)

    def _leave(self, uid: str) -> None:
        found = self._declaring.pop(uid, None)
        if found is not None:
            self._ages.remove(found[0])

    def _look_again(self, before: Driver | None, known: Iterable[str]) -> None:
        """Have all other pods read again where what is declared, or by whom, is not what it was."""
        now = self.driver
        if _declares(before) != _declares(now):
            self.unread = set(known)
            if now is not None:
                self.unread.discard(now.uid)


def _declares(driver: Driver | None) -> tuple[str, str]:
    return (driver.uid, driver.declaration.digest) if driver is not None else ("", "")
