"""Groups of pods in a history: they are made at home, and run at a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K, a_member
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.history import _told as told

USER_UID = "gatelift.dev/user-uid"


def make(
    history: History,
    name: str,
    *,
    seconds: float = 0.0,
    takes: float = 0.0,
    exit_code: int = 0,
    grace: int | None = None,
    gates: Sequence[str] = (),
    queue: str = "travels",
    **more: Any,
) -> Doc:
    """Make a pod of the group, which runs for so long once it is let go, and takes so long to stop.

    `gates`: its user's own.
    """
    document = a_member(name, **{"cpu": "500m", **more})
    meta = document["metadata"]
    meta |= {"namespace": TEAM, "labels": meta["labels"] | {f"{K}queue-name": queue}}
    meta["annotations"] |= told(seconds, takes, exit_code)
    if grace is not None:
        document["spec"]["terminationGracePeriodSeconds"] = grace
    document["spec"].setdefault("schedulingGates", []).extend({"name": each} for each in gates)
    del document["status"], meta["creationTimestamp"]
    history.home.create(POD, document)
    history.passes(1.5)
    found = at_home(history, name)
    assert found is not None
    return found


def at_home(history: History, name: str) -> Doc | None:
    """Return a pod of the user's."""
    return history.home.look(POD, name, TEAM)


def uid(history: History, name: str) -> str:
    """Return the UID of a pod of the user's, "" where there is none."""
    found = at_home(history, name)
    return str(found["metadata"]["uid"]) if found is not None else ""


def names(history: History) -> list[str]:
    """Return which pods there are at home."""
    return sorted(one["metadata"]["name"] for one in history.home.all(POD))


def workload(history: History) -> Doc:
    """Return the group's Workload."""
    return history.home.look(WORKLOAD, GROUP, TEAM) or {}


def condition(history: History, kind: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition of the Workload."""
    said = workload(history).get("status", {}).get("conditions", [])
    found: Doc = next((one for one in said if one["type"] == kind), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def phases(history: History) -> dict[str, str]:
    """Return the phase that each pod shows at home."""
    return {one["metadata"]["name"]: one.get("status", {}).get("phase", "") for one in history.home.all(POD)}


def placed(history: History) -> dict[str, Doc]:
    """Return the pods of the group at workers, by name."""
    return {one["metadata"]["name"]: one for name in history.workers for one in history.cluster(name).all(POD)}


def run_there(history: History) -> list[str]:
    """Return which pods of the group run at workers."""
    return sorted(name for name, one in placed(history).items() if one.get("status", {}).get("phase") == "Running")


def whose(history: History) -> dict[str, str]:
    """Return for which user's pod each pod at a worker stands."""
    return {name: one["metadata"]["annotations"].get(USER_UID, "") for name, one in placed(history).items()}


def cluster_of(history: History) -> str:
    """Return where the group is placed."""
    return str(workload(history).get("status", {}).get("clusterName") or "")


def finalizers(history: History) -> list[str]:
    """Return which pods at home bear a finalizer."""
    return sorted(one["metadata"]["name"] for one in history.home.all(POD) if one["metadata"].get("finalizers"))


def finalizers_of(history: History) -> dict[str, tuple[str, ...]]:
    """Return the finalizers that each pod at home bears."""
    return {one["metadata"]["name"]: tuple(one["metadata"].get("finalizers", ())) for one in history.home.all(POD)}
