"""The conditions of a Job: suspended, on its way to success or failure, finished. Pure."""

from __future__ import annotations

from gatelift_kube.values import timestamps
from gatelift_sandbox.controllers.controller import is_true
from gatelift_sandbox.controllers.job_pass import Pass
from gatelift_sandbox.controllers.job_pods import total
from gatelift_sandbox.embedded.documents import Document, items, timestamp

REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
BACKOFF = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
DEADLINE = ("DeadlineExceeded", "Job was active longer than specified deadline")


def finished(status: Document) -> bool:
    """Return whether a Job is complete or failed for good."""
    conditions = items(status, "conditions")
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def finished_at(status: Document) -> float:
    """Return when a finished Job finished, seconds since 1970."""
    for condition in items(status, "conditions"):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return timestamps.to_seconds(condition["lastTransitionTime"])
    raise ValueError("the Job is not finished")


def announces_end(look: Pass) -> bool:
    """Return whether a Job is to end as soon as its pods have."""
    return is_true(look.conditions, "FailureTarget") or is_true(look.conditions, "SuccessCriteriaMet")


def suspension(look: Pass) -> bool:
    """Set the condition Suspended if it has changed; return whether it has."""
    suspended = bool(look.spec.get("suspend"))
    there = next((c for c in look.conditions if c["type"] == "Suspended"), None)
    if (there is not None and there["status"] == "True") == suspended:
        return False
    reason, text = ("JobSuspended", "Job suspended") if suspended else ("JobResumed", "Job resumed")
    _set(look, "Suspended", "True" if suspended else "False", reason, text)
    if not suspended:
        look.status["startTime"] = timestamp(look.now)  # a resumed Job starts anew
    return True


def outcome(look: Pass) -> None:
    """Set SuccessCriteriaMet or FailureTarget where the Job's pods or its deadline say so."""
    if announces_end(look):
        return
    if total(look.status, "failed") > int(look.spec["backoffLimit"]):
        _set(look, "FailureTarget", "True", *BACKOFF)
        return
    limit = deadline(look)
    if limit is not None and look.now >= limit:
        _set(look, "FailureTarget", "True", *DEADLINE)
        return
    succeeded, completions = total(look.status, "succeeded"), look.spec.get("completions")
    if completions is None:
        complete = succeeded > 0 and not look.tally.active
    else:
        complete = succeeded >= int(completions) and not look.spec.get("suspend")
    if complete:
        _set(look, "SuccessCriteriaMet", "True", *REACHED)


def finish(look: Pass) -> tuple[str, str, bool] | None:
    """Set Complete or Failed once no pod runs and all are counted; return the event (reason, text, warning)."""
    noted = look.status.get("uncountedTerminatedPods") or {}
    if look.tally.active or look.tally.terminating or noted:
        return None
    if is_true(look.conditions, "SuccessCriteriaMet"):
        _set(look, "Complete", "True", *REACHED)
        look.status["completionTime"] = timestamp(look.now)
        return "Completed", "Job completed", False
    target = next(c for c in look.conditions if c["type"] == "FailureTarget")
    _set(look, "Failed", "True", target["reason"], target["message"])
    return target["reason"], target["message"], True


def deadline(look: Pass) -> float | None:
    """Return when the Job has been active for too long, None without a limit."""
    seconds, start = look.spec.get("activeDeadlineSeconds"), look.status.get("startTime")
    if seconds is None or not start or look.spec.get("suspend") or finished(look.status):
        return None
    return timestamps.to_seconds(start) + float(seconds)


def _set(look: Pass, kind: str, status: str, reason: str, message: str) -> None:
    moment = timestamp(look.now)
    condition = {
        "type": kind,
        "status": status,
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }
    for index, there in enumerate(look.conditions):
        if there["type"] == kind:
            look.conditions[index] = condition
            return
    look.conditions.append(condition)
