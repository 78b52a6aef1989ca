"""Jobs: defaults, the generated selector and labels, what may change after creation. Pure."""

# ruff: noqa: ARG002 (rules are offered more than each of them needs)
from __future__ import annotations

from gatelift_sandbox.embedded import names
from gatelift_sandbox.embedded.documents import Document, copied, encode, meta
from gatelift_sandbox.embedded.failures import BrokenRule, bad_request, required, unsupported, wrong
from gatelift_sandbox.embedded.rules.plain import WithStatus
from gatelift_sandbox.embedded.rules.pod_spec import default_spec, quantity_problem, spec_errors

BACKOFF_LIMIT = 6
BACKOFF_LIMIT_MAX = 2**31 - 1
JOB_CONTROLLER = "kubernetes.io/job-controller"
UID_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
NAME_LENGTH_MAX = 63
IMMUTABLE = "field is immutable"
FINISHED = ("Complete", "Failed")


class JobRules(WithStatus):
    """batch/v1 Job."""

    generation = True
    propagation = "Orphan"

    def default(self, new: Document) -> list[str]:
        """Fill in spec and pod template."""
        spec = new.setdefault("spec", {})
        template = spec.setdefault("template", {}) if isinstance(spec, dict) else None
        pod = template.setdefault("spec", {}) if isinstance(template, dict) else None
        if not isinstance(pod, dict):
            raise bad_request('Job in version "v1" cannot be handled as a Job: spec.template.spec is an object')
        if problem := quantity_problem(pod):
            raise bad_request(f'Job in version "v1" cannot be handled as a Job: {problem}')
        default_spec(pod)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        if spec.get("parallelism") is None:
            spec["parallelism"] = 1
        if spec.get("backoffLimit") is None:
            spec["backoffLimit"] = BACKOFF_LIMIT_MAX if spec.get("backoffLimitPerIndex") is not None else BACKOFF_LIMIT
        spec["completionMode"] = spec.get("completionMode") or "NonIndexed"
        spec["suspend"] = bool(spec.get("suspend"))
        spec["manualSelector"] = bool(spec.get("manualSelector"))
        if not spec.get("podReplacementPolicy"):
            spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        return []

    def prepare_create(self, new: Document, now: float) -> None:
        """Make selector and labels from the Job's own UID, so that no two Jobs ever share pods."""
        new["status"] = {}
        spec, about = new["spec"], meta(new)
        if spec.get("manualSelector"):
            return
        template = spec["template"]
        labels = template.setdefault("metadata", {}).setdefault("labels", {}) or {}
        template["metadata"]["labels"] = labels
        for label in NAME_LABELS:
            labels.setdefault(label, about["name"])
        for label in UID_LABELS:
            labels.setdefault(label, about["uid"])
        if not about.get("labels"):
            about["labels"] = dict(labels)
        if spec.get("selector") is None:
            spec["selector"] = {"matchLabels": {UID_LABELS[0]: about["uid"]}}

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Check numbers, modes and the template."""
        spec = new["spec"]
        found = _number_errors(spec)
        if spec.get("completionMode") not in ("NonIndexed", "Indexed"):
            found.append(unsupported("spec.completionMode", spec.get("completionMode"), ("Indexed", "NonIndexed")))
        if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
            found.append(required("spec.completions", "when completion mode is Indexed"))
        manager = spec.get("managedBy")
        if manager is not None:
            found += _manager_errors(manager)
        template = spec["template"]
        found += names.label_errors((template.get("metadata") or {}).get("labels"), "spec.template.labels")
        found += _restart_errors(template["spec"])
        found += _generated_errors(new)
        return found + spec_errors(template["spec"], "spec.template.spec")

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Hold fields fixed as the real server does; a suspended Job's template may change where pods shall run."""
        if subresource == "status":
            return _status_errors(new.get("status") or {}, old.get("status") or {})
        after, before = new["spec"], old["spec"]
        found = _number_errors(after) + _generated_errors(new)
        fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
        elastic = after.get("completionMode") == "Indexed" and after.get("completions") == after.get("parallelism")
        if not elastic:
            fixed.insert(0, "completions")
        found += [
            wrong(f"spec.{field}", after.get(field), IMMUTABLE)
            for field in fixed
            if after.get(field) != before.get(field)
        ]
        suspended = bool(before.get("suspend"))
        if _template(after, before, suspended=suspended) != before["template"]:
            found.append(wrong("spec.template.spec" if suspended else "spec.template", after["template"], IMMUTABLE))
        return found

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: the number of pods that succeeded."""
        return {"status.successful": str((document.get("status") or {}).get("succeeded", 0))}


def _number_errors(spec: Document) -> list[BrokenRule]:
    fields = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    return [
        wrong(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in fields
        if isinstance(spec.get(field), int) and spec[field] < 0
    ]


def _generated_errors(new: Document) -> list[BrokenRule]:
    """Hold the template to the labels that the Job's selector was generated for; a manual selector has none."""
    if new["spec"].get("manualSelector"):
        return []
    about, labels = meta(new), (new["spec"]["template"].get("metadata") or {}).get("labels") or {}
    wanted = {**dict.fromkeys(UID_LABELS, about["uid"]), **dict.fromkeys(NAME_LABELS, about["name"])}
    return [
        wrong(f"template.metadata.labels[{label}]", labels[label], f"must be '{value}'")
        if label in labels
        else required(f"template.metadata.labels[{label}]", f"must be '{value}'")
        for label, value in wanted.items()
        if labels.get(label) != value
    ]


def _manager_errors(manager: str) -> list[BrokenRule]:
    domain, slash, path = str(manager).partition("/")
    if not slash or not path:
        detail = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [wrong("spec.managedBy", manager, detail)]
    if len(manager) > NAME_LENGTH_MAX:
        return [BrokenRule("spec.managedBy", "Too long", f"may not be more than {NAME_LENGTH_MAX} bytes")]
    text = names.subdomain_name(domain)
    return [wrong("spec.managedBy", domain, text)] if text else []


def _restart_errors(pod: Document) -> list[BrokenRule]:
    if pod.get("restartPolicy") in ("OnFailure", "Never"):
        return []
    if pod.get("restartPolicy") in (None, "", "Always"):
        return [required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')]
    field = "spec.template.spec.restartPolicy"
    return [unsupported(field, pod.get("restartPolicy"), ("OnFailure", "Never"))]


def _template(after: Document, before: Document, *, suspended: bool) -> Document:
    """Return the new template with what may change put back to what it was."""
    template: Document = copied(after["template"])
    if not suspended:
        return template
    old = before["template"]
    for fields, place, source in (
        (("nodeSelector", "tolerations", "schedulingGates", "affinity"), template["spec"], old["spec"]),
        (("labels", "annotations"), template.setdefault("metadata", {}), old.get("metadata") or {}),
    ):
        for field in fields:
            if field in source:
                place[field] = source[field]
            else:
                place.pop(field, None)
    for container, was in zip(template["spec"].get("containers", ()), old["spec"].get("containers", ()), strict=False):
        container["resources"] = was.get("resources", {})
    if not template["metadata"] and "metadata" not in old:
        del template["metadata"]
    return template


def _status_errors(after: Document, before: Document) -> list[BrokenRule]:
    """Check lightly: counts are no less than zero, and what has finished stays finished."""
    found = [
        wrong(f"status.{field}", after[field], "must be greater than or equal to 0")
        for field in ("active", "ready", "succeeded", "failed", "terminating")
        if isinstance(after.get(field), int) and after[field] < 0
    ]
    then, now = _finished(before), _finished(after)
    if then and then != now:
        found.append(
            wrong("status.conditions", encode(sorted(now)).decode(), f"cannot disable {min(then)}=True condition")
        )
    if {"Complete", "Failed"} <= now:
        found.append(wrong("status.conditions", "", "cannot set Complete=True and Failed=true conditions"))
    if "Complete" in now and not after.get("completionTime"):
        found.append(required("status.completionTime", "completionTime is required for Complete jobs"))
    if "Complete" not in now and after.get("completionTime"):
        found.append(
            wrong(
                "status.completionTime",
                after["completionTime"],
                "completionTime cannot be set if there is no Complete=True condition",
            )
        )
    if now and not after.get("startTime"):
        found.append(required("status.startTime", "startTime is required for finished job"))
    if now and after.get("active"):
        found.append(wrong("status.active", after["active"], "active>0 is invalid for finished job"))
    return found


def _finished(status: Document) -> set[str]:
    return {
        condition["type"]
        for condition in status.get("conditions") or ()
        if condition.get("type") in FINISHED and condition.get("status") == "True"
    }
