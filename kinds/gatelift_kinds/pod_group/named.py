"""Whom the Workload of a group names as its owners, and whom it has named: that is taken off past all policies. Pure.

Of those that it names it is known who is of the group, by who leads next as well; a deletion of the Workload ends them.
Neighbour: `gathering` asks, and has put back what somebody took off.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_kinds.pod_group import document
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import OwnerReference


class NamedMembers:
    """By UID, of the Workload that was asked of last. Only this class writes what it holds.

    `_ever`: whom it has named in any version that was seen. `_late`: whom it names since it had quota, None while
    nobody has asked. `taken_off`: whom it named, and does not any more.
    """

    __slots__ = ("_ever", "_late", "_names", "_uids", "_workload", "taken_off")

    def __init__(self) -> None:
        self._workload = ""
        self._names: Sequence[OwnerReference] = ()
        self._uids: frozenset[str] = frozenset()
        self._ever: set[str] = set()
        self._late: frozenset[str] | None = None
        self.taken_off: set[str] = set()

    def by(self, workload: Workload) -> frozenset[str]:
        """Return whom a Workload names, gone through once for each list of them."""
        meta = workload.metadata
        if self._names is meta.owner_references and self._workload == meta.uid:
            return self._uids
        if (self._workload, self._names) != (meta.uid, meta.owner_references):
            if self._workload != meta.uid:
                self._ever, self.taken_off = set(), set()
            self._workload, self._names = meta.uid, meta.owner_references
            self._uids = frozenset(each.uid for each in meta.owner_references)
            self._late = None
            self.taken_off = self._ever - self._uids
            self._ever |= self._uids
        self._names = meta.owner_references  # the same list is alike at a glance, another one owner by owner
        return self._uids

    def is_late(self, workload: Workload, uid: str) -> bool:
        """Say whether a Workload names a pod only since it had quota."""
        self.by(workload)
        if self._late is None:
            self._late = frozenset(each.uid for each in self._names if document.is_late(each))
        return uid in self._late

    def has_named(self, workload: Workload, uid: str) -> bool:
        """Say whether a Workload has named a pod in a version that was asked of."""
        return workload.metadata.uid == self._workload and uid in self._ever

    def take_off(self) -> set[str]:
        """Return, once, whom it does not name any more."""
        found, self.taken_off = self.taken_off, set()
        return found

    def drop(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._ever.discard(uid)
        self.taken_off.discard(uid)
