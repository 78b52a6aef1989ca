"""A scripted history of one elastic Job on the real cores, and an outside account of its pods (KEP-77).

The account looks at each write of any cluster: of the pods that were let go and have not ended, no more may be there
than the record of the chain is charged for, by its status alone. Pods that are being deleted count where the release
rule is `OnTerminal`. `first` are pods that nobody may delete, or replace: those that ran before it was resized.

    history = SizedHistory()
    history.begins(3)
    history.resize(10)
    history.until_charged(10)
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_SLICES
from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_wire.values.keys import ANNOTATION_SIZE
from support.manager.slice_world import an_elastic_job
from support.sim import world
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM, Doc, SimCluster
from support.sim.history import ON_TERMINAL, History
from support.sim.manager import SimManager
from support.sim.objects import holds
from support.sim.truth import Truth

NAME = "work"


class SizeAccountError(AssertionError):
    """More may run than is charged, or a pod that nobody meant was touched."""


class SizeAccount(Truth):
    """The outside check of elastic work. What it says of single Workloads says nothing of a chain, and is left out."""

    terminating_counts = True

    def __init__(self) -> None:
        super().__init__()
        self.where: dict[str, SimCluster] = {}
        self.pods: dict[str, Doc] = {}
        self.first: set[str] = set()
        self.began: set[str] = set()
        """Those that ran before anything was resized."""

    def follow(self, cluster: Any, *, management: bool) -> None:
        """Look at each write of a cluster from now on."""
        self.where[cluster.name] = cluster

        def changed(storage: StorageKey, change: StoreChange) -> None:
            if storage == (WORKLOAD.group, WORKLOAD.plural) and _is_of_work(change.after.view()):
                if change.removed:
                    self.workloads.pop(change.after.uid, None)
                else:
                    self.workloads[change.after.uid] = change.after.view()
                    self.whose.workload(change.after.view())
                self.look()
            elif storage == (POD.group, POD.plural) and _is_of_work(change.after.view()):
                self._pod_changed(change)
                self.look()

        cluster.store.listen(changed)
        del management

    def _pod_changed(self, change: StoreChange) -> None:
        uid, document = change.after.uid, change.after.view()
        touched = change.removed or document["metadata"].get("deletionTimestamp")
        if touched and uid in self.first:
            raise SizeAccountError(f"pod {change.after.name}, one of the first, is being deleted")
        if change.removed:
            self.pods.pop(uid, None)
        else:
            self.pods[uid] = document

    def look(self) -> None:
        """Compare what may run with what is charged."""
        may_run, charged = self.may_run(), self.charged()
        if may_run > charged:
            raise SizeAccountError(f"{may_run} pods may run, and {charged} are charged")

    def may_run(self) -> int:
        """Return how many pods were let go and have not ended."""
        return sum(self._may_run(one) for one in self.pods.values())

    def _may_run(self, pod: Doc) -> bool:
        gated = any(gate["name"] == markers.ELASTIC_JOB for gate in pod["spec"].get("schedulingGates", ()))
        over = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        leaves = pod["metadata"].get("deletionTimestamp") is not None and not self.terminating_counts
        return not (gated or over or leaves)

    def charged(self) -> int:
        """Return the pods that the record of the chain is charged for: what has quota, of the highest number."""
        record = self.of_the_chain()
        return record["status"]["admission"]["podSetAssignments"][0]["count"] if record is not None else 0

    def of_the_chain(self) -> Doc | None:
        """Return the slice that has quota and was admitted, and is not finished, of the highest number.

        One that has quota and no winner waits for checks to be asked: nothing runs by it (SL-33).
        """
        found = [one for one in self.workloads.values() if holds(one, "Admitted") and not holds(one, "Finished")]
        return max(found, key=number, default=None)

    def check_quota(self, *_: Any) -> None:
        """See `look`."""

    def noted(self, *_: Any) -> None:
        """See `look`."""

    def look_at_hands(self, *_: Any, **__: Any) -> None:
        """Nobody lets anything go by hand."""


def _is_of_work(document: Doc) -> bool:
    return any(each["name"] == NAME for each in document["metadata"].get("ownerReferences", ()))


def number(workload: Doc) -> int:
    """Return the number of a slice."""
    return int(workload["metadata"]["annotations"].get(ANNOTATION_SIZE, "1"))


class SizedHistory(History):
    """A history whose managers and agents serve elastic Jobs."""

    def __init__(
        self, patch: pytest.MonkeyPatch, *, queue: str = "travels", file: str = ON_TERMINAL, **of: Any
    ) -> None:
        patch.setattr(SimManager, "kinds", WITH_SLICES)
        patch.setattr(SimAgent, "registry", WITH_SLICES)
        patch.setattr(world, "Truth", SizeAccount)
        self.queue = queue
        super().__init__(shown=False, file=file, **of)
        self.account.terminating_counts = self.world.account.on_terminal = file == ON_TERMINAL

    @property
    def account(self) -> SizeAccount:
        """The outside account."""
        found = self.world.truth
        assert isinstance(found, SizeAccount)
        return found

    def begins(
        self, pods: int, *, stops_in: float = 0.0, runs: float = 36000.0, labels: Doc | None = None, **spec: Any
    ) -> str:
        """Have an elastic Job of that many pods run; return its cluster. They are the first ones."""
        job = an_elastic_job(NAME, parallelism=pods, at_home=self.queue == "stays")
        job["metadata"]["namespace"] = TEAM
        job["metadata"]["labels"] |= {"kueue.x-k8s.io/queue-name": self.queue, **(labels or {})}
        template = job["spec"]["template"]
        template.setdefault("metadata", {})["annotations"] = _told(runs, stops_in)
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        job["spec"].update(spec)
        job.pop("status", None)
        self.home.create(JOB, job)
        self.until(f"{pods} pods run", lambda: self.running() == pods, 60.0)
        self.account.first = set(self.account.pods)
        self.account.began = set(self.account.pods)
        (where,) = {name for name, each in self.account.where.items() if self._pods_at(each)}
        return "local" if where == self.home.name else where

    def _pods_at(self, cluster: SimCluster) -> list[Doc]:
        return [one for one in cluster.all(POD) if _is_of_work(one)]

    def resize(self, pods: int) -> None:
        """Let the user change the size of his Job."""
        assert self.home.change(JOB, NAME, {"spec": {"parallelism": pods}}) is not None

    def running(self) -> int:
        """Return how many pods run, by their own status."""
        return sum(one.get("status", {}).get("phase") == "Running" for one in self.account.pods.values())

    def is_at_rest(self, pods: int) -> bool:
        """Say whether so many pods run, and as many are charged and wanted, with one open slice."""
        opened = [one for one in self.account.workloads.values() if not holds(one, "Finished")]
        wanted = [one["spec"]["podSets"][0]["count"] for one in opened]
        return (self.running(), self.account.may_run(), self.account.charged(), wanted) == (pods, pods, pods, [pods])

    def rests(self, pods: int, seconds: float = 300.0) -> None:
        """Wait until so many pods run, and just these are charged."""
        self.until(f"{pods} run and are charged", lambda: self.is_at_rest(pods), seconds)

    def slices(self) -> list[tuple[int, int, int | None, str]]:
        """Return number, count, charged count and end of each slice."""
        found = sorted(self.account.workloads.values(), key=number)
        return [(number(one), one["spec"]["podSets"][0]["count"], _charged(one), _finished(one)) for one in found]

    def messages(self) -> list[str]:
        """Return why each slice without quota waits."""
        return [
            one["message"]
            for each in self.account.workloads.values()
            for one in each.get("status", {}).get("conditions", ())
            if one["type"] == "QuotaReserved" and one["status"] == "False" and not holds(each, "Finished")
        ]


def _charged(workload: Doc) -> int | None:
    admission = workload.get("status", {}).get("admission")
    return admission["podSetAssignments"][0]["count"] if admission else None


def _finished(workload: Doc) -> str:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((one["reason"] for one in conditions if one["type"] == "Finished" and one["status"] == "True"), "")


def _told(runs: float, stops_in: float) -> dict[str, str]:
    """Return how pods behave: how long they run, and take to stop."""
    return {world.RUN_SECONDS: f"{runs:g}", **({world.STOP_SECONDS: f"{stops_in:g}"} if stops_in else {})}
