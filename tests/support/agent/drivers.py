"""Drivers of an agent's stage: a manager that keeps one record, and a cluster that runs what is let go.

The manager is as simple as the rules allow: it writes its record before it commits (R4), confirms what stands in it,
takes absence as gone, raises the epoch before it offers again (R5), forgets what has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gatelift_kube.values.resources import JOB, NAMESPACE, POD
from gatelift_kube.values.timestamps import to_text
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.stage import Stage
from support.agent.values import NAMESPACE_NAME, CrashError, commit_messages

STEPS_MAX = 400


@dataclass
class Manager:
    """One workload's record and what follows from it."""

    stage: Stage
    kind: str = "Pod"
    name: str = "p"
    evicts: bool = False
    """Ends the first epoch once it runs, as an eviction does; the second one may finish."""
    epoch: int = 1
    offered: bool = False
    committed: bool = False
    finished: list[m.Finished] = field(default_factory=list)
    done: bool = False
    heard: int = 0
    inventories: int = 0
    ended: list[str] = field(default_factory=list)

    @property
    def key(self) -> PlacementKey:
        return PlacementKey("w-1", self.epoch)

    def react(self) -> None:
        """Do what follows from what was heard."""
        peer = self.stage.peer
        while self.inventories < len(peer.inventories):
            entries = peer.inventories[self.inventories]
            self.inventories += 1
            self._compare({entry.key for entry in entries})
        while self.heard < len(peer.heard):
            message = peer.heard[self.heard]
            self.heard += 1
            self._hear(message)
        if peer.open and not self.offered and not self.done:
            self.offered = True
            self.stage.offer(self.key, self.kind, self.name)

    def _compare(self, keys: set[PlacementKey]) -> None:
        for key in keys - {self.key}:
            self.stage.send(m.Forget(key=key))
        if self.key in keys and self.committed:
            self.stage.confirm(self.key)
            if self.evicts and self.epoch == 1:
                self.stage.send(m.Stop(key=self.key, reason="Evicted"))
        elif self.key in keys:
            self.stage.send(m.Forget(key=self.key))
        elif self.committed and not self.done:
            self._again("gone")
        elif not self.done:
            self.offered = False

    def _hear(self, message: m.Message) -> None:
        key = getattr(message, "key", None)
        if key is not None and key != self.key:
            return
        match message:
            case m.Bid(kind=m.BidKind.HELD):
                self.committed = True
                self.stage.send(*commit_messages(self.key, self.kind, self.name))
            case m.Bid():
                self.offered = False
            case m.GatesLifted() if self.evicts and self.epoch == 1:
                self.stage.send(m.Stop(key=self.key, reason="Evicted"))
            case m.Finished():
                self.finished.append(message)
                self.done, self.committed = True, False
                self.stage.send(m.Forget(key=self.key))
            case m.Refused() | m.Stopped() | m.Evicted():
                self.stage.send(m.Forget(key=self.key))
                self._again(type(message).__name__)
            case _:
                pass

    def _again(self, why: str) -> None:
        self.ended.append(why)
        self.epoch += 1
        self.offered = self.committed = False


@dataclass
class Cluster:
    """Scheduler, kubelet and Job controller in one: runs what is let go, and notes what ran when."""

    stage: Stage
    finishes: bool = True
    runs_on_in_epoch: str = ""
    """Pods of this epoch run until they are deleted."""
    running: dict[str, str] = field(default_factory=dict)
    started: list[tuple[str, str]] = field(default_factory=list)

    def react(self) -> bool:
        """Do one thing; False when there is nothing to do."""
        return self._jobs() or self._pods() or self._collect()

    def _collect(self) -> bool:
        """Delete pods whose Job is gone, as the garbage collector does."""
        jobs = {job["metadata"]["uid"] for job in self.stage.store.look_all(("batch", "jobs"))}
        for pod in self.stage.store.look_all(("", "pods")):
            meta = pod["metadata"]
            owners = {one["uid"] for one in meta.get("ownerReferences", [])}
            if owners and not owners & jobs and not meta.get("deletionTimestamp"):
                self.stage.remove(POD, meta["name"])
                return True
        return False

    def _pods(self) -> bool:
        for pod in self.stage.store.look_all(("", "pods")):
            meta, status = pod["metadata"], pod.get("status", {})
            phase = status.get("phase")
            name, epoch = meta["name"], meta["labels"].get("gatelift.dev/epoch", "")
            if phase in ("Succeeded", "Failed"):
                if meta.get("deletionTimestamp") and self._drop_job_finalizer(pod):
                    return True
                continue
            if meta.get("deletionTimestamp") and pod["spec"].get("nodeName"):
                self.running.pop(meta["uid"], None)
                self.stage.finish(name, "Failed")
                return True
            if pod["spec"].get("schedulingGates") or meta.get("deletionTimestamp"):
                continue
            if not pod["spec"].get("nodeName"):
                others = set(self.running.values()) - {epoch}
                assert not others, f"epoch {epoch} starts while epoch {others} runs"
                self.running[meta["uid"]] = epoch
                self.started.append((meta["uid"], epoch))
                self.stage.run(name)
                return True
            if self.finishes and epoch != self.runs_on_in_epoch:
                self.running.pop(meta["uid"], None)
                self.stage.finish(name)
                return True
        return False

    def _drop_job_finalizer(self, pod: dict[str, Any]) -> bool:
        if not pod["metadata"].get("ownerReferences"):
            return False
        self.stage.change(POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
        return True

    def _jobs(self) -> bool:
        for job in self.stage.store.look_all(("batch", "jobs")):
            meta, spec, status = job["metadata"], job["spec"], job.get("status", {})
            if meta.get("deletionTimestamp") or _over(status):
                continue
            if self._job(meta, spec, status):
                return True
        return False

    def _job(self, meta: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> bool:
        mine = [
            pod
            for pod in self.stage.store.look_all(("", "pods"))
            if any(one["uid"] == meta["uid"] for one in pod["metadata"].get("ownerReferences", []))
        ]
        others = [one for one in status.get("conditions", []) if one["type"] != "Suspended"]
        suspended = any(one["type"] == "Suspended" and one["status"] == "True" for one in status.get("conditions", []))
        if spec.get("suspend"):
            if not suspended:
                others.append({"type": "Suspended", "status": "True", "reason": "JobSuspended"})
                self._status(meta, {"conditions": others, "startTime": None})
            return not suspended
        if suspended:
            others.append({"type": "Suspended", "status": "False", "reason": "JobResumed"})
            self._status(meta, {"conditions": others, "startTime": "2026-01-01T00:00:00Z"})
            return True
        for number in range(spec["parallelism"] - len(mine)):
            self.stage.create(POD, job_pod(meta, spec, f"{meta['name']}-{len(mine) + number}"))
        if len(mine) < spec["parallelism"]:
            self.stage.settle()
            return True
        succeeded = sum(1 for pod in mine if pod.get("status", {}).get("phase") == "Succeeded")
        if succeeded == spec["completions"]:
            condition = {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
            self._status(
                meta,
                {
                    "succeeded": succeeded,
                    "active": 0,
                    "startTime": "2026-01-01T00:00:00Z",
                    "completionTime": "2026-01-01T00:00:01Z",
                    "conditions": [
                        {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached"},
                        condition,
                    ],
                },
            )
            return True
        return False

    def _status(self, meta: dict[str, Any], status: dict[str, Any]) -> None:
        self.stage.change(JOB, meta["name"], {"status": status}, "status")


def _over(status: dict[str, Any]) -> bool:
    return any(
        one["type"] in ("Complete", "Failed") and one["status"] == "True" for one in status.get("conditions", [])
    )


def job_pod(meta: dict[str, Any], spec: dict[str, Any], name: str) -> dict[str, Any]:
    template = spec["template"]
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE_NAME,
            "labels": {
                **template["metadata"]["labels"],
                "batch.kubernetes.io/job-name": meta["name"],
                "batch.kubernetes.io/controller-uid": meta["uid"],
            },
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
            ],
        },
        "spec": template["spec"],
    }


def play(stage: Stage, manager: Manager, cluster: Cluster) -> None:
    """Let manager and cluster react until the workload is done and nothing is left to do; restarts a crashed agent."""
    for _ in range(STEPS_MAX):
        try:
            if not stage.peer.open:
                stage.start()
            before = (len(stage.writes), manager.heard, stage.store.version)
            manager.react()
            busy = cluster.react()
            manager.react()
            if not busy and before == (len(stage.writes), manager.heard, stage.store.version):
                if manager.done:
                    stage.pass_seconds(90.0)
                    return
                stage.pass_seconds(5.0)
        except CrashError:
            stage.crash_before = stage.crash_after = None
            stage.crash()
    raise AssertionError(f"not done after {STEPS_MAX} steps: {manager}, agent {stage.state(manager.key)}")


def running_job(
    spec: dict[str, Any] | None = None, *, stage: Stage | None = None, **settings: Any
) -> tuple[Stage, Cluster]:
    """Return a stage on which a Job of two pods runs, and what runs them."""
    stage = stage or Stage(**settings)
    stage.start()
    stage.place(kind="Job", name="j", spec=spec)
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert len(cluster.running) == 2
    return stage, cluster


def fail_pod(stage: Stage, name: str, code: int = 3, at: str = "2026-01-01T00:00:05Z") -> None:
    """Let a kubelet say that a pod's container failed."""
    end = {"exitCode": code, "reason": "Error", "message": "no such file", "finishedAt": at}
    containers = [{"name": "main", "state": {"terminated": end}}]
    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": to_text(stage.now)}]
    said = {"phase": "Failed", "containerStatuses": containers, "conditions": ready}
    stage.change(POD, name, {"status": said}, "status")


def fail_job(stage: Stage, name: str = "j") -> None:
    """Let the Job's controller say the end."""
    said = [
        {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": to_text(stage.now)}
        for kind in ("FailureTarget", "Failed")
    ]
    status = {"failed": 2, "active": 0, "conditions": said, "startTime": "2026-01-01T00:00:00Z"}
    stage.change(JOB, name, {"status": status}, "status")


def failed_job(**settings: Any) -> Stage:
    """Return a stage on which a Job has failed, its second pod first, and its agent has told that."""
    stage, _ = running_job(**settings)
    fail_pod(stage, "j-1", 143, at="2026-01-01T00:00:09Z")
    fail_pod(stage, "j-0")
    fail_job(stage)
    return stage


def namespace_goes(stage: Stage) -> None:
    """Remove the namespace, as the watch of Namespaces tells it; what is in it is left as it is."""
    kind = stage.store.kinds.of(NAMESPACE)
    stage.store.delete(kind, "", NAMESPACE_NAME, Deletion(), stage.now)
    bare = stage.store.look(("", "namespaces"), "", NAMESPACE_NAME)
    assert bare is not None
    stage.store.update(kind, "", NAMESPACE_NAME, {**bare, "spec": {}}, stage.now, subresource="finalize")
    stage.settle()
