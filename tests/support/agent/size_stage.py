"""A stage of elastic work: a Job, or a training of two pod sets, committed with a size, and the controller of its pods.

The controller makes as many pods as the object asks for, gated as its template is, ends those that are too many from
the youngest on, gated ones first, and replaces each that failed. Nothing happens that no test asks for by `react`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_agent.core.placement.sizes import SizeState, Sizing
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kinds.registry import BARE_KIND, POD_KIND, WITH_SLICES, Registry
from gatelift_kinds.shared import markers
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.embedded.kinds import kind
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import ANNOTATION_SIZE
from gatelift_wire.values.sizes import Drained, PlacementSize, Resize, SizeRefused, SliceFinished
from support.agent.drivers import job_pod
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC
from support.toys.elastic_training.kind import ElasticTrainingKind
from support.toys.training.objects import TRAINING, a_group

GATE = {"name": markers.ELASTIC_JOB}
TWO_SETS = Registry(POD_KIND, ElasticTrainingKind(), BARE_KIND)
TEMPLATE: dict[str, Any] = {"spec": {**POD_SPEC, "restartPolicy": "Never", "schedulingGates": [GATE]}}


def a_job(parallelism: int = 1, completions: int | None = 100, **spec: Any) -> dict[str, Any]:
    return {"parallelism": parallelism, "completions": completions, "suspend": True, "template": TEMPLATE, **spec}


def sets(counts: dict[str, int], **fields: Any) -> tuple[m.PodSetRequest, ...]:
    """Return pod sets of one CPU for each pod."""
    return tuple(
        m.PodSetRequest(
            name=name,
            count=count,
            requests=(("cpu", 1000 * count),),
            flavors=(("cpu", "default"),),
            **fields,
        )
        for name, count in counts.items()
    )


class SizeStage(Stage):
    """One elastic placement. `counts` of one pod set are those of its Job."""

    kind_name = "Job"

    def __init__(self, *, release: str = "OnTerminal", **settings: Any) -> None:
        self.release = release
        settings.setdefault("registry", WITH_SLICES)
        super().__init__(**settings)
        self.made = 0

    # --- the manager --------------------------------------------------------------------------------------------

    def begin(self, count: int = 1, *, spec: dict[str, Any] | None = None, size: int = 1, reacts: bool = True) -> None:
        """Start, offer and commit a Job of so many pods, and let its controller make them."""
        self.start()
        if self.mode is AgentMode.LOCAL:
            self.make_local(count, spec)
        self.offer(KEY, "Job", "j")
        self.commit_size(count, size, spec=spec)
        if reacts:
            self.react()

    def make_local(self, count: int, spec: dict[str, Any] | None = None) -> None:
        notes = {markers.ELASTIC_JOB: "true"}
        metadata = {"name": "j", "namespace": NAMESPACE_NAME, "labels": {markers.QUEUE_NAME: "q"}, "annotations": notes}
        self.create(JOB, {"metadata": metadata, "spec": spec or a_job(count)})
        self.settle()

    def commit_size(self, count: int, size: int, *, spec: dict[str, Any] | None = None) -> None:
        pod_sets = sets({"main": count})
        self.commit(KEY, "Job", "j", spec or a_job(count), pod_sets=pod_sets, size=size, release=self.release)

    def resize(self, number: int, **counts: int) -> None:
        """Say a size of the Job (`main=`), or of pod sets."""
        self.send(Resize(key=KEY, number=number, pod_sets=sets(counts)))

    def confirm_size(self, number: int) -> None:
        self.send(m.Confirm(keys=(KEY,), sizes=(PlacementSize(key=KEY, number=number),)))

    @property
    def answers(self) -> list[int]:
        return [one.number for one in self.peer.of(SliceFinished)]

    @property
    def drained(self) -> list[tuple[tuple[str, int], ...]]:
        return [one.remaining for one in self.peer.of(Drained)]

    @property
    def refusals(self) -> list[SizeRefused]:
        return self.peer.of(SizeRefused)

    # --- the cluster --------------------------------------------------------------------------------------------

    def wanted(self) -> dict[str, int]:
        """Return how many pods the object asks for, by pod set; none while it is held back."""
        found = self.document(JOB, "j")
        if found is None or found["spec"].get("suspend"):
            return {}
        return {"main": found["spec"]["parallelism"]}

    def react(self) -> None:
        """Let the controller make what is missing and end what is too many."""
        found = self.document(JOB, "j")
        for name, count in self.wanted().items():
            alive = [one for one in self.pods(name) if not over(one) and not deleting(one)]
            for _ in range(count - len(alive)):
                self._make(found or {}, name)
            alive.sort(key=lambda one: (gated(one), one["metadata"]["name"]), reverse=True)
            for one in alive[: max(0, len(alive) - count)]:
                self.remove(POD, one["metadata"]["name"])
        self.settle()

    def _make(self, found: dict[str, Any], pod_set: str, **labels: str) -> None:
        self.made += 1
        document = job_pod(found["metadata"], found["spec"], f"j-{self.made:04d}")
        document["metadata"]["labels"] |= {markers.POD_SET: pod_set, **labels}
        document["metadata"]["creationTimestamp"] = f"2026-01-01T00:{self.made // 60:02d}:{self.made % 60:02d}Z"
        self.create(POD, document)

    def make_pod(self, *, pod_set: str | None = "main", notes: dict[str, str] | None = None, **spec: Any) -> str:
        """Make a pod by hand, whatever the Job asks for, with annotations and fields of its spec; return its name."""
        self.made += 1
        job = self.document(JOB, "j")
        assert job is not None
        document = job_pod(job["metadata"], job["spec"], f"j-{self.made:04d}")
        labels = document["metadata"]["labels"]
        labels.pop(markers.POD_SET, None)
        if pod_set is not None:
            labels[markers.POD_SET] = pod_set
        document["metadata"]["annotations"] = dict(notes or {})
        document["spec"] = {**document["spec"], **spec}
        self.create(POD, document)
        self.settle()
        return f"j-{self.made:04d}"

    def make_of(self, pod_set: str) -> None:
        """Make one pod more of a pod set of the object, as its controller would."""
        found = self.document(JOB, "j")
        assert found is not None
        self._make(found, pod_set)
        self.settle()

    def pods(self, pod_set: str = "main") -> list[dict[str, Any]]:
        found = [one for one in self.store.look_all(("", "pods")) if one["metadata"].get("ownerReferences")]
        return [one for one in found if one["metadata"]["labels"].get(markers.POD_SET, "") == pod_set]

    def lifted(self, pod_set: str = "main") -> list[str]:
        """Return the pods of a pod set that were let go and may run."""
        found = self.pods(pod_set)
        return sorted(one["metadata"]["name"] for one in found if not gated(one) and not over(one))

    def waiting(self, pod_set: str = "main") -> list[str]:
        return sorted(one["metadata"]["name"] for one in self.pods(pod_set) if gated(one))

    def run_all(self) -> None:
        """Bind and run each pod that was let go."""
        for one in self.store.look_all(("", "pods")):
            if not gated(one) and not one["spec"].get("nodeName") and not over(one):
                self.run(one["metadata"]["name"])

    # --- the agent ----------------------------------------------------------------------------------------------

    @property
    def sizing(self) -> Sizing:
        found = self.placement()
        assert found is not None
        assert found.sizing is not None
        return found.sizing

    @property
    def size_state(self) -> SizeState:
        return self.sizing.state

    def mark(self) -> dict[str, Any]:
        made: dict[str, Any] = msgspec.json.decode(self.job()["metadata"]["annotations"][ANNOTATION_SIZE])
        return made

    def ungates(self) -> list[Patch]:
        return [write for write in self.written(Patch, POD) if is_ungate(write)]

    def hold_ungates(self) -> None:
        self.hold = is_ungate

    def hold_sizes(self) -> None:
        self.hold = is_size

    def release_writes(self) -> None:
        self.hold = lambda _write: False


class TrainingStage(SizeStage):
    """The same with a leader and workers."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(registry=TWO_SETS, kinds=("Pod", "Training"), **settings)
        self.store.kinds.add(kind(TRAINING, subresources=("status",)))

    def begin_sets(self, leader: int, workers: int) -> None:
        self.start()
        self.offer(KEY, "Training", "j")
        spec = {"leader": a_group(replicas=leader), "workers": a_group(replicas=workers)}
        counts = {"leader": leader, "workers": workers}
        self.commit(KEY, "Training", "j", spec, pod_sets=sets(counts), size=1, release=self.release)
        self.react()

    def document(self, resource: Any, name: str, namespace: str = NAMESPACE_NAME) -> dict[str, Any] | None:
        return super().document(TRAINING if resource == JOB else resource, name, namespace)

    def wanted(self) -> dict[str, int]:
        found = self.document(TRAINING, "j")
        if found is None:
            return {}
        gates = found["spec"]["leader"]["template"]["spec"].get("schedulingGates", [])
        if any(one["name"] == markers.ADMISSION_GATE for one in gates):
            return {}
        return {name: found["spec"][name]["replicas"] for name in ("leader", "workers")}

    def _make(self, found: dict[str, Any], pod_set: str, **labels: str) -> None:
        self.made += 1
        meta, template = found["metadata"], found["spec"][pod_set]["template"]
        owner = {"apiVersion": TRAINING.api_version, "kind": TRAINING.kind, "name": meta["name"], "uid": meta["uid"]}
        metadata = {
            "name": f"j-{self.made:04d}",
            "namespace": NAMESPACE_NAME,
            "labels": {**template["metadata"]["labels"], **labels},
            "ownerReferences": [{**owner, "controller": True}],
        }
        self.create(POD, {"metadata": metadata, "spec": template["spec"]})


def gated(pod: dict[str, Any]) -> bool:
    return any(one["name"] == markers.ELASTIC_JOB for one in pod["spec"].get("schedulingGates", []))


def over(pod: dict[str, Any]) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def deleting(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_ungate(write: ApiWrite) -> bool:
    return isinstance(write, Patch) and write.ref.resource == POD and b"/spec/schedulingGates" in write.body


def is_size(write: ApiWrite) -> bool:
    is_ours = isinstance(write, Patch) and write.ref.resource != POD
    return (
        is_ours
        and isinstance(write, Patch)
        and any(one["path"].endswith("gatelift.dev~1size") for one in _operations(write.body))
    )


def _operations(body: bytes) -> list[dict[str, Any]]:
    found: Any = msgspec.json.decode(body)
    return found if isinstance(found, list) else []
