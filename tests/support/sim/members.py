"""What holds of each pod of a group in a simulated world, beside what holds of all objects (`truth`).

After every write of a pod and every start of a container: nothing of one user's pod runs twice, by its UID; of each pod
set there never may run more than was granted (the room rule); who was shown as succeeded never may run again. Knows no
core and no kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from gatelift_kube.values.resources import POD
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_sandbox.records import RunRecord
from support.sim.attribution import GROUPED, LOCAL, Doc, Work
from support.sim.objects import TruthError, holds, place_of
from support.sim.truth import Cluster, Truth

POD_SET = "kueue.x-k8s.io/podset"
Placed = tuple[str, str]
"""Cluster and UID of a pod."""


class Members:
    """Follows all clusters, each after `truth` does."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._sets: dict[Placed, str] = {}
        """As which pod set each was let go: labels may be edited later."""
        self._succeeded: dict[str, str] = {}
        """Users' pods that show it, by UID, with their names."""
        self.forged: set[str] = set()
        """Names of pods whose end a hand has written at home."""
        self.checks = 0

    def follow(self, cluster: Cluster, *, management: bool) -> None:
        """Look at each write of a pod from now on."""
        where = LOCAL if management else cluster.name

        def changed(storage: tuple[str, str], change: StoreChange) -> None:
            if storage == (POD.group, POD.plural) and not cluster.ended:
                self._pod(where, change.after.view(), removed=change.removed, restoring=cluster.restoring)

        cluster.store.listen(changed)

    def noted(self, cluster: str, record: RunRecord) -> None:
        """Take from a kubelet that containers have started or stopped."""
        belongs = self._truth.whose.of(cluster, record.pod_uid)
        if belongs is not None and record.stopped is None and belongs.work.kind == GROUPED:
            self._check(belongs.work)

    def restored(self, home: list[Doc]) -> None:
        """Take that the management cluster was put back: what it has shown since was never shown."""
        self._succeeded = {
            one["metadata"]["uid"]: one["metadata"]["name"] for one in home if _phase(one) == "Succeeded"
        }

    def _pod(self, cluster: str, pod: Doc, *, removed: bool, restoring: bool) -> None:
        uid = pod["metadata"]["uid"]
        belongs = self._truth.whose.of(cluster, uid)
        if belongs is None or belongs.work.kind != GROUPED:
            return
        said = pod["metadata"].get("labels", {}).get(POD_SET)
        if said:
            self._sets.setdefault((cluster, uid), said)
        shows = cluster == LOCAL and not removed and _phase(pod) == "Succeeded"
        if shows and pod["metadata"]["name"] not in self.forged:
            self._succeeded[uid] = pod["metadata"]["name"]
        if not (removed or restoring):
            self._check(belongs.work)

    def _check(self, work: Work) -> None:
        self.checks += 1
        places: defaultdict[str, set[Placed]] = defaultdict(set)
        taken: defaultdict[tuple[str, int, str], set[tuple[str, str, str]]] = defaultdict(set)
        for uid, each in self._truth.by_uid(work):
            if self._truth.is_exempt(each.root, uid) or self._truth.is_unrecorded(each):
                continue
            places[each.user].add((each.cluster, uid))
            if each.user in self._succeeded and not (each.cluster == LOCAL and uid == each.user):
                name = self._succeeded[each.user]
                raise TruthError(f"{work}: {name} ({each.user}) has succeeded, and may run on {each.cluster}")
            of = self._sets.get((each.cluster, uid), "")
            taken[each.workload, each.epoch, each.cluster].add((each.cluster, uid, of))
        for user, found in places.items():
            if len(found) > 1:
                raise TruthError(f"{work}: one user's pod ({user}) may run more than once: {sorted(found)}")
        for (workload, epoch, cluster), pods in taken.items():
            self._check_room(work, workload, (epoch, self._truth.known_as.get(cluster, cluster)), pods)

    def _check_room(self, work: Work, workload: str, run: tuple[int, str], pods: set[tuple[str, str, str]]) -> None:
        """Check that no pod set has more that may run than the record grants it."""
        record = self._truth.record(workload)
        if record is None or place_of(record) != run or not holds(record, "QuotaReserved"):
            return  # what no record has is judged by `truth`
        granted = {each["name"]: each.get("count", 1) for each in record["status"]["admission"]["podSetAssignments"]}
        for name, count in Counter(of for _, _, of in pods).items():
            if count > granted.get(name, 0):
                told = sorted(uid for _, uid, of in pods if of == name)
                raise TruthError(f"{work}: {count} pods of {name or 'no pod set'} may run ({told}), granted {granted}")


def _phase(pod: Doc) -> str:
    return str(pod.get("status", {}).get("phase", ""))
