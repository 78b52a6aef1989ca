"""Which pods of groups are too many, or were at some moment: judged from the store of the management cluster alone.

Who decides sees that store late, so what counts is any moment since a pod was made. Present is what has succeeded, or
is neither over nor being deleted. The amount that a pod asks for tells its role (`crews`).
"""

from __future__ import annotations

import json
from collections import defaultdict

from support.sim.account import asked_by
from support.sim.attribution import GROUP, OF_GROUP, Doc
from support.sim.truth import Cluster

TOTAL = "kueue.x-k8s.io/pod-group-total-count"
SETS = "kueue.x-k8s.io/pod-group-sets"


class Groups:
    """Follows the pods and Workloads of groups."""

    def __init__(self, home: Cluster) -> None:
        self._home = home
        self._pods: dict[str, dict[str, tuple[int, bool]]] = defaultdict(dict)  # by group and UID: amount, is present
        self._totals: dict[str, int] = {}
        self._sets: dict[str, dict[int, int]] = {}  # of a group's Workload, how many pods of an amount
        self._declared: dict[str, dict[int, int]] = {}  # of a driver, the same
        self._surplus: set[str] = set()
        self._succeeded: set[str] = set()  # pods that have shown it: a late write takes it back from nobody (HD-517)

    def was_surplus(self, uid: str) -> bool:
        """Say whether a pod was too many at some moment."""
        return uid in self._surplus

    def workload(self, document: Doc, *, removed: bool) -> None:
        """Take a version of a Workload."""
        meta = document["metadata"]
        if meta.get("annotations", {}).get(OF_GROUP) != "true":
            return
        self._sets.pop(meta["name"], None)
        if not removed:
            sets = ((asked_by(one["template"]["spec"]), one.get("count", 1)) for one in document["spec"]["podSets"])
            self._sets[meta["name"]] = dict(sets)
        self._look(meta["name"])

    def pod(self, document: Doc, *, removed: bool) -> None:
        """Take a version of a pod."""
        meta = document["metadata"]
        group = meta.get("labels", {}).get(GROUP, "")
        if not group:
            return
        if removed:
            self._pods[group].pop(meta["uid"], None)
        else:
            if has_succeeded(document):
                self._succeeded.add(meta["uid"])
            present = is_present(document) or meta["uid"] in self._succeeded
            self._pods[group][meta["uid"]] = asked_by(document["spec"]), present
            total = meta.get("annotations", {}).get(TOTAL, "")
            if total.isdigit():
                self._totals[group] = int(total)
            said = meta.get("annotations", {}).get(SETS, "")
            if said:
                self._declared[group] = _declared(said, document)
        self._look(group)

    def _look(self, group: str) -> None:
        there = [(uid, amount) for uid, (amount, present) in self._pods[group].items() if present]
        sets, total = self._sets.get(group, self._declared.get(group)), self._totals.get(group)
        if total is not None and len(there) > total:
            self._surplus.update(uid for uid, _ in there)
        for amount in {amount for _, amount in there} if sets is not None else ():
            mine = [uid for uid, asks in there if asks == amount]
            if len(mine) > (sets or {}).get(amount, 0):
                self._surplus.update(mine)


def _declared(text: str, driver: Doc) -> dict[int, int]:
    """Return how many pods of an amount a driver declares."""
    sets = json.loads(text)
    if not isinstance(sets, list):
        return {}  # somebody's hand: it declares nothing
    asked = [one["template"]["spec"] if "template" in one else driver["spec"] for one in sets]
    return {asked_by(spec): one["count"] for spec, one in zip(asked, sets, strict=True)}


def is_present(pod: Doc) -> bool:
    """Say whether a pod counts as there: it succeeded, or is neither over nor being deleted."""
    is_failed = pod.get("status", {}).get("phase") == "Failed"
    return has_succeeded(pod) or not (is_failed or pod["metadata"].get("deletionTimestamp"))


def has_succeeded(pod: Doc) -> bool:
    """Say whether a pod shows that it has succeeded."""
    return bool(pod.get("status", {}).get("phase") == "Succeeded")
