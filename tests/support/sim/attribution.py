"""Whose run an object is: the user's object (kind, namespace, name, UID), from first sight and by object UID after it.

Labels and Workloads may be edited, deleted, made anew or restored while a container runs on. So they are asked once, at
the write that brings an object: whose it is then, it stays. One kind, namespace and name is one work, for its user made
it anew under that name to have it in the place of the one before. Knows no core and no kind, as `truth` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

Doc = dict[str, Any]
EPOCH = "gatelift.dev/epoch"
WORKLOAD_UID = "gatelift.dev/workload-uid"
QUEUE = "kueue.x-k8s.io/queue-name"
MANAGED = "kueue.x-k8s.io/managed"
GROUP = "kueue.x-k8s.io/pod-group-name"
CHAIN = "gatelift.dev/chain"
SIZE = "gatelift.dev/size"
OF_GROUP = "kueue.x-k8s.io/is-group-workload"
GROUPED = "PodGroup"
USER_UID = "gatelift.dev/user-uid"
LOCAL = "local"
DIGITS_MAX = 18


class Work(NamedTuple):
    """What a user wants to have run once at a time."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Belongs:
    """Whose run an object of a cluster is: found once, never asked again."""

    work: Work
    user: str
    """UID of the user's object."""
    cluster: str
    root: str
    """UID of the Job or pod that was placed there, under which the object runs."""
    workload: str
    """UID of the Workload it was made for; "" while none is known, as at home before the manager has seen it."""
    epoch: int

    @property
    def whole(self) -> str:
        """What there may be one of at a time: the Job or pod, or all pods of a group under its Workload."""
        return self.workload if self.work.kind == GROUPED else self.root

    @property
    def of_all(self) -> Belongs:
        """The same for all pods of a group that run in one placement."""
        return replace(self, user="", root="") if self.work.kind == GROUPED else self


class SliceSeen(NamedTuple):
    """What a Workload said last, as far as chains go by it (KEP-77)."""

    number: int
    epoch: int
    reserved: bool
    finished: bool
    gone: bool = False

    @property
    def holds(self) -> bool:
        """Say whether it is charged."""
        return self.reserved and not self.finished and not self.gone

    @property
    def open(self) -> bool:
        """Say whether it is there, and not over."""
        return not self.finished and not self.gone


class Attribution:
    """Remembers each object that was ever seen.

    All Workloads of one elastic object in a row are one chain, and what runs is the chain's: it is called by the UID of
    the first. Of any other object the Workload is alone in its chain.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], Belongs] = {}
        self._owner_of: dict[str, tuple[Work, str]] = {}  # by UID of the Workload: the user's object and its UID
        self._workload_of: dict[str, str] = {}  # by UID of the user's object: its newest Workload
        self._owners_of: dict[str, set[str]] = {}  # by UID of the Workload: whoever it has named
        self._epochs: dict[str, int] = {}
        self._chain_of: dict[str, str] = {}  # by UID of a Workload: that of the first slice of its chain
        self._slices: dict[str, dict[str, SliceSeen]] = {}  # by chain, then by the UID of the slice

    def workload(self, document: Doc) -> None:
        """Take a version of a Workload: at first sight it says whose it is."""
        meta = document["metadata"]
        self._epochs[meta["uid"]] = number(meta.get("annotations", {}).get(EPOCH, "1"))
        self._slice(document)
        for owner in meta.get("ownerReferences", []):
            if meta["uid"] not in self._owner_of:
                work = Work(owner["kind"], meta.get("namespace", ""), owner["name"])
                if meta.get("annotations", {}).get(OF_GROUP) == "true" and owner["kind"] == "Pod":
                    work = Work(GROUPED, meta.get("namespace", ""), meta["name"])
                self._owner_of[meta["uid"]] = work, owner["uid"]
            self._owners_of.setdefault(meta["uid"], set()).add(owner["uid"])
            self._workload_of[owner["uid"]] = self.chain_of(meta["uid"])  # a backup may bring back the one before

    def _slice(self, document: Doc) -> None:
        meta = document["metadata"]
        notes, uid = meta.get("annotations", {}), meta["uid"]
        if uid not in self._chain_of:
            said = notes.get(CHAIN, uid)
            known = self._owner_of.get(said)
            own = any(known is not None and known[1] == owner["uid"] for owner in meta.get("ownerReferences", []))
            self._chain_of[uid] = said if own else uid  # a mark of another object's chain changes nothing (SL-49)
        said_true = {one["type"] for one in document.get("status", {}).get("conditions", []) if one["status"] == "True"}
        has_winner = bool(document.get("status", {}).get("clusterName")) or "Admitted" in said_true
        holds = "QuotaReserved" in said_true and (has_winner or CHAIN not in notes)  # else checks are asked (SL-33)
        self._slices.setdefault(self._chain_of[uid], {})[uid] = SliceSeen(
            number(notes.get(SIZE, "1")), self._epochs[uid], holds, "Finished" in said_true
        )

    def gone(self, workload: str) -> None:
        """Take that a Workload is gone."""
        chain = self._slices.get(self.chain_of(workload), {})
        if workload in chain:
            chain[workload] = chain[workload]._replace(gone=True)

    def chain_of(self, workload: str) -> str:
        """Return the chain of a Workload, by the UID of its first slice."""
        return self._chain_of.get(workload, workload)

    def record_of(self, chain: str) -> str:
        """Return the UID of the slice by which a chain is charged and placed; without one that which comes next.

        Of those that have quota it is that of the highest number; one in an earlier epoch than one below it has is a
        write that landed late.
        """
        slices = self._slices.get(chain, {})
        if len(slices) < 2:
            return next(iter(slices), chain)
        ordered = sorted(slices.items(), key=lambda one: (one[1].number, one[0]))
        for at in range(len(ordered) - 1, -1, -1):
            uid, one = ordered[at]
            if one.holds and one.epoch >= max((each.epoch for _, each in ordered[:at] if each.open), default=0):
                return uid
        waiting = [uid for uid, one in ordered if one.open]
        there = [uid for uid, one in ordered if not one.gone]
        return (waiting or there[::-1] or [chain])[0]

    def owner_of(self, workload: str) -> tuple[Work, str] | None:
        """Return the user's object of a Workload and its UID, also long after the Workload is gone."""
        return self._owner_of.get(workload)

    def owners_of(self, workload: str) -> set[str]:
        """Return the UIDs of the objects that are a Workload's: of a group's all that it has ever named."""
        owner = self.owner_of(workload)
        if owner is None:
            return set()
        return self._owners_of[workload] if owner[0].kind == GROUPED else {owner[1]}

    def workload_of(self, user: str) -> str:
        """Return the newest Workload of a user's object, "" while there was none."""
        return self._workload_of.get(user, "")

    def epoch_of(self, workload: str) -> int:
        """Return the last epoch that the record of a Workload's chain has had."""
        return self._epochs.get(self.record_of(self.chain_of(workload)), 1)

    def own_epoch_of(self, workload: str) -> int:
        """Return the last epoch that just this Workload has had."""
        return self._epochs.get(workload, 1)

    def seen(self, cluster: str, kind: str, document: Doc) -> Belongs | None:
        """Return whose run an object is; None for what is nobody's."""
        meta = document["metadata"]
        known = self._objects.get((cluster, meta["uid"]))
        if known is None:
            known = self._at_home(kind, meta) if cluster == LOCAL else self._at_worker(cluster, kind, meta)
            if known is not None:
                self._objects[cluster, meta["uid"]] = known
        return known

    def of(self, cluster: str, uid: str) -> Belongs | None:
        """Return whose run an object is that was seen before."""
        return self._objects.get((cluster, uid))

    def _under(self, cluster: str, meta: Doc) -> Belongs | None:
        """Return what the controller of an object belongs to: a Job's pods are its own."""
        for owner in meta.get("ownerReferences", []):
            if owner.get("controller"):
                return self._objects.get((cluster, owner["uid"]))
        return None

    def _at_home(self, kind: str, meta: Doc) -> Belongs:
        above = self._under(LOCAL, meta)
        group = meta.get("labels", {}).get(GROUP, "") if kind == "Pod" else ""
        own = Work(GROUPED if group else kind, meta.get("namespace", ""), group or meta["name"])
        work = above.work if above is not None else own
        root = above.root if above is not None else meta["uid"]
        workload = self.workload_of(root)
        return Belongs(work, root, LOCAL, root, workload, self.epoch_of(workload))

    def _at_worker(self, cluster: str, kind: str, meta: Doc) -> Belongs | None:
        above = self._under(cluster, meta)
        if above is not None:
            return above
        labels = meta.get("labels", {})
        owner = self._owner_of.get(labels.get(WORKLOAD_UID, ""))
        if owner is not None and owner[0].kind == GROUPED and kind == "Pod":
            user = meta.get("annotations", {}).get(USER_UID, "")
            mine = self._objects.get((LOCAL, user))
            if mine is None or mine.work != owner[0]:
                return None  # of no pod that its group has ever had
            return Belongs(mine.work, user, cluster, meta["uid"], labels[WORKLOAD_UID], number(labels.get(EPOCH, "0")))
        if owner is None or owner[0] != (kind, meta.get("namespace", ""), meta["name"]):
            return None  # a tenant's own, whatever labels it carries
        chain = self.chain_of(labels[WORKLOAD_UID])
        return Belongs(*owner, cluster, meta["uid"], chain, number(labels.get(EPOCH, "0")))


def controlled(meta: Doc) -> str:
    """Return the UID of what controls an object, "" for none."""
    return next((str(one["uid"]) for one in meta.get("ownerReferences", []) if one.get("controller")), "")


def is_managed(meta: Doc) -> bool:
    """Say whether a user's object is one of a queue."""
    return QUEUE in meta.get("labels", {}) and not meta.get("ownerReferences")


def joined_in(belongs: Belongs, meta: Doc) -> int | None:
    """Return the epoch in which a pod of a group was let go at home, as who did that has marked it; else None.

    Who joins runs in that of the others, whatever a person has written into the Workload since.
    """
    return number(meta.get("labels", {}).get(EPOCH, "0")) if belongs.work.kind == GROUPED else None


def number(text: str) -> int:
    """Return a decimal number that somebody wrote, 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else 0
