"""What other management clusters left at a worker: shown, waited for, and let go by a person's word. Pure.

A management cluster that was built anew has another origin: its record knows nothing of what runs at the workers, and
the same manifests are applied again. So the agent tells what it finds there of other origins; an object of the same
kind, namespace and name waits until that is gone, or until a person says that this origin need not be waited for.
Neighbours: `cluster_status` writes it, `successors` lets objects wait.
"""

from __future__ import annotations

from gatelift.core.api.user_objects import UserObject
from gatelift_kube.objects import gatelift_bounds as bounds
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.gatelift import ForeignRunStatus, WorkerCluster
from gatelift_kube.objects.meta import Condition
from gatelift_wire.values import inventory

ANNOTATION_IGNORED = "gatelift.dev/foreign-ignored"
"""A person's word, written by `gatelift cluster foreign NAME --ignore`: origins, with commas, not to be waited for."""

IGNORED_MAX = 16
"""Origins that a person may name: management clusters that used this worker before."""

IGNORE_ALL = "*"
"""In place of an origin: nothing that this worker says of others is waited for, now or later."""

ORIGINS_SHOWN_MAX = 8
"""Of origins, in the condition: a worker had one management cluster before, seldom two."""

CONDITION = "ForeignRuns"
ANY = UserObject("*", "*", "*")
"""Stands for the objects that are not named: there are more than that."""


def read(runs: tuple[inventory.ForeignRun, ...]) -> tuple[ForeignRunStatus, ...]:
    """Return what an agent said, as WorkerCluster.status carries it; what no API server has anywhere is no run."""
    found = (
        ForeignRunStatus(origin=one.origin, kind=one.kind, namespace=one.namespace, name=one.name, count=one.count)
        for one in runs
    )
    return tuple(one for one in found if _can_be(one))


def _can_be(run: ForeignRunStatus) -> bool:
    """Say whether such an object can exist, or is a count of such."""
    said = (
        (run.origin, bounds.LABEL_VALUE),
        (run.kind, bounds.LABEL_VALUE),
        (run.namespace, bounds.LABEL),
        (run.name, bounds.SUBDOMAIN),
    )
    return not any(bounds.misfit(text, {"pattern": pattern}) for text, pattern in said if text)


def ignored(found: WorkerCluster) -> frozenset[str]:
    """Return the origins that a person said not to wait for."""
    said = found.metadata.annotations.get(ANNOTATION_IGNORED, "").split(",", IGNORED_MAX)
    return frozenset(one.strip() for one in said[:IGNORED_MAX] if one.strip())


def awaited(found: WorkerCluster, runs: tuple[ForeignRunStatus, ...]) -> tuple[ForeignRunStatus, ...]:
    """Return what has to be waited for."""
    origins = ignored(found)
    return tuple(one for one in runs if IGNORE_ALL not in origins and one.origin not in origins)


def places(runs: tuple[ForeignRunStatus, ...]) -> frozenset[UserObject]:
    """Return the places that are taken, `ANY` for those that are not named (`successors` says what they hold)."""
    return frozenset(UserObject(one.kind, one.namespace, one.name) if one.name else ANY for one in runs)


def condition(found: WorkerCluster, runs: tuple[ForeignRunStatus, ...]) -> Condition | None:
    """Return what the WorkerCluster says of them; None: there never were any."""
    if not runs and find(found.status.conditions, CONDITION) is None:
        return None
    waits = awaited(found, runs)
    if waits:
        number = sum(one.count for one in waits)
        origins = sorted({one.origin for one in waits})
        shown = ", ".join(origins[:ORIGINS_SHOWN_MAX]) + (", ..." if len(origins) > ORIGINS_SHOWN_MAX else "")
        command = f"gatelift cluster foreign {found.metadata.name}"
        status, reason = "True", "OtherOrigin"
        message = (
            f"{number} pods or Jobs of another management cluster (origin {shown}) are there, "
            "left alone; what is queued here under the same kind, namespace and name waits until they are gone, or "
            f"until a person says: {command} --ignore; of all that this worker says of others, now and later: "
            f"{command} --ignore-all"
        )
    elif runs:
        status, reason, message = "False", "Ignored", "A person has said that they are not to be waited for"
    else:
        status, reason, message = "False", "None", "Nothing of another management cluster is there"
    return Condition(
        type=CONDITION, status=status, reason=reason, message=message, observed_generation=found.metadata.generation
    )
