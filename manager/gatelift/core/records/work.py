"""What joins users' objects and Workloads: a work, and the index of all of them, kept up one object at a time.

A work is what is admitted and placed as one: one object with its Workload, n objects with one Workload, or one object
with its current Workload and the one that is to take its place. Whose work an object is says its kind (`work_of`);
which of its Workloads is the current one says `works.choosing`. Neighbours: `knowledge` keeps the index up and is asked
for the work of a Workload; who can do with one object only asks for `only_object`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.user_objects import Name
from gatelift.core.records.told import ToldMembers
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource

ABANDONED = "abandoned"
"""The end of a work of several whose objects were all deleted; no Workload has that UID."""


class SeveralObjectsError(Exception):
    """Who can do with one object only was handed a work of several: taking any one of them would be wrong."""


@dataclass(slots=True)
class Owner:
    """A user's object; `raw` is its JSON as served.

    `ref`: where it lives. `name`: all that names it. `look`: its key on the agenda. `work`: of which work it is.
    `workload`: where the Workload of that belongs. `managed`: False once somebody has taken it out of its queue, and
    for what never was in one. `held`: it is of the work that it runs for, or may, and says another one, or none.
    """

    kind: Kind[Any]
    object: KubeObject
    raw: bytes
    ref: ObjectRef = field(init=False)
    look: Key = field(init=False)
    name: Name = field(init=False)
    work: Name = field(init=False)
    workload: ObjectKey = field(init=False)
    managed: bool = field(init=False)
    held: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Name them once for each version of the object: every look at it asks for them."""
        meta = self.object.metadata
        self.ref = ObjectRef(self.kind.resource, ObjectKey(meta.namespace, meta.name))
        self.look = Key(Look.OWNER, self.ref.key, self.ref.resource)
        self.name = (self.kind.resource, meta.namespace, meta.name, meta.uid)
        self.workload = ObjectKey(meta.namespace, self.kind.workload_name(self.object))
        work = self.kind.work_of(self.object)
        self.work = self.name if work == meta.uid else (self.kind.resource, meta.namespace, self.workload.name, work)
        self.managed = self.kind.managed(self.object)

    def hold(self, work: Name, kind: Kind[Any]) -> None:
        """Keep it in a work of several, whatever it says."""
        self.kind, self.work, self.held = kind, work, True
        self.workload = ObjectKey(work[1], work[2])
        self.managed = kind.managed(self.object)


def _place(owner: Owner) -> tuple[str, str, str]:
    """Return by what the objects of a work are in order: it does not change while an object is there."""
    meta = owner.object.metadata
    return meta.creation_timestamp or "", meta.name, meta.uid


def _find(keys: Sequence[ObjectKey], key: ObjectKey) -> tuple[int, bool]:
    """Return where a key stands among those in order, or would, and whether it does."""
    at = bisect_left(keys, key)
    return at, at < len(keys) and keys[at] == key


@dataclass(slots=True, eq=False)
class Work:
    """The objects and the Workloads of one work. Only this module writes it.

    Each method may be called again, after a try that raised, and changes nothing then. `objects`: the users' objects
    that are known of it, the oldest first. `_named`: by which Workloads. `placed`: which of them have a winner in their
    record. `part_of`: of an object of a larger work, that one; `_through`: in that, by which objects a Workload names
    it. `_told`: who of several was told of by the placement that is live: they hear of each change of their object.
    `gathered`: what its kind keeps of all objects, None where a work has one object. `_said`: what people were told
    of all of them last, since when that may be told anew; `_said_of`: of one of them alone, by its UID.
    """

    id: Name
    objects: list[Owner] = field(default_factory=list)
    placed: dict[ObjectKey, None] = field(default_factory=dict)
    _named: list[ObjectKey] = field(default_factory=list)
    part_of: Work | None = None
    _through: dict[ObjectKey, set[Name]] | None = None
    gathered: Gathered | None = None
    _told: ToldMembers | None = None
    _said: tuple[str, ...] = ()
    _says_from: float | None = None
    _said_of: dict[str, str] | None = None
    _let_go_by: str = ""

    @property
    def key(self) -> ObjectKey:
        """Where the Workload of a work of several objects belongs."""
        return ObjectKey(self.id[1], self.id[2])

    @property
    def look(self) -> Key:
        """The key on the agenda of all objects of a work of several, once for all of them."""
        return Key(Look.WORK, self.key)

    @property
    def speaker(self) -> Owner | None:
        """The oldest of its objects, at which people are told what concerns all; None where it has none."""
        return self.objects[0] if self.objects else None

    @property
    def stands_for_all(self) -> Owner | None:
        """The object whose kind and annotations count for all: the only one, or the oldest of several.

        What of it alone is asked besides would be taken for all. SeveralObjectsError: nobody has gathered them.
        """
        return self.speaker if self.gathered is not None else self._alone()

    @property
    def is_out_of_queue(self) -> bool:
        """Say whether objects are known of it, and each was taken out of its queue."""
        if self.gathered is not None:
            return bool(self.objects) and len(self.gathered) == 0
        owner = self._alone()
        return owner is not None and not owner.managed

    @property
    def only_object(self) -> Owner | None:
        """The object of a work of one; None when it has none, or that is gone.

        SeveralObjectsError: there are more, or may be more.
        """
        return self._alone()

    def _alone(self) -> Owner | None:
        if not self.objects:
            return None
        if self.gathered is not None or self.objects[0] is not self.objects[-1]:
            raise SeveralObjectsError(f"work {self.id[-1]} has {len(self.objects)} objects")
        return self.objects[0]

    @property
    def workloads(self) -> Collection[ObjectKey]:
        """The Workloads that name it, or an object of it: as nearly always one at most. `of_names`: whose each is."""
        return self._through.keys() | set(self._named) if self._through else self._named

    def in_order(self) -> list[ObjectKey]:
        """Return them in order, which they are kept in where nobody names an object of a larger work."""
        return sorted(self.workloads) if self._through else list(self._named)

    @property
    def whole(self) -> Work:
        """The work itself, or the larger one that it is a part of."""
        return self if self.part_of is None else self.part_of

    @property
    def is_empty(self) -> bool:
        """Say whether nothing is known of it."""
        return not (self.objects or self._named or self._through) and self.part_of is None

    def gain(self, owner: Owner, copied: tuple[str, ...] = ()) -> None:
        """Take in an object, or another version of it; `copied`: see `Works`."""
        if self.gathered is None:
            self.gathered = owner.kind.gathering(owner.object, copied, owner.workload.name)
        if self.gathered is not None:
            self.gathered.put(owner.object, owner.raw)
            self._changes(owner)
            if not self.gathered.is_abandoned:
                self._let_go_by = self._let_go_by.removeprefix(ABANDONED)
        at, is_there = self._find(owner)
        if is_there:
            self.objects[at] = owner
        else:
            self.objects.insert(at, owner)
        self._keep_queued()

    def _keep_queued(self) -> None:
        """Keep in its queue what names a larger work since, while the Workload that is its own is there (HD-357)."""
        for each in self.objects if self.gathered is None else ():
            if each.kind.was_alone(each.object):
                each.managed = _find(self._named, each.workload)[1]

    def lose(self, owner: Owner) -> None:
        """Let go of an object."""
        self._changes(owner)
        at, is_there = self._find(owner)
        if is_there:
            del self.objects[at]
        if self._said_of is not None:
            self._said_of.pop(owner.object.metadata.uid, None)
        if self.gathered is not None:
            self.gathered.drop(owner.object.metadata.uid)
            self.gathered = self.gathered if self.objects else None

    def tells(self, told: ToldMembers) -> None:
        """Have these hear of each change of their object from now on; the first time all are to be looked at."""
        if self._told is not told:
            self._told = told
            told.looks_at_all()

    def _changes(self, owner: Owner) -> None:
        if self._told is not None:
            self._told.has_changed(owner.object.metadata.uid)

    def lets_go(self, by: str) -> bool:
        """Say, once for each end, that all of its objects are to be looked at, since they may go.

        `by`: the UID of the Workload that ended, or `ABANDONED`; "" for none: who was left by all is so anew next time.
        """
        by = by or self._let_go_by.removeprefix(ABANDONED)
        begins, self._let_go_by = self._let_go_by != by, by
        return begins

    def may_say(self, said: tuple[str, ...], now: float, every: float) -> float | None:
        """Return from when on people may be told this of all objects; None where that was told last.

        What is told changes with each object that comes: so nothing of what lasts shorter than `every`.
        """
        if said == self._said:
            return None
        if self._says_from is None:
            self._says_from = now + every
        return self._says_from

    def has_said(self, said: tuple[str, ...], now: float, every: float) -> None:
        """Take that people have been told."""
        self._said, self._says_from = said, now + every

    def says_anew_of(self, uid: str, text: str) -> bool:
        """Say whether what is told of one of several objects is not what was told of it last, and take that it is."""
        before = self._said_of or {}
        if before.get(uid, "") == text:
            return False
        self._said_of = before
        before[uid] = text
        return True

    def _find(self, owner: Owner) -> tuple[int, bool]:
        place = _place(owner)
        at = bisect_left(self.objects, place, key=_place)
        return at, at < len(self.objects) and _place(self.objects[at]) == place

    def join(self, whole: Work) -> None:
        """Become a part of a larger work: the Workloads that name this object are that one's."""
        self.part_of = whole
        for key in self._named:
            whole.named_through(self.id, key, placed=key in self.placed)

    def leave(self) -> None:
        """Be a part of no larger work any more."""
        for key in self._named if self.part_of is not None else ():
            self.whole.not_named_through(self.id, key)
        self.part_of = None

    def named_by(self, key: ObjectKey, *, placed: bool) -> None:
        """Take that a Workload names this work, or the object that it is of."""
        at, is_there = _find(self._named, key)
        if not is_there:
            self._named.insert(at, key)
        if placed:
            self.placed[key] = None
        self._keep_queued()
        if self.part_of is not None:
            self.part_of.named_through(self.id, key, placed=placed)

    def not_named_by(self, key: ObjectKey) -> None:
        """Take that a Workload does not name it (any more), or is gone."""
        at, is_there = _find(self._named, key)
        if is_there:
            del self._named[at]
        self.placed.pop(key, None)
        self._keep_queued()
        if self.part_of is not None:
            self.part_of.not_named_through(self.id, key)

    def named_through(self, part: Name, key: ObjectKey, *, placed: bool) -> None:
        """Take that a Workload names an object of this work."""
        if placed:
            self.placed[key] = None
        if self._through is None:
            self._through = {}
        self._through.setdefault(key, set()).add(part)

    def not_named_through(self, part: Name, key: ObjectKey) -> None:
        """Take that a Workload does not name an object of this work (any more)."""
        parts = self._through.get(key) if self._through is not None else None
        if self._through is not None and parts is not None:
            parts.discard(part)
            if not parts:
                del self._through[key]
                self.placed.pop(key, None)


NOBODYS = Work((Resource("", "", "", ""), "", "", ""))
"""Of a Workload that names no object, and of one whose objects are of no kind that travels: nothing is put into it."""


@dataclass(slots=True)
class Works:
    """All works by their id. What comes, changes or goes costs a look-up, whatever else its work has.

    `_copied`: keys of labels that go on from objects to their Workload. `_parts`: the objects that are of a larger
    work. `_gathered`: works of several objects, by where their Workload belongs; the first one, should kinds disagree.
    """

    _copied: tuple[str, ...] = ()
    _by_id: dict[Name, Work] = field(default_factory=dict)
    _parts: set[Name] = field(default_factory=set)
    _gathered: dict[ObjectKey, Work] = field(default_factory=dict)

    def gathered_at(self, key: ObjectKey) -> Work | None:
        """Return the work of several objects whose Workload belongs there, whatever else has that name."""
        return self._gathered.get(key)

    def of_object(self, name: Name) -> Work | None:
        """Return the work of a user's object, also where only Workloads say that there is one."""
        found = self._by_id.get(name)
        return found.whole if found is not None else None

    def of_names(self, names: Sequence[Name]) -> Work:
        """Return the one work of a Workload which carries these names: of the object that it names first.

        Once that is gone: of the first larger work that has one of the others. Never of a second object by itself.
        """
        if not names:
            return NOBODYS
        first = self.of_object(names[0])
        if not self._parts or len(names) == 1 or (first is not None and first.objects):
            return first or NOBODYS
        for name in names:
            found = self._by_id.get(name)
            if found is not None and found.whole is not found and found.whole.objects:
                return found.whole
        return first or NOBODYS

    def knows(self, name: Name) -> bool:
        """Say whether a user's object is known."""
        found = self._by_id.get(name)
        return found is not None and bool(found.whole is not found or found.objects)

    def put_object(self, owner: Owner, before: Owner | None) -> None:
        """Take in a user's object, or another version of it; `before`: what was known in its place."""
        if before is not None and (before.work, _place(before)) != (owner.work, _place(owner)):
            self.drop_object(before)
        whole = self._at(owner.work)
        whole.gain(owner, self._copied)
        if whole.gathered is not None:
            self._gathered.setdefault(whole.key, whole)
        if owner.work is not owner.name:
            self._parts.add(owner.name)
            self._at(owner.name).join(whole)

    def drop_object(self, owner: Owner) -> None:
        """Let go of a user's object."""
        whole = self._by_id.get(owner.work)
        if whole is not None:
            whole.lose(owner)
            if whole.gathered is None and self._gathered.get(whole.key) is whole:
                del self._gathered[whole.key]
        part = self._by_id.get(owner.name)
        if part is not None and owner.work is not owner.name:
            part.leave()
            self._parts.discard(owner.name)
            self._tidy(part)
        if whole is not None:
            self._tidy(whole)

    def put_workload(self, key: ObjectKey, names: Iterable[Name], *, placed: bool = False) -> None:
        """Take in a Workload that carries these names: of objects, or of works. `placed`: its record has a winner."""
        for name in names:
            self._at(name).named_by(key, placed=placed)

    def drop_workload(self, key: ObjectKey, names: Iterable[Name]) -> None:
        """Let go of a Workload that was put with these names."""
        for name in names:
            work = self._by_id.get(name)
            if work is not None:
                work.not_named_by(key)
                self._tidy(work)

    def _at(self, work: Name) -> Work:
        found = self._by_id.get(work)
        if found is None:
            found = self._by_id[work] = Work(work)
        return found

    def _tidy(self, work: Work) -> None:
        if work.is_empty:
            self._by_id.pop(work.id, None)
