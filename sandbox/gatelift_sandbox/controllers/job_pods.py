"""The pods of a Job: which count as what, how many there shall be, and what a new one looks like. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gatelift_kube.values import resources as known
from gatelift_kube.values import timestamps
from gatelift_sandbox.controllers.controller import CreateObject, is_true
from gatelift_sandbox.embedded.documents import Document, at, copied, items, meta
from gatelift_sandbox.embedded.names import GENERATED_BASE_MAX

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True, kw_only=True)
class Tally:
    """Pods of a Job by what they count as. `_held`: still with the tracking finalizer, so not counted yet.

    `spared`: held, and let go without being counted, since the Job has succeeded without them.
    """

    pods: list[Document]
    active: list[Document] = field(default_factory=list)
    terminating: list[Document] = field(default_factory=list)
    succeeded_held: list[Document] = field(default_factory=list)
    failed_held: list[Document] = field(default_factory=list)
    spared: list[Document] = field(default_factory=list)
    indexed_done: set[int] = field(default_factory=set)

    @property
    def ended_held(self) -> list[Document]:
        """Return all ended pods that are not counted yet."""
        return self.succeeded_held + self.failed_held


def patient(job: Document) -> bool:
    """Return whether a pod is replaced only when it has ended."""
    return bool(at(job, "spec", "podReplacementPolicy") == "Failed")


def tally(job: Document, pods: list[Document]) -> Tally:
    """Sort the pods of a Job.

    A pod that is being deleted counts as failed at once; where pods are replaced when they have ended, only when its
    phase says that it has. Once the Job itself has failed or succeeded, nothing holds such a pod any more.
    """
    found = Tally(pods=pods)
    conditions = items(job, "status", "conditions")
    counts_at_once = not patient(job) or is_true(conditions, "FailureTarget")
    succeeded = is_true(conditions, "SuccessCriteriaMet")
    indexed = at(job, "spec", "completionMode") == "Indexed"
    for pod in pods:
        phase = at(pod, "status", "phase")
        leaving = bool(meta(pod).get("deletionTimestamp"))
        held = TRACKING_FINALIZER in (meta(pod).get("finalizers") or ())
        if phase == "Succeeded":
            if held:
                found.succeeded_held.append(pod)
                if indexed:
                    found.indexed_done.add(index_of(pod))
        elif phase == "Failed" or (leaving and held and counts_at_once):
            if held:
                found.failed_held.append(pod)
        elif leaving and held and succeeded:
            found.spared.append(pod)
        elif not leaving:
            found.active.append(pod)
        if leaving and phase not in _ENDED:
            found.terminating.append(pod)
    return found


def total(status: Document, outcome: str) -> int:
    """Return how many pods have ended so, noted ones included."""
    noted = at(status, "uncountedTerminatedPods", outcome) or ()
    return int(status.get(outcome) or 0) + len(noted)


def wanted(job: Document, status: Document, there: Tally) -> int:
    """Return how many active pods a Job that goes on shall have."""
    spec = job["spec"]
    parallel, completions = int(spec["parallelism"]), spec.get("completions")
    if completions is None:
        if total(status, "succeeded"):
            return min(len(there.active), parallel)  # a work queue is winding down: nothing new
        return parallel
    return max(min(parallel, int(completions) - total(status, "succeeded")), 0)


def beyond(job: Document, there: Tally) -> list[Document]:
    """Return the active pods of an indexed Job that have no place in it any more: too high an index, or one twice."""
    if at(job, "spec", "completionMode") != "Indexed":
        return []
    completions, kept, found = int(job["spec"].get("completions") or 0), set[int](), list[Document]()
    for pod in sorted(there.active, key=keep_first, reverse=True):
        index = index_of(pod)
        if index >= completions or index in kept:
            found.append(pod)
        kept.add(index)
    return found


def keep_first(pod: Document) -> tuple[Any, ...]:
    """Order pods: those to delete first come first (not bound, not running, not ready, youngest)."""
    phase, conditions = at(pod, "status", "phase"), items(pod, "status", "conditions")
    created = timestamps.to_seconds(meta(pod)["creationTimestamp"])
    bound = bool(at(pod, "spec", "nodeName"))
    return bound, phase == "Running", is_true(conditions, "Ready"), -created, meta(pod)["name"]


def make(job: Document, status: Document, there: Tally, count: int) -> list[CreateObject]:
    """Return the creation of `count` more pods; of an indexed Job, of the lowest indexes that have none."""
    if at(job, "spec", "completionMode") != "Indexed":
        return [_pod(job, None) for _ in range(count)]
    taken = {index_of(pod) for pod in there.active} | indexes(str(status.get("completedIndexes") or ""))
    if patient(job):
        taken |= {index_of(pod) for pod in there.terminating}
    free = (index for index in range(int(job["spec"].get("completions") or 0)) if index not in taken)
    return [_pod(job, index) for index, _ in zip(free, range(count), strict=False)]


def _pod(job: Document, index: int | None) -> CreateObject:
    about, template = meta(job), copied(job["spec"]["template"])
    described = template.setdefault("metadata", {})
    metadata: Document = {
        "generateName": f"{about['name'][: GENERATED_BASE_MAX - 1]}-",
        "labels": described.get("labels") or {},
        "finalizers": [*(described.get("finalizers") or ()), TRACKING_FINALIZER],
        "ownerReferences": [
            {
                "apiVersion": known.JOB.api_version,
                "kind": known.JOB.kind,
                "name": about["name"],
                "uid": about["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if described.get("annotations"):
        metadata["annotations"] = described["annotations"]
    spec = template["spec"]
    if index is not None:
        _number_pod(metadata, spec, about["name"], index)
    return CreateObject(resource=known.POD, namespace=about["namespace"], document={"metadata": metadata, "spec": spec})


def _number_pod(metadata: Document, spec: Document, name: str, index: int) -> None:
    metadata["generateName"] = f"{name[: GENERATED_BASE_MAX - 12]}-{index}-"
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: str(index)}
    metadata["labels"] = {**metadata["labels"], INDEX: str(index)}
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
    for container in items(spec, "initContainers") + items(spec, "containers"):
        container["env"] = [*(container.get("env") or ()), {"name": INDEX_VARIABLE, "valueFrom": source}]


def index_of(pod: Document) -> int:
    """Return a pod's completion index, -1 where it has none."""
    text = str((meta(pod).get("annotations") or {}).get(INDEX, ""))
    return int(text) if text.isdigit() else -1


def indexes(text: str) -> set[int]:
    """Return the indexes that a text such as `0,2-4` stands for."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def in_range(job: Document, numbers: set[int]) -> set[int]:
    """Return the indexes that a Job has: those above its completions, which may be lowered, count for nothing."""
    completions = int(job["spec"].get("completions") or 0)
    return {number for number in numbers if number < completions}


def outgrown(job: Document, status: Document) -> bool:
    """Return whether indexes are noted as completed that an indexed Job has no more."""
    if at(job, "spec", "completionMode") != "Indexed":
        return False
    noted = indexes(str(status.get("completedIndexes") or ""))
    return in_range(job, noted) != noted


def ranges(numbers: set[int]) -> str:
    """Return the text of indexes: runs of three and more as `2-4`, and of two as `2,3`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(
        str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
        for first, last in parts
    )
