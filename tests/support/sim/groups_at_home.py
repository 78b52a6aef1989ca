"""Groups of pods in scripted histories: what a user makes of them, and what is to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K, a_member
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.history import _told as told


def make(
    history: History,
    name: str,
    queue: str = "stays",
    *,
    seconds: float = 0.0,
    stops_in: float = 0.0,
    exit_code: int = 0,
    grace: int | None = None,
    labels: Doc | None = None,
    at_once: bool = False,
    gates: Sequence[str] = (),
    **more: Any,
) -> None:
    """Make a pod of the group, which runs for so long once it is let go, and takes so long to stop.

    Each a moment after the one before, but `at_once`. `gates`: its user's own.
    """
    document = a_member(name, **{"cpu": "500m", **more})
    meta = document["metadata"]
    meta |= {"namespace": TEAM, "labels": meta["labels"] | {f"{K}queue-name": queue} | (labels or {})}
    meta["annotations"] |= told(seconds, stops_in, exit_code)
    if grace is not None:
        document["spec"]["terminationGracePeriodSeconds"] = grace
    document["spec"].setdefault("schedulingGates", []).extend({"name": each} for each in gates)
    del document["status"], meta["creationTimestamp"]
    history.home.create(POD, document)
    history.passes(0.0 if at_once else 1.5)


def pod(history: History, name: str) -> Doc | None:
    """Return a pod at home."""
    return history.home.look(POD, name, TEAM)


def gates(history: History, name: str) -> list[str]:
    """Return the gates of a pod at home."""
    return [one["name"] for one in (pod(history, name) or {})["spec"].get("schedulingGates", [])]


def theirs(history: History) -> Doc | None:
    """Return the group's Workload."""
    return history.home.look(WORKLOAD, GROUP, TEAM)


def says(history: History, condition: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition of the group's Workload."""
    conditions = ((theirs(history) or {}).get("status") or {}).get("conditions", [])
    found: Doc = next((one for one in conditions if one["type"] == condition), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def owners(history: History) -> list[str]:
    """Return the names of the pods that own the group's Workload."""
    found = theirs(history)
    return [one["name"] for one in found["metadata"]["ownerReferences"]] if found is not None else []


def names(history: History) -> list[str]:
    """Return the pods that are there."""
    return sorted(one["metadata"]["name"] for one in history.home.all(POD))


def in_phase(history: History, phase: str) -> list[str]:
    """Return the pods that are in a phase."""
    pods = history.home.all(POD)
    return sorted(one["metadata"]["name"] for one in pods if one.get("status", {}).get("phase") == phase)


def running(history: History) -> list[str]:
    """Return the pods that run."""
    return in_phase(history, "Running")


def told_of_end(history: History, name: str) -> str:
    """Return the reason of what a pod says of its end."""
    conditions = ((pod(history, name) or {}).get("status") or {}).get("conditions", [])
    return next((one["reason"] for one in conditions if one["type"] == "TerminationTarget"), "")


def held(history: History) -> list[str]:
    """Return the pods that have our finalizer."""
    pods = history.home.all(POD)
    return sorted(one["metadata"]["name"] for one in pods if f"{K}managed" in one["metadata"].get("finalizers", []))


def until_all_run(history: History, *expected: str) -> None:
    """Wait until just these pods run."""
    history.until(f"just {expected} run", lambda: running(history) == sorted(expected), 60.0)
