"""Deactivation by the manager: announced as DeactivationTarget, carried out as `spec.active=false`, then an eviction.

Two writes, as with Kueue, because the cause has to outlive a crash between them: status and spec of a Workload cannot
be written in one request. Neighbours: `verdicts`, `readiness`, `execution_time` announce; `reconcile` carries out.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import status_writes
from gatelift.core.records.attempts import Ending
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift_kube.objects.conditions import TRUE, find, put
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition


def announced(known: Workload) -> Condition | None:
    """Return the condition DeactivationTarget if it is True."""
    target = find(known.status.conditions, texts.DEACTIVATION_TARGET)
    return target if target is not None and target.status == TRUE else None


def announce(core: Core, known: Workload, cause: str, message: str, now: float) -> None:
    """Write that the workload is to be deactivated, and why."""
    target = status_writes.condition(known, texts.DEACTIVATION_TARGET, TRUE, cause, message)
    body = status_writes.status_write(known, conditions=put(known.status.conditions, target, core.wall.text(now)))
    api_requests.patch_workload(core, known, body, Purpose.ANNOUNCE_DEACTIVATION)


def carry_out(core: Core, known: Workload) -> bool:
    """Deactivate what was announced to be; True if a write was asked for."""
    if announced(known) is None or not known.spec.active:
        return False
    set_active(core, known, active=False)
    return True


def set_active(core: Core, known: Workload, *, active: bool) -> None:
    """Ask for the write by which a workload is deactivated, or is so no more."""
    metadata = {"uid": known.metadata.uid, "resourceVersion": known.metadata.resource_version}
    body = msgspec.json.encode({"metadata": metadata, "spec": {"active": active}})
    api_requests.patch_workload(core, known, body, Purpose.DEACTIVATE, status=False)


def ending(known: Workload) -> Ending:
    """Return how a deactivated workload ends: by our cause if we announced one, else by a person's wish."""
    target = announced(known)
    if target is None:
        return Ending(reason=texts.DEACTIVATED, message=texts.WORKLOAD_DEACTIVATED)
    message = texts.deactivated_due_to(target.message)
    return Ending(reason=texts.DEACTIVATED_DUE_TO + target.reason, message=message)


def rejected(core: Core, known: Workload, message: str, now: float) -> None:
    """Announce the deactivation that checks ask for by their state Rejected."""
    announce(core, known, texts.ADMISSION_CHECK, message, now)
    core.event(ref_of(known), known.metadata.uid, texts.ADMISSION_CHECK_REJECTED, message, warning=True)
