"""Pods: defaults, the gate rules, what may change after creation, deletion with grace. Pure."""

from __future__ import annotations

from gatelift_sandbox.embedded.documents import Document, copied, items, meta, timestamp
from gatelift_sandbox.embedded.failures import BrokenRule, bad_request, forbidden_field, wrong
from gatelift_sandbox.embedded.rules.plain import WithStatus
from gatelift_sandbox.embedded.rules.pod_spec import (
    GRACE_SECONDS,
    default_requests,
    default_spec,
    quality,
    quantity_problem,
    spec_errors,
)

IMMUTABLE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
TERMINAL = ("Succeeded", "Failed")


class PodRules(WithStatus):
    """core/v1 Pod."""

    generation = True
    graceful = True
    returns_deleted = True

    def default(self, new: Document) -> list[str]:
        """Fill in the spec."""
        spec = new.setdefault("spec", {})
        if not isinstance(spec, dict):
            raise bad_request('Pod in version "v1" cannot be handled as a Pod: spec is an object')
        if problem := quantity_problem(spec):
            raise bad_request(f'Pod in version "v1" cannot be handled as a Pod: {problem}')
        default_spec(spec)
        default_requests(spec)
        if spec.get("enableServiceLinks") is None:
            spec["enableServiceLinks"] = True
        return []

    def prepare_create(self, new: Document, now: float) -> None:
        """Start as Pending; a gated pod says so from its first version on."""
        spec = new["spec"]
        new["status"] = {"phase": "Pending", "qosClass": quality(spec)}
        if spec.get("schedulingGates"):
            new["status"]["conditions"] = [gated_condition(now)]

    def prepare_update(self, new: Document, old: Document, subresource: str) -> None:
        """Through the status, spec and owners stay; an observed generation of the status is the kubelet's."""
        super().prepare_update(new, old, subresource)
        if subresource == "status":
            owners = meta(old).get("ownerReferences")
            if owners is None:
                meta(new).pop("ownerReferences", None)
            else:
                meta(new)["ownerReferences"] = owners
            new.setdefault("status", {})["qosClass"] = (old.get("status") or {}).get("qosClass", "BestEffort")

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Check the spec, and that nobody binds a gated pod."""
        found = spec_errors(new.get("spec"), "spec")
        if new["spec"].get("nodeName") and new["spec"].get("schedulingGates"):
            detail = "cannot be set until all schedulingGates have been cleared"
            found.append(forbidden_field("spec.nodeName", detail))
        return found

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Allow what a real API server allows: images, deadlines, more tolerations; of a gated pod somewhat more."""
        if subresource:
            return []
        if new.get("spec") == old.get("spec"):
            return []
        return (
            _gate_changes(new["spec"], old["spec"])
            + _toleration_changes(new["spec"], old["spec"])
            + _spec_changes(new["spec"], old["spec"])
        )

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: node, phase, service account, restart policy, scheduler."""
        spec, status = document.get("spec") or {}, document.get("status") or {}
        return {
            "spec.nodeName": spec.get("nodeName") or "",
            "spec.restartPolicy": spec.get("restartPolicy") or "",
            "spec.schedulerName": spec.get("schedulerName") or "",
            "spec.serviceAccountName": spec.get("serviceAccountName") or "",
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase") or "",
            "status.podIP": status.get("podIP") or "",
            "status.nominatedNodeName": status.get("nominatedNodeName") or "",
        }

    def grace_seconds(self, document: Document, asked: int | None) -> int:
        """Return the asked or the pod's grace; pods that run nowhere or no more need none."""
        spec, status = document.get("spec") or {}, document.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in TERMINAL:
            return 0
        grace = asked if asked is not None else spec.get("terminationGracePeriodSeconds", GRACE_SECONDS)
        return max(int(grace), 0) if grace >= 0 else 1


def gated_condition(now: float) -> Document:
    """Return the condition that the API server gives a gated pod at its creation."""
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now),
        "reason": "SchedulingGated",
        "message": GATED_MESSAGE,
    }


def bind(pod: Document, node: str, now: float) -> None:
    """Set the node of a pod and the condition that says so, in place."""
    pod["spec"]["nodeName"] = node
    status = pod.setdefault("status", {})
    conditions = [c for c in items(status, "conditions") if c.get("type") != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": timestamp(now)}
    )
    status["conditions"] = conditions


def _gate_changes(new: Document, old: Document) -> list[BrokenRule]:
    before = {gate.get("name") for gate in items(old, "schedulingGates")}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(items(new, "schedulingGates"))
        if gate.get("name") not in before
    ]


def _toleration_changes(new: Document, old: Document) -> list[BrokenRule]:
    after = items(new, "tolerations")
    kept = all(
        any({**there, "tolerationSeconds": 0} == {**one, "tolerationSeconds": 0} for there in after)
        for one in items(old, "tolerations")
    )
    return (
        []
        if kept
        else [
            forbidden_field("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        ]
    )


def _spec_changes(new: Document, old: Document) -> list[BrokenRule]:
    changed = copied(new)
    for field in ("schedulingGates", "tolerations"):
        _restore(changed, old, field)
    for field in ("containers", "initContainers"):
        if len(items(changed, field)) != len(items(old, field)):
            return [forbidden_field(f"spec.{field}", "pod updates may not add or remove containers")]
        for container, before in zip(items(changed, field), items(old, field), strict=True):
            _restore(container, before, "image")
    found = _deadline_changes(changed, old)
    if items(old, "schedulingGates"):
        found += _selector_changes(changed, old)
    grace = old.get("terminationGracePeriodSeconds")
    if changed.get("terminationGracePeriodSeconds") == 1 and isinstance(grace, int) and grace < 0:
        _restore(changed, old, "terminationGracePeriodSeconds")
    if changed != old:
        found.append(forbidden_field("spec", IMMUTABLE_TEXT))
    return found


def _restore(new: Document, old: Document, field: str) -> None:
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def _deadline_changes(changed: Document, old: Document) -> list[BrokenRule]:
    before, after = old.get("activeDeadlineSeconds"), changed.get("activeDeadlineSeconds")
    _restore(changed, old, "activeDeadlineSeconds")
    if before == after or before is None:
        return []
    if after is None or after > before:
        detail = "must be less than or equal to previous value"
        return [wrong("spec.activeDeadlineSeconds", after, detail)]
    return []


def _selector_changes(changed: Document, old: Document) -> list[BrokenRule]:
    """Let the nodeSelector of a gated pod grow, and its affinity change."""
    before, after = old.get("nodeSelector") or {}, changed.get("nodeSelector") or {}
    _restore(changed, old, "nodeSelector")
    _restore(changed, old, "affinity")
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        return [wrong("spec.nodeSelector", after, detail)]
    return []
