"""What is true in a simulated world, read from the stores and from what containers run: the outside check of design 7.

It believes no core. After every write and every start or stop of a container: no two (epoch, cluster) of a workload may
run; what is lifted stands in the record with its epoch and cluster, and is charged; epochs only grow; each epoch is
charged and released once; what is finished stays so; no queue admits more than it has.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from gatelift_kube.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.embedded.watches import Change
from gatelift_sandbox.records import Record
from support.sim_cluster import Doc, SimCluster

GATE = "kueue.x-k8s.io/admission"
EPOCH = "gatelift.dev/epoch"
WORKLOAD_UID = "gatelift.dev/workload-uid"
QUEUE = "kueue.x-k8s.io/queue-name"
LOCAL = "local"
Run = tuple[int, str]
"""Epoch and cluster."""


class TruthError(AssertionError):
    """A promise is broken; the text says which, for which workload."""


class Truth:
    """Follows all stores and kubelets."""

    def __init__(self) -> None:
        self.workloads: dict[str, Doc] = {}
        """Workloads that exist, by UID."""
        self.runs: set[tuple[str, int, str]] = set()
        """All (workload, epoch, cluster) that were ever let go."""
        self.checks = 0
        self._owners: dict[str, str] = {}
        self._users: set[str] = set()
        self._lifted: dict[str, dict[str, Run]] = {}
        self._running: dict[str, dict[str, Run]] = {}
        self._epochs: dict[str, int] = {}
        self._charges: Counter[tuple[str, int]] = Counter()
        self._releases: Counter[tuple[str, int]] = Counter()
        self._quota: dict[str, int] = {}

    def follow(self, cluster: SimCluster, *, management: bool) -> None:
        """Look at each write of a cluster from now on."""

        def changed(storage: tuple[str, str], change: Change) -> None:
            if management and storage == (WORKLOAD.group, WORKLOAD.plural):
                self._workload(change)
            elif storage in ((POD.group, POD.plural), (JOB.group, JOB.plural)):
                kind = POD if storage == (POD.group, POD.plural) else JOB
                self._object(LOCAL if management else cluster.name, kind is POD, change)

        cluster.store.listen(changed)

    def noted(self, cluster: str, record: Record) -> None:
        """Take from a kubelet that containers have started or stopped."""
        name = f"container {cluster}/{record.pod_uid}"
        uid = next((uid for uid, runs in self._running.items() if name in runs), "")
        if record.stopped is not None:
            self._running.get(uid, {}).pop(name, None)
            return
        key = f"{cluster}/pod/{record.pod_uid}"
        for workload, lifted in self._lifted.items():
            if key in lifted:
                self._running.setdefault(workload, {})[name] = lifted[key]
                self._check(workload)
                return

    # --- the records --------------------------------------------------------------------------------------------

    def _workload(self, change: Change) -> None:
        stored = change.after
        uid = stored.uid
        if change.removed:
            self.workloads.pop(uid, None)
            if self.live(uid):
                raise TruthError(f"workload {stored.name} ({uid}) is gone while {self.live(uid)} may run")
            return
        document, before = msgspec.json.decode(stored.raw), self.workloads.get(uid)
        self.workloads[uid] = document
        for owner in document["metadata"].get("ownerReferences", []):
            self._owners[owner["uid"]] = uid
        epoch = epoch_of(document)
        if epoch < self._epochs.get(uid, 1):
            raise TruthError(f"workload {stored.name}: epoch {epoch} after {self._epochs[uid]}")
        self._epochs[uid] = epoch
        if before is None:
            return
        self._transition(stored.name, uid, before, document)
        self._check(uid)

    def _transition(self, name: str, uid: str, before: Doc, after: Doc) -> None:
        epoch = epoch_of(after)
        had, has = holds(before, "QuotaReserved"), holds(after, "QuotaReserved")
        if has and not had:
            self._charges[uid, epoch] += 1
            if self._charges[uid, epoch] > 1:
                raise TruthError(f"workload {name}: epoch {epoch} is charged twice")
        if had and not has:
            self._releases[uid, epoch] += 1
            if self._releases[uid, epoch] > 1:
                raise TruthError(f"workload {name}: epoch {epoch} is released twice")
        if holds(before, "Finished") and not holds(after, "Finished"):
            raise TruthError(f"workload {name}: finished, and then not")
        if epoch > epoch_of(before) and holds(before, "QuotaReserved"):
            raise TruthError(f"workload {name}: epoch raised to {epoch} while it is charged")

    # --- what may run -------------------------------------------------------------------------------------------

    def _object(self, cluster: str, is_pod: bool, change: Change) -> None:
        document = msgspec.json.decode(change.after.raw)
        meta = document["metadata"]
        key = f"{cluster}/{'pod' if is_pod else 'job'}/{meta['uid']}"
        if cluster == LOCAL:
            here = not change.removed and not meta.get("deletionTimestamp")
            (self._users.add if here else self._users.discard)(meta["uid"])
        uid, epoch = self._placement(cluster, meta)
        if not uid:
            self._check_unowned(cluster, meta, free=pod_is_free(document) if is_pod else job_is_free(document))
            return
        known = self._lifted.setdefault(uid, {})
        free = not change.removed and (pod_is_free(document) if is_pod else job_is_free(document))
        if not free:
            known.pop(key, None)
            return
        if key in known:
            return
        known[key] = (epoch, cluster)
        self.runs.add((uid, epoch, cluster))
        record = self.workloads.get(uid)
        if record is None:
            raise TruthError(f"{key} ({meta['name']}) is let go, and no workload {uid} is there")
        stands = place_of(record)
        if stands != (epoch, cluster) or not holds(record, "QuotaReserved"):
            raise TruthError(
                f"{key} ({meta['name']}) is let go with epoch {epoch} on {cluster}; the record says {stands}, "
                f"reserved {holds(record, 'QuotaReserved')}"
            )
        self._check(uid)

    def _check_unowned(self, cluster: str, meta: Doc, *, free: bool) -> None:
        """Check that nothing of a queue is let go at home before it has a Workload of its own."""
        if cluster == LOCAL and free and QUEUE in meta.get("labels", {}) and not meta.get("ownerReferences"):
            raise TruthError(f"{meta['name']} ({meta['uid']}) is let go at home, and no workload is its own")

    def _placement(self, cluster: str, meta: Doc) -> tuple[str, int]:
        """Return the workload and epoch that an object belongs to."""
        if cluster != LOCAL:
            labels = meta.get("labels", {})
            return labels.get(WORKLOAD_UID, ""), int(labels.get(EPOCH, "0"))
        for uid in (meta["uid"], *(owner["uid"] for owner in meta.get("ownerReferences", []))):
            workload = self._owners.get(uid, "")
            if workload:
                return workload, self._epochs.get(workload, 1)
        return "", 0

    def live(self, uid: str) -> set[Run]:
        """Return which (epoch, cluster) of a workload may run at this moment."""
        return {*self._lifted.get(uid, {}).values(), *self._running.get(uid, {}).values()}

    def all_live(self) -> dict[str, set[Run]]:
        """Return the same of all workloads that have any."""
        uids = {*self._lifted, *self._running}
        return {uid: live for uid in sorted(uids) if (live := self.live(uid))}

    def _check(self, uid: str) -> None:
        self.checks += 1
        live = self.live(uid)
        if len(live) > 1:
            raise TruthError(f"workload {uid} may run more than once: {sorted(live)}")
        record = self.workloads.get(uid)
        if live and record is not None and not holds(record, "QuotaReserved"):
            raise TruthError(f"workload {record['metadata']['name']}: {live} may run and is not charged")

    def used(self) -> Counter[str]:
        """Return the milli-CPU that each queue has admitted."""
        used: Counter[str] = Counter()
        for document in self.workloads.values():
            uid = document["metadata"]["uid"]
            going = document["metadata"].get("deletionTimestamp") or self.orphaned(document)
            if holds(document, "QuotaReserved") and not holds(document, "Finished") and (self.live(uid) or not going):
                admission = document["status"]["admission"]
                for each in admission["podSetAssignments"]:
                    used[admission["clusterQueue"]] += milli(each.get("resourceUsage", {}).get("cpu", "0"))
        return used

    def orphaned(self, workload: Doc) -> bool:
        """Say whether the user's object is being deleted or gone: its quota needs no write to be free."""
        owners = workload["metadata"].get("ownerReferences", [])
        return bool(owners) and not any(owner["uid"] in self._users for owner in owners)

    def check_quota(self, queues: dict[str, int]) -> None:
        """Check that no queue has admitted more than it has."""
        for name, amount in self.used().items():
            if amount > queues[name]:
                raise TruthError(f"queue {name} has admitted {amount} of {queues[name]} milli-CPU")


def wanted(workload: Doc) -> int:
    """Return the milli-CPU that a workload asks for."""
    return sum(
        each.get("count", 1)
        * sum(milli(container["resources"]["requests"]["cpu"]) for container in each["template"]["spec"]["containers"])
        for each in workload["spec"]["podSets"]
    )


def milli(quantity: str) -> int:
    """Return a CPU quantity in milli-units."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def holds(document: Doc, condition: str) -> bool:
    """Say whether a condition is True."""
    return any(
        each["type"] == condition and each["status"] == "True"
        for each in document.get("status", {}).get("conditions", [])
    )


def epoch_of(workload: Doc) -> int:
    """Return the epoch in the record."""
    return int(workload["metadata"].get("annotations", {}).get(EPOCH, "1"))


def place_of(workload: Doc) -> Run:
    """Return (epoch, cluster) of the record; `local` where it names none."""
    return epoch_of(workload), workload.get("status", {}).get("clusterName") or LOCAL


def pod_is_free(pod: Doc) -> bool:
    """Say whether a pod may run: not gated by us, not over, not deleted before it was bound."""
    spec, status = pod["spec"], pod.get("status", {})
    if any(gate["name"] == GATE for gate in spec.get("schedulingGates") or ()):
        return False
    if status.get("phase") in ("Succeeded", "Failed"):
        return False
    return bool(spec.get("nodeName")) or not pod["metadata"].get("deletionTimestamp")


def is_over(document: Doc) -> bool:
    """Say whether a pod or Job shows that it has ended: who then deletes its Workload gets no other one."""
    status = document.get("status", {})
    return status.get("phase") in ("Succeeded", "Failed") or holds(document, "Complete") or holds(document, "Failed")


def job_is_free(job: Doc) -> bool:
    """Say whether a Job may make pods."""
    spec, status = job["spec"], job.get("status", {})
    over = any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in status.get("conditions", [])
    )
    elsewhere = (spec.get("managedBy") or "kubernetes.io/job-controller") != "kubernetes.io/job-controller"
    return not (spec.get("suspend") or over or elsewhere or job["metadata"].get("deletionTimestamp"))


def names(documents: list[Doc]) -> list[Any]:
    """Return the names of objects, for messages."""
    return [each["metadata"]["name"] for each in documents]
