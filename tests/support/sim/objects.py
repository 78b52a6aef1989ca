"""What objects of any cluster say of themselves, read from their JSON: conditions, epochs, amounts, what may run.

Shared by the checks of the simulation and of the scenarios. Knows no core and no kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from support.sim.attribution import EPOCH, LOCAL, Doc, number

GATE = "kueue.x-k8s.io/admission"
ELASTIC_GATE = "kueue.x-k8s.io/elastic-job"
"""On each pod of an elastic Job, until there is a slot for it."""
GATES = frozenset({GATE, ELASTIC_GATE})
Run = tuple[int, str]
"""Epoch and cluster."""

NOTHING: Final[Mapping[tuple[str, int], int]] = MappingProxyType({})
"""Where no books are asked what they have given back (`booked`)."""


class TruthError(AssertionError):
    """A promise is broken; the text says which, for which workload."""


def wanted(workload: Doc) -> int:
    """Return the milli-CPU that a workload asks for."""
    return sum(
        each.get("count", 1)
        * sum(milli(container["resources"]["requests"]["cpu"]) for container in each["template"]["spec"]["containers"])
        for each in workload["spec"]["podSets"]
    )


def milli(quantity: str) -> int:
    """Return a CPU quantity in milli-units."""
    return int(quantity[:-1]) if quantity.endswith("m") else int(float(quantity) * 1000)


def is_released(workload: Doc) -> bool:
    """Say whether a Workload says that its quota is free while its pods stop."""
    return any(
        one["type"] == "gatelift.dev/Draining" and one["status"] == "True" and one["reason"] != "QuotaHeld"
        for one in workload.get("status", {}).get("conditions", [])
    )


def holds(document: Doc, condition: str) -> bool:
    """Say whether a condition is True."""
    return any(
        each["type"] == condition and each["status"] == "True"
        for each in document.get("status", {}).get("conditions", [])
    )


def epoch_of(workload: Doc) -> int:
    """Return the epoch in the record."""
    return number(workload["metadata"].get("annotations", {}).get(EPOCH, "1"))


def place_of(workload: Doc) -> Run:
    """Return (epoch, cluster) of the record; `local` where it names none."""
    return epoch_of(workload), workload.get("status", {}).get("clusterName") or LOCAL


def pod_is_free(pod: Doc) -> bool:
    """Say whether a pod may run: not gated by us, not over, not deleted before it was bound."""
    spec, status = pod["spec"], pod.get("status", {})
    if any(gate["name"] in GATES for gate in spec.get("schedulingGates") or ()):
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


def comes_gated(job: Doc) -> bool:
    """Say whether a Job's pods wait for slots: it alone lets nothing run, however many pods it makes."""
    gates = job["spec"]["template"].get("spec", {}).get("schedulingGates") or ()
    return any(gate["name"] == ELASTIC_GATE for gate in gates)


def admitted_pods(workload: Doc) -> dict[str, int]:
    """Return the pods that a Workload is admitted with, by pod set, without what it shows as reclaimable."""
    assigned = workload["status"]["admission"]["podSetAssignments"]
    return {each["name"]: each.get("count", 1) - _reclaimed(workload, each, each.get("count", 1)) for each in assigned}


def is_patient(job: Doc) -> bool:
    """Say whether a Job makes another pod only when one has ended, none beside one that stops."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def finalizers(document: Doc) -> list[str]:
    """Return what an object's removal waits for."""
    return list(document["metadata"].get("finalizers") or ())


def names(documents: list[Doc]) -> list[Any]:
    """Return the names of objects, for messages."""
    return [each["metadata"]["name"] for each in documents]


def _reclaimed(workload: Doc, assigned: Doc, granted: int) -> int:
    """Return how many of the granted pods are written as needing no quota: those never granted come off first."""
    asked: dict[str, int] = {one["name"]: one.get("count", 1) for one in workload["spec"]["podSets"]}
    said: dict[str, int] = {one["name"]: one["count"] for one in workload["status"].get("reclaimablePods", [])}
    name = assigned["name"]
    return max(0, said.get(name, 0) - max(0, asked.get(name, 0) - granted))


def admitted(workload: Doc) -> int:
    """Return the milli-CPU that a Workload is admitted with, without what it shows as reclaimable."""
    found = 0
    for each in workload["status"]["admission"]["podSetAssignments"]:
        granted, count = milli(each.get("resourceUsage", {}).get("cpu", "0")), each.get("count", 1)
        found += granted // max(1, count) * (count - _reclaimed(workload, each, count))
    return found
