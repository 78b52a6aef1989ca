"""Words of watches and answers that raised an exception as they were taken: kept, and taken again after a pause. Pure.

Of each object the newest word is kept. Of one that nothing is known of, and that a watch calls gone by then, both: what
lost its label runs on, and only what was seen of it says whose it is. Whoever takes a word again takes all steps of it,
whatever is known of that version by then (`holds`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from gatelift_agent.core.watched.objects import ref_of
from gatelift_kube.deciding.writes import KubeObject, ObjectGone, ObjectSeen
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.objects.versions import is_last, is_older
from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE, ObjectRef, Resource
from gatelift_wire.values.keys import PlacementKey

UNTAKEN_MAX = 1000
"""Objects whose words are kept, some ten kilobytes each; of others only a further word is taken."""

Word = ObjectSeen | ObjectGone


class Subject(NamedTuple):
    """Which object a word is about."""

    ref: ObjectRef
    uid: str


def subject_of(word: Word) -> Subject:
    """Return which object a word is about."""
    return Subject(ref_of(word.resource, word.object.metadata), word.object.metadata.uid)


class _Kept(NamedTuple):
    words: tuple[Word, ...]
    again_at: float


class AgentUntaken:
    """What could not be taken, by object."""

    __slots__ = ("doubted", "kept")

    def __init__(self) -> None:
        self.kept: dict[Subject, _Kept] = {}
        """Only this class writes it."""
        self.doubted: set[str] = set()
        """UIDs of pods that were never taken and are gone: their containers may run, and absence proves nothing."""

    def __len__(self) -> int:
        """How many objects there are of which a word could not be taken."""
        return len(self.kept)

    def holds(self, resource: Resource, meta: ObjectMeta) -> bool:
        """Say whether a word about this object is kept: what is known of it may be half of what was said."""
        return bool(self.kept) and Subject(ref_of(resource, meta), meta.uid) in self.kept

    def words(self, subject: Subject) -> tuple[Word, ...]:
        """Return what is to be taken of an object, in this order."""
        kept = self.kept.get(subject)
        return kept.words if kept is not None else ()

    def hear(self, word: Word, *, unknown: bool) -> None:
        """Take one more word about an object of which one is kept; `unknown`: nobody knows whose it is."""
        subject = subject_of(word)
        kept = self.kept[subject]
        self.kept[subject] = kept._replace(words=_newest(kept.words, word, unknown=unknown))

    def keep(self, subject: Subject, words: tuple[Word, ...], again_at: float) -> bool:
        """Keep words that are to be taken from `again_at` on; False when there are too many."""
        if subject not in self.kept and len(self.kept) >= UNTAKEN_MAX:
            return False
        self.kept[subject] = _Kept(words, again_at)
        return True

    def drop(self, subject: Subject) -> None:
        """Keep nothing of an object any longer: it was taken, or is known to be gone."""
        self.kept.pop(subject, None)

    def drop_others(self, subject: Subject) -> None:
        """Keep nothing of others that had its name before."""
        for each in [each for each in self.kept if each.ref == subject.ref and each.uid != subject.uid]:
            del self.kept[each]

    def forget_namespace(self, namespace: str) -> None:
        """Keep nothing of a namespace that is watched no more."""
        self.kept = {each: kept for each, kept in self.kept.items() if each.ref.key.namespace != namespace}

    def objects(self) -> list[tuple[ObjectRef, KubeObject]]:
        """Return the objects that are there as far as is known, as they were said to be last."""
        last = [(each.ref, kept.words[-1]) for each, kept in self.kept.items()]
        return [(ref, word.object) for ref, word in last if isinstance(word, ObjectSeen)]

    def has(self, ref: ObjectRef) -> bool:
        """Say whether a word about what is, or was, there is kept."""
        return any(each.ref == ref for each in self.kept)

    def due(self, now: float) -> list[Subject]:
        """Return the objects of which a word is to be taken now."""
        return [each for each, kept in self.kept.items() if kept.again_at <= now]

    def next_deadline(self) -> float | None:
        """Return when there is one."""
        return min((kept.again_at for kept in self.kept.values()), default=None)

    def namespaces(self) -> set[str]:
        """Return the names of Namespaces of which a word could not be taken."""
        return {each.ref.key.name for each in self.kept if each.ref.resource == NAMESPACE}

    @property
    def own_memory(self) -> bool:
        """Say whether one of the agent's own ConfigMaps could not be taken."""
        return any(each.ref.resource == CONFIG_MAP for each in self.kept)

    def may_be_of(self, key: PlacementKey) -> bool:
        """Say whether one of these objects may be of this placement."""
        return any(may_name(kept.words[-1].object, key) for kept in self.kept.values())


def may_name(obj: object, key: PlacementKey) -> bool:
    """Say whether an object may say of itself that it is of this placement, by whatever of it.

    Labels, annotation and mark have the UID of the Workload as text: an object without it says so by none of them.
    """
    try:
        return key.uid.encode() in msgspec.json.encode(obj)
    except Exception:  # noqa: BLE001 (containment: what cannot be looked at may be of any)
        return True


def _newest(kept: tuple[Word, ...], word: Word, *, unknown: bool) -> tuple[Word, ...]:
    last = kept[-1]
    if is_older(word.object.metadata, last.object.metadata):
        return kept  # the answer of a write that was slower than the watch
    may_be_there = isinstance(word, ObjectGone) and not is_last(word.object.metadata)
    if unknown and may_be_there and isinstance(kept[0], ObjectSeen):
        return kept[0], word
    return (word,)
