"""The status of a Job: shown to the user, taken back, and the handshake of stopping. Pure.

The API server holds status writes of Jobs with `managedBy` to rules of its own (KEP-4368): counters do not fall, the
start time changes only while the Job is suspended, a finished Job stays so. What is written here keeps them.
"""

from __future__ import annotations

from gatelift_kinds.shared import shown_status
from gatelift_kinds.shared.patches import Json, encode, status_of, status_patch, stop_mark
from gatelift_kinds.shared.values import ObjectEnd
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.conditions import TRUE
from gatelift_wire.values.keys import PlacementKey

STOP_ASKED = "gatelift.dev/StopAsked"
"""Condition type by which the agent asks the Job controller to say again that the Job is suspended."""

_BOOKKEEPING = ("uncountedTerminatedPods",)  # the worker's Job controller's own; no news to the user
_OF_A_RUN = ("active", "ready", "terminating", "startTime", *_BOOKKEEPING)
_ENDS = frozenset({"Complete", "Failed"})
_ANNOUNCES_END = frozenset({"SuccessCriteriaMet", "FailureTarget"})
_NEVER_FALLING = ("succeeded", "failed")


def shown(obj: Job, reported: bytes) -> Json:
    """Return what the user's Job may show of the reported status."""
    indexed = obj.spec.completion_mode == "Indexed"
    return shown_status.of_job(reported, (obj.spec.completions or 0) if indexed else 0)


def mirror(obj: Job, raw: bytes, reported: bytes) -> bytes | None:
    """Return the patch of `/status` that shows what is on the list of the reported one; None without a change."""
    old = status_of(raw)
    new = shown(obj, reported)
    for key in _NEVER_FALLING:  # an earlier epoch's run may have counted more
        if key in old and old[key] > new.get(key, 0):
            new[key] = old[key]
    conditions = _shown(new.get("conditions") or [])
    if conditions:
        new["conditions"] = conditions
    else:
        new.pop("conditions", None)
    return status_patch(obj.metadata, old, new)


def _shown(conditions: list[Json]) -> list[Json]:
    """Conditions for the user: none of ours; what announces the end only together with the end.

    FailureTarget and SuccessCriteriaMet cannot be taken back, but the run that announced its end may yet be evicted.
    """
    ended = any(one.get("type") in _ENDS and one.get("status") == "True" for one in conditions)
    hidden = {STOP_ASKED} if ended else {STOP_ASKED, *_ANNOUNCES_END}
    return [one for one in conditions if one.get("type") not in hidden]


def ended(obj: Job, raw: bytes, outcome: ObjectEnd, wall: str) -> bytes | None:
    """Return the patch of `/status` that says the end and that no pod is left, and nothing else; counters stay."""
    old = status_of(raw)
    new: Json = {key: value for key, value in old.items() if key not in ("active", "ready", "terminating")}
    new.setdefault("startTime", wall)
    announced, end = ("SuccessCriteriaMet", "Complete") if outcome.succeeded else ("FailureTarget", "Failed")
    if outcome.succeeded:
        new["completionTime"] = wall
    said = {"status": "True", "reason": outcome.reason, "message": outcome.message}
    times = {"lastProbeTime": wall, "lastTransitionTime": wall}
    kept = [one for one in old.get("conditions") or [] if one.get("type") not in {announced, end}]
    new["conditions"] = [*kept, *({"type": type_, **said, **times} for type_ in (announced, end))]
    return status_patch(obj.metadata, old, new)


def reset(obj: Job, raw: bytes, wall: str) -> bytes | None:
    """Return the patch of `/status` of a Job that waits again; None when it shows nothing of a run.

    Suspended=True goes with it: only then does the API server take a new start time later.
    """
    old = status_of(raw)
    if not old:
        return None
    new = {key: value for key, value in old.items() if key not in _OF_A_RUN}
    said = [
        one for one in old.get("conditions") or [] if one.get("type") == "Suspended" and one.get("status") == "True"
    ]
    suspended = {
        "type": "Suspended",
        "status": "True",
        "reason": "JobSuspended",
        "message": "Job suspended",
        "lastProbeTime": wall,
        "lastTransitionTime": wall,
    }
    others = [one for one in old.get("conditions") or [] if one.get("type") != "Suspended"]
    new["conditions"] = [*others, *(said or [suspended])]
    return status_patch(obj.metadata, old, new)


def suspend_body(obj: Job, key: PlacementKey, *, version: str = "") -> bytes:
    """Return the merge patch that suspends. The mark makes it a change even of a suspended object.

    `version`: the one to which alone it applies. At `local` the Job outlives the placement: a patch whose answer was
    lost must not land when the next placement has been let go (R7).
    """
    meta = {"uid": obj.metadata.uid, "labels": stop_mark(key)}
    if version:
        meta["resourceVersion"] = version
    return encode({"metadata": meta, "spec": {"suspend": True}})


def stop_asked_body(obj: Job, key: PlacementKey) -> bytes:
    """Return the merge patch of `/status` that takes Suspended away, clears the start time and says that we asked."""
    asked = {"type": STOP_ASKED, "status": "True", "reason": _reason(key), "message": "The agent stops this Job"}
    kept = _conditions_without(obj, {"Suspended", STOP_ASKED})
    return encode({"metadata": _seen(obj), "status": {"startTime": None, "conditions": [*kept, asked]}})


def announces_end(obj: Job) -> bool:
    """Return whether its controller has said that it ends as soon as its pods have: it says no Suspended any more."""
    return any(one.type in _ANNOUNCES_END and one.status == TRUE for one in obj.status.conditions)


def lacks_start(obj: Job) -> bool:
    """Return whether it announced its end after the start time was cleared: the API server refuses its end for ever.

    "startTime is required for finished job" (Kubernetes 1.36). While it is not suspended, its controller sets one.
    """
    return bool(obj.spec.suspend) and obj.status.start_time is None and announces_end(obj)


def start_body(obj: Job) -> bytes:
    """Return the merge patch of `/status` that gives it a start time again: when it was made.

    The one that it had is gone. This one is before any end, as is asked for, and no deadline goes by it any more.
    """
    return encode({"metadata": _seen(obj), "status": {"startTime": obj.metadata.creation_timestamp}})


def stop_not_asked_body(obj: Job) -> bytes:
    """Return the merge patch of `/status` that takes our question back: it is asked again after the next stop."""
    return encode({"metadata": _seen(obj), "status": {"conditions": _conditions_without(obj, {STOP_ASKED})}})


def _seen(obj: Job) -> Json:
    return {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}


def _conditions_without(obj: Job, types: set[str]) -> list[Json]:
    return [
        {
            "type": one.type,
            "status": one.status,
            "reason": one.reason,
            "message": one.message,
            "lastTransitionTime": one.last_transition_time,
        }
        for one in obj.status.conditions
        if one.type not in types
    ]


def stop_asked(obj: Job, key: PlacementKey) -> bool:
    """Return whether `stop_asked_body` has landed for this placement."""
    return any(one.type == STOP_ASKED and one.reason == _reason(key) for one in obj.status.conditions)


def stop_acknowledged(obj: Job, key: PlacementKey) -> bool:
    """Return whether the Job controller has said Suspended after we asked."""
    said = any(one.type == "Suspended" and one.status == "True" for one in obj.status.conditions)
    return said and stop_asked(obj, key)


def _reason(key: PlacementKey) -> str:
    return f"Epoch{key.epoch}_{key.uid.replace('-', '_')}"
