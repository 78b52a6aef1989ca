"""Drivers in a history: made at home with the sets that they declare, and their workers by hand at the worker cluster.

What a worker's webhook puts on is on them as they are made: here nobody comes around it.
"""

from __future__ import annotations

import json
from typing import Any

from gatelift_kinds.shared import gate_of_members as gate
from gatelift_kube.values.resources import POD
from support.manager.group_world import GROUP, K
from support.sim import groups
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.history import _told as told

DRIVER = "driver"
FOR_GOOD = {f"{K}retriable-in-group": "false"}


def drive(history: History, workers: int = 2, *, seconds: float = 0.0, notes: Doc | None = None) -> None:
    """Make a driver of so many workers, which runs for so long; wait until it runs at a worker."""
    container = {"name": "w", "resources": {"requests": {"cpu": "500m"}}}
    sets: list[Any] = [
        {"name": "driver", "count": 1},
        {"name": "workers", "count": workers, "template": {"spec": {"containers": [container]}}},
    ]
    said = {f"{K}pod-group-sets": json.dumps(sets), **(notes or {})}
    groups.make(history, DRIVER, seconds=seconds, total=workers + 1, notes=said)
    history.until("the driver runs", lambda: DRIVER in groups.run_there(history), 120.0)


def makes(
    history: History,
    name: str,
    *,
    cluster: str = "",
    seconds: float = 0.0,
    takes: float = 0.0,
    exit_code: int = 0,
    cpu: str = "500m",
) -> None:
    """Make a worker where the driver runs, as its API server takes it."""
    labels = {f"{K}pod-group-name": GROUP, f"{K}pod-group-role": "workers"}
    document: Doc = {
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": labels,
            "annotations": told(seconds, takes, exit_code),
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "w", "image": "w", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    for operation in gate.operations(document):
        if operation["path"].startswith("/metadata/labels"):
            labels["gatelift.dev/made-here"] = operation["value"]
        else:
            document["spec"]["schedulingGates"] = operation["value"]
    history.cluster(cluster or groups.cluster_of(history)).create(POD, document)


def workers_run(history: History) -> list[str]:
    """Return which workers run."""
    return [name for name in groups.run_there(history) if name != DRIVER]


def workers(history: History) -> list[str]:
    """Return which workers are there."""
    return sorted(name for name in groups.placed(history) if name != DRIVER)


def told_of(history: History) -> str:
    """Return what the Workload says of what was made there."""
    notes = groups.workload(history).get("metadata", {}).get("annotations", {})
    return str(notes.get("gatelift.dev/made-there", ""))


def home_makes(history: History, name: str, total: int) -> None:
    """Make a worker at home, of the same set; `total`: pods of the group."""
    groups.make(history, name, labels={f"{K}pod-group-role": "workers"}, total=total)
