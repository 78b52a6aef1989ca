"""Whether what a list shows can follow what was told before it: versions of an API server never go back. Pure.

Whoever has listed a kind and watched it since knows all of it up to the last version that he was told of. A list (a
quorum read) that is older than that, or that shows an object of that time as he does not know it, is of another
history: etcd was put back to a backup. Counting the list's own version is not enough. Other writes count it up again,
and a restore that raises it, as etcd's tools can, leaves the objects their old versions.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_kube.deciding.cache import Cache, key_of
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import ObjectKey

UNREAD_MAX = 4096
"""Objects that could not be read, and so are not known as they were; with more of them objects prove nothing."""


class History:
    """How far one kind is known."""

    def __init__(self) -> None:
        self._complete = -1
        self._unread: set[ObjectKey] = set()

    def reached(self, version: str) -> None:
        """Take that everything up to a version was told; one that is no number says nothing."""
        number = whole(version)
        if number is not None:
            self._complete = max(self._complete, number)

    def unread(self, keys: Iterable[ObjectKey]) -> None:
        """Take that these objects are there and could not be told."""
        if len(self._unread) <= UNREAD_MAX:
            self._unread.update(keys)

    def contradiction(self, known: Cache, version: str, shown: Iterable[KubeObject]) -> str:
        """Return what of a list's page cannot be, "" if nothing; it is said once, what comes later follows from it."""
        found = self._contradiction(known, version, shown)
        if found:
            self._complete = -1
        return found

    def _contradiction(self, known: Cache, version: str, shown: Iterable[KubeObject]) -> str:
        listed = whole(version)
        if listed is not None and listed < self._complete:
            return f"a list has version {version}, and {self._complete} was told before it"
        if len(self._unread) > UNREAD_MAX:
            return ""
        for each in shown:
            number, key = whole(each.metadata.resource_version), key_of(each)
            if number is None or number > self._complete or key in self._unread:
                continue
            before = known.get(key)
            if before is None or before.metadata.resource_version != each.metadata.resource_version:
                had = f"it had {before.metadata.resource_version}" if before is not None else "it was gone"
                return f"{key} has version {number}, and by {self._complete} {had}"
        return ""
