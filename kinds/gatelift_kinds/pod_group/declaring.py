"""Which pod of a group declares the sets of all of them, and what fits them: kept up by each change of one pod. Pure.

The oldest pod that declares is the driver; where several declare they have to say the same, which `composition` tells.
A declaration that comes, changes or goes says anew what every other pod is: each of those is read again by itself
(`unread`), since nothing goes through all of them at once. Once there is quota nobody's word counts who declares
something else than that was given for (HD-480). Neighbours: `declaration` reads the text, `roles` compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from gatelift_kinds.pod_group import roles
from gatelift_kinds.pod_group.declaration import PATH, SETS_MAX, Declaration, declared
from gatelift_kinds.pod_group.marks import GroupMarks
from gatelift_kinds.pod_group.ordered import Ordered
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.pod_group.shapes import as_json, mismatch
from gatelift_kinds.pod_group.tally import Named
from gatelift_kinds.shared.json_parts import Json
from gatelift_kube.objects.kueue import PodSet

OTHER_SETS = (
    f"{PATH}: declares other sets than the group has quota for: declare what its driver did, leave it out, or make a "
    "new group"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """The pod that declares: its own role, its spec as served, and whether that has what a flavor adds."""

    uid: str
    declaration: Declaration
    role: str
    spec: Json
    lifted: bool


class Declaring:
    """The pods of a group that declare its sets. `unread`: UIDs of pods that were read by another declaration.

    `_ages`: those whose word counts, by age. `_asked`: the pod sets for which there is quota, none while the group
    waits. `_agrees`: whether a declaration, by its digest, is of these.
    """

    __slots__ = ("_ages", "_agrees", "_asked", "_declaring", "unread")

    def __init__(self) -> None:
        self._declaring: dict[str, tuple[Named, Driver]] = {}
        self._ages: Ordered[Named] = Ordered()
        self._asked: tuple[PodSet, ...] = ()
        self._agrees: dict[str, bool] = {}
        self.unread: set[str] = set()

    @property
    def driver(self) -> Driver | None:
        """The oldest pod that declares, and whose word counts; None where none does."""
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
            if self._counts(found):
                self._ages.add(member)
        self.unread.discard(uid)
        self._look_again(before, known)

    def ask(self, asked: tuple[PodSet, ...], known: Iterable[str]) -> None:
        """Take for which pod sets there is quota, none while the group waits; `known`: the UIDs of all."""
        if asked == self._asked:
            return
        before, counted = self.driver, self._ages
        self._asked, self._agrees, self._ages = asked, {}, Ordered()
        for member, driver in self._declaring.values():
            if self._counts(driver.declaration):
                self._ages.add(member)
        self.unread |= {member[-1] for member in set(counted) ^ set(self._ages)}
        self._look_again(before, known)

    def refusal(self, uid: str) -> str:
        """Return why a pod that is to be let go is not: it declares something else than there is quota for."""
        found = self._declaring.get(uid)
        return OTHER_SETS if found is not None and not self._counts(found[1].declaration) else ""

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

    def _counts(self, found: Declaration) -> bool:
        """Say whether what is declared is what there is quota for, by names, counts and needs; any while there is none.

        The set without a template is its driver's own, which is compared as any pod that waits (`asked`).
        """
        if not self._asked:
            return True
        if found.digest not in self._agrees:
            if len(self._agrees) >= SETS_MAX:
                self._agrees.clear()
            self._agrees[found.digest] = _agrees(self._asked, found)
        return self._agrees[found.digest]

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


def _agrees(asked: tuple[PodSet, ...], found: Declaration) -> bool:
    if [(each.name, each.count) for each in asked] != [(each.name, each.count) for each in found.sets]:
        return False
    return not any(
        mismatch(as_json(theirs.template.spec), msgspec.json.decode(mine.template)["spec"])
        for theirs, mine in zip(asked, found.sets, strict=True)
        if mine.template is not None
    )


def _declares(driver: Driver | None) -> tuple[str, str]:
    return (driver.uid, driver.declaration.digest) if driver is not None else ("", "")
