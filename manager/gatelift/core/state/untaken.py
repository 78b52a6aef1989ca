"""Versions of objects that raised as they came in: kept, and taken again, until one of them could be taken. Pure.

One is kept for each object (its UID) and word (seen, gone), the newest. What is known of such an object may be half of
it, so a version that is taken again counts as all new (`is_news`), and nobody looks at the object until then but to
stop it. Neighbours: `works.taking` keeps and takes them, `rules.containment` says when, `machine` holds looks back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.objects.versions import is_older, newer
from gatelift_kube.values.resources import ObjectKey, ObjectRef

Version = ObjectSeen | ObjectGone
SAID_EVERY_SECONDS = 60.0
"""How often people are told that nothing is decided, since the books are in doubt."""


def ref_of(version: Version) -> ObjectRef:
    """Return where the object of a version lives."""
    meta = version.object.metadata
    return ObjectRef(version.resource, ObjectKey(meta.namespace, meta.name))


def _word_of(version: Version) -> tuple[str, bool]:
    return version.object.metadata.uid, isinstance(version, ObjectGone)


@dataclass(slots=True)
class Untaken:
    """The versions by object; `in_doubt`: for what the books may be wrong, so that nothing is decided anew."""

    _kept: dict[ObjectRef, dict[tuple[str, bool], Version]] = field(default_factory=dict)
    in_doubt: set[ObjectRef] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Say whether anything is kept."""
        return bool(self._kept)

    def __len__(self) -> int:
        """Return of how many objects something is kept."""
        return len(self._kept)

    def refs(self) -> tuple[ObjectRef, ...]:
        """Return the objects of which something is kept."""
        return tuple(self._kept)

    def keep(self, version: Version) -> None:
        """Keep a version that could not be taken, unless a newer one of the same object is."""
        mine = self._kept.setdefault(ref_of(version), {})
        before = mine.get(_word_of(version))
        if before is None or not is_older(version.object.metadata, before.object.metadata):
            mine[_word_of(version)] = version

    def of(self, ref: ObjectRef) -> tuple[Version, ...]:
        """Return what is kept of an object, and of those that had its name before, oldest first."""
        return tuple(self._kept.get(ref, {}).values())

    def latest(self, ref: ObjectRef) -> Version | None:
        """Return what came last of what is kept."""
        return next(reversed(self._kept[ref].values()), None) if ref in self._kept else None

    def holds(self, ref: ObjectRef) -> bool:
        """Say whether something of an object could not be taken."""
        return ref in self._kept

    def keeps(self, ref: ObjectRef, uid: str) -> bool:
        """Say whether something of just this object could not be taken."""
        mine = self._kept.get(ref) if self._kept else None
        return mine is not None and ((uid, False) in mine or (uid, True) in mine)

    def is_news(self, ref: ObjectRef, seen: ObjectMeta, known: ObjectMeta) -> bool:
        """Say whether a version is to be taken: one that is newer than what is known, or may be known by half."""
        return newer(seen, known) or (self.keeps(ref, seen.uid) and not is_older(seen, known))

    def taken(self, version: Version) -> None:
        """Take that a version was taken: with it what came before of the same object."""
        mine = self._kept.get(ref_of(version)) if self._kept else None
        if mine is None:
            return
        ref, (uid, is_gone) = ref_of(version), _word_of(version)
        seen = mine.get((uid, False))
        if seen is not None and (is_gone or not is_older(version.object.metadata, seen.object.metadata)):
            del mine[uid, False]
        if is_gone:
            mine.pop((uid, True), None)
        if not mine:
            del self._kept[ref]
            self.in_doubt.discard(ref)

    def doubt(self, ref: ObjectRef) -> None:
        """Take that what an object reserves may not be charged, or that what quota is made of may be half changed."""
        self.in_doubt.add(ref)

    def settled(self, ref: ObjectRef) -> None:
        """Take that it is charged."""
        self.in_doubt.discard(ref)

    def workloads(self) -> Iterator[Version]:
        """Yield the last version of each Workload of which something is kept."""
        for ref, mine in self._kept.items():
            if ref.resource.kind == "Workload":
                yield next(reversed(mine.values()))
