"""The last known state of the objects of one kind, with look-ups by any function of an object. Pure.

A reflector writes it, everybody may read it. It keeps typed structs only (5 KB per pod, a tenth of the official
models), never raw JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.values.resources import ObjectKey

Index = Callable[[KubeObject], Iterable[str]]
"""Names under which an object is found again, such as its node or the UIDs of its owners."""


@dataclass(frozen=True, slots=True)
class CacheChange:
    """What a write to the cache did: `fresh` is False for a repeat; `gone` had this key before, with another UID."""

    fresh: bool
    gone: KubeObject | None = None


class Cache:
    """Objects by key. Not thread-safe: it belongs to the event loop of its reflector."""

    def __init__(self, indices: Mapping[str, Index] | None = None) -> None:
        self._objects: dict[ObjectKey, KubeObject] = {}
        self._indices = dict(indices or {})
        self._found: dict[str, dict[str, set[ObjectKey]]] = {name: {} for name in self._indices}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[KubeObject]:
        return iter(self._objects.values())

    def __contains__(self, key: ObjectKey) -> bool:
        return key in self._objects

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return all keys, as they are now."""
        return tuple(self._objects)

    def get(self, key: ObjectKey) -> KubeObject | None:
        """Return the object of that key, if it is known."""
        return self._objects.get(key)

    def by_index(self, index: str, name: str) -> tuple[KubeObject, ...]:
        """Return the objects which `index` files under `name`, ordered by key. KeyError for an index that is not."""
        return tuple(self._objects[key] for key in sorted(self._found[index].get(name, ())))

    def put(self, object_: KubeObject) -> CacheChange:
        """Remember the newest state of an object; a state that is already known is not fresh."""
        key = key_of(object_)
        old = self._objects.get(key)
        gone = None
        if old is not None:
            if old.metadata.resource_version == object_.metadata.resource_version:
                return CacheChange(fresh=False)
            gone = old if old.metadata.uid != object_.metadata.uid else None
            self._file(key, old, present=False)
        self._objects[key] = object_
        self._file(key, object_, present=True)
        return CacheChange(fresh=True, gone=gone)

    def drop(self, key: ObjectKey) -> KubeObject | None:
        """Forget an object and return its last known state, if there was one."""
        old = self._objects.pop(key, None)
        if old is not None:
            self._file(key, old, present=False)
        return old

    def _file(self, key: ObjectKey, object_: KubeObject, *, present: bool) -> None:
        for index, names_of in self._indices.items():
            found = self._found[index]
            for name in names_of(object_):
                if present:
                    found.setdefault(name, set()).add(key)
                elif name in found:
                    found[name].discard(key)
                    if not found[name]:
                        del found[name]


def key_of(object_: KubeObject) -> ObjectKey:
    """Return where an object lives."""
    return ObjectKey(object_.metadata.namespace, object_.metadata.name)
