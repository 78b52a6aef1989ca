"""What a recovery has found, as it stands on the WorkerCluster `local` for people and for the next leader.

Neighbours: `recovery_settling`, `recovery_values` (what is written there), `passes` (has a WorkerCluster looked at).
"""

from __future__ import annotations

import msgspec

from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import recovery_settling
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.dispatching import placing
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.core import Core
from gatelift.core.state.recovery_asked import AskedCluster
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVERY,
    ANNOTATION_RESTORED,
    Found,
    Told,
    is_told_to_stop,
    told,
)
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


def look(core: Core, cluster: str, now: float) -> None:
    """Do what stands on a WorkerCluster: write the finding down, stop what a person said is to stop."""
    state = core.caution.recovery
    found = state.clusters.get(cluster)
    if cluster == LOCAL_CLUSTER:
        recovery_settling.pass_over(core)
    if found is None:
        return
    told_now = placing.open_view(core, cluster) is not None  # else when the session goes on; a later one is asked anew
    if told_now and is_told_to_stop(found) and not core.caution.halted:
        for key in sorted(state.unexplained.get(cluster, {})):
            placing.drop_stray(core, cluster, key, over=False)
        for ahead in core.caution.named_by(cluster):
            if ahead.spared:
                placing.drop_stray(core, cluster, ahead.key, over=ahead.over)
    if cluster == LOCAL_CLUSTER:
        recovery_settling.settle(core)
        _write(core, found, now)


def _write(core: Core, found: WorkerCluster, now: float) -> None:
    """Write down what was found, where the next leader and people see it."""
    state = core.caution.recovery
    wanted = Told(stage=state.stage, finding=state.finding, clusters=_found(core), waits=_waits(core, now))
    answered = ANNOTATION_RESTORED in found.metadata.annotations
    if wanted == (told(found) or Told()) and not answered:
        return
    ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", LOCAL_CLUSTER))
    if api_requests.blocked(core, ref, LOOK, now):
        return
    # On this very version: what a leader before asked for, and lands late, takes no later finding away.
    version, text = found.metadata.resource_version, msgspec.json.encode(wanted).decode()
    annotations = {ANNOTATION_RECOVERY: text} | ({ANNOTATION_RESTORED: None} if answered else {})
    metadata = {"uid": found.metadata.uid, "resourceVersion": version, "annotations": annotations}
    api_requests.patch(
        core, Decided(ref, version), PatchStep(body=msgspec.json.encode({"metadata": metadata})), Purpose.RECOVERY
    )


def _waits(core: Core, now: float) -> str:
    """Return why a lead that has begun places nothing yet, once that lasts; "" where a finding says it."""
    if core.caution.recovery.finding is not None or not core.caution.halted:
        return ""
    due = core.caution.halt_is_told_at()
    if now >= due:
        return core.caution.halted
    core.agenda.wake(LOOK, due)
    return ""


def _found(core: Core) -> dict[str, Found]:
    """Return what each cluster has, while that matters to anybody."""
    state = core.caution.recovery
    every = state.finding is not None
    found = {}
    for name in sorted({*state.clusters, *(state.asked.by_name if every else ())}):
        ahead, unexplained = len(core.caution.named_by(name)), len(state.unexplained.get(name, ()))
        if every or ahead or unexplained:
            listed, unproven = state.listed.get(name), name in state.unproven
            known = state.asked.by_name.get(name, AskedCluster("", "")) if every else AskedCluster("", "")
            found[name] = Found(
                heard=listed is not None and not unproven,
                listed=listed or 0,
                ahead=ahead,
                unexplained=unexplained,
                unproven=unproven,
                gone=name in state.awaited and state.is_gone(name),
                uid=known.uid,
                served=known.served,
            )
    return found
