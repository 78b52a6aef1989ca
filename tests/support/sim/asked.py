"""Nobody's pod is deleted unasked: at home a run is ended by deleting the user's own object, and that is his work.

Judged from the store of the management cluster alone. A pod of a queue that no controller made is deleted by a process
of ours only when its Workload says why: evicted, deactivated, finished or being deleted, or when it has none any more.
Who takes the queue's name or Kueue's mark off a pod has taken it out of its queue, which is asking for that. Of a group
a pod may go that was too many at some moment since it was made: beyond the group's size, or beyond its pod set.
"""

from __future__ import annotations

from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.embedded.watches import StoreChange
from support.sim.attribution import GROUP, MANAGED, QUEUE, Doc
from support.sim.objects import TruthError, holds, is_over
from support.sim.surplus import Groups
from support.sim.truth import Cluster

REASONS = ("Evicted", "Finished")


class Asked:
    """Follows one management cluster."""

    def __init__(self, home: Cluster) -> None:
        self._home = home
        self._workloads: dict[str, Doc] = {}  # UID of the owner -> its Workload
        self._owners: dict[str, set[str]] = {}  # UID of a Workload -> whoever was its owner, whatever it says now
        self._edited: set[str] = set()  # owners of Workloads that a person has written to
        self._ended: set[str] = set()  # owners of Workloads that have said once that what runs is to end
        self._gone: set[str] = set()  # pods that are being deleted, whoever began
        self._groups = Groups(home)
        home.store.listen(self._changed)

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        if storage == (WORKLOAD.group, WORKLOAD.plural):
            self._workload(change.after.view(), removed=change.removed)
            self._groups.workload(change.after.view(), removed=change.removed)
        elif storage == (POD.group, POD.plural):
            self._groups.pod(change.after.view(), removed=change.removed)
            if change.after.deleting:
                self._deleted(change.after.view())

    def _workload(self, document: Doc, *, removed: bool) -> None:
        owners = self._owners.setdefault(document["metadata"]["uid"], set())
        owners |= {owner["uid"] for owner in document["metadata"].get("ownerReferences", [])}
        if self._home.by_hand or self._home.restoring:
            self._edited |= owners
        if _asks(document):
            self._ended |= owners
        for owner in owners:
            if not removed:
                self._workloads[owner] = document
            elif self._workloads.get(owner, document)["metadata"]["uid"] == document["metadata"]["uid"]:
                self._workloads.pop(owner, None)

    def _deleted(self, document: Doc) -> None:
        meta = document["metadata"]
        if meta["uid"] in self._gone:
            return
        self._gone.add(meta["uid"])
        if self._home.by_hand or self._home.restoring or not {QUEUE, MANAGED} <= meta.get("labels", {}).keys():
            return
        if self._groups.was_surplus(meta["uid"]):
            return
        workload = self._workloads.get(meta["uid"])
        if workload is None and GROUP in meta.get("labels", {}) and not self._was_named(meta["uid"]):
            raise TruthError(f"pod {meta['name']} of a group is deleted, and was never too many")
        if workload is None or meta["uid"] in self._edited or meta.get("ownerReferences"):
            return
        late = is_over(document) and meta["uid"] in self._ended  # asked for then, and carried out by now
        if not late and not _asks(workload):
            raise TruthError(f"pod {meta['name']} of a user is deleted, and nobody has asked for that")

    def _was_named(self, uid: str) -> bool:
        """Say whether a Workload has ever named a pod, also one that is gone: it may be ended with that."""
        return any(uid in owners for owners in self._owners.values())


def _asks(workload: Doc) -> bool:
    """Say whether a Workload says that what runs for it is to end."""
    asked = "deletionTimestamp" in workload["metadata"] or not workload["spec"].get("active", True)
    return asked or any(holds(workload, reason) for reason in REASONS)
