"""What is said of a placement whose namespace is being deleted, and of what our finalizer keeps there (HD-259).

Our rights go with the RoleBinding of that namespace, and nothing can be made there any more, also no other RoleBinding:
what is left with our finalizer keeps the namespace until an admin of that cluster takes it off. It costs nothing once
the placement has stopped.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gatelift_agent.core.placement.placements import ENDED, EndingKind, Placement, PlacementEnding, Tracked
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.state import condemned
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared.pod_trouble import NAMESPACE_GOES
from gatelift_kube.deciding.writes import WriteError, WriteFailed
from gatelift_wire.values.keys import FINALIZER_REPORT


def ending(placement: Placement) -> PlacementEnding:
    """Return the eviction of what is in a namespace that is being deleted."""
    text = f"namespace {placement.namespace} is being deleted in the worker cluster"
    return PlacementEnding(kind=EndingKind.EVICTED, reason=condemned.REASON, message=text)


def never_runs(world: World, placement: Placement) -> bool:
    """Say whether what looks let go of a Job that has stopped can make no pod, since its namespace is being deleted."""
    jobs = world.kind(placement).pods_are_children
    return jobs and condemned.is_said(world, placement) and condemned.none_seen(world, placement)


def pause(world: World, placement: Placement, event: WriteFailed) -> float:
    """Return the seconds before the next try to remove what is left there and costs nothing; 0: as usual."""
    over = placement.state in ENDED and event.error is WriteError.FORBIDDEN
    return condemned.LEFT_SECONDS if over and condemned.is_said(world, placement) else 0.0


def why_refused(world: World, placement: Placement, event: WriteFailed) -> str:
    """Return what a write that is refused in such a namespace means, and the way out; "" for all others."""
    if event.error is not WriteError.FORBIDDEN or not condemned.is_said(world, placement):
        return ""
    where = f"namespace {placement.namespace} is being deleted"
    if placement.state in ENDED:
        return f"{where}, and nothing of it runs or is charged{_way_out(placement)}"
    return f"{where}: it stays charged until no pod of it may run{_way_out(placement)}"


def name_in_end(world: World, placement: Placement) -> None:
    """Name in the word of its end what our finalizer keeps, where we were let take nothing off it."""
    if placement.ending is not None and condemned.is_said(world, placement):
        text = f"{placement.ending.message}{_way_out(placement, refused=True)}"
        placement.ending = replace(placement.ending, message=text)


def tell_wait(world: World, placement: Placement, *, still: bool) -> None:
    """Tell what a stop waits for in such a namespace; of pods that are placed themselves their own status tells."""
    if not world.kind(placement).pods_are_children or not condemned.is_sure(world, placement):
        return
    what = "it is known that none of its pods runs on" if still else "its pods have ended there, and all were looked at"
    text = (
        f"namespace {placement.namespace} is being deleted there: "
        f"it stays charged until {what}{_way_out(placement, refused=True)}"
    )
    if text != placement.wait_told:
        placement.wait_told = text
        reports.tell_trouble(world, placement, NAMESPACE_GOES, placement.name, text)


def _way_out(placement: Placement, *, refused: bool = False) -> str:
    """Return how an admin of the cluster takes our finalizer off what it keeps; `refused`: where we cannot."""
    for tracked in placement.objects.values():
        command = _command(tracked)
        if command and (tracked.attempts or not refused):
            return f"; {tracked.ref} keeps that namespace by our finalizer. As an admin of that cluster: {command}"
    return ""


def _command(tracked: Tracked) -> str:
    obj = tracked.object
    if obj is None or FINALIZER_REPORT not in obj.metadata.finalizers:
        return ""
    path = f"/metadata/finalizers/{obj.metadata.finalizers.index(FINALIZER_REPORT)}"
    patch = [{"op": "test", "path": path, "value": FINALIZER_REPORT}, {"op": "remove", "path": path}]
    where = f"kubectl -n {tracked.ref.key.namespace} patch {tracked.ref.resource.kind.lower()} {tracked.name}"
    return f"{where} --type=json -p '{msgspec.json.encode(patch).decode()}'"
