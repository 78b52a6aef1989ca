"""What the webhook sets and refuses, rule by rule, with the text that a person reads."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.pod import rules as pod_rules
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared.review import ErrorKind, WebhookFacts
from gatelift_sandbox.embedded.patching import json_patch
from support.manager.webhook_documents import (
    CLASS,
    DEFAULT,
    ELSEWHERE,
    FACTS,
    GATED,
    Json,
    K,
    Q,
    a_job,
    a_pod,
    defaulted,
    told,
)

# --- defaults of pods ---


def test_a_queued_pod_is_gated_labelled_and_given_finalizer_and_hash() -> None:
    made = defaulted(POD_KIND, a_pod(Q), FACTS)
    assert made["metadata"]["labels"] == {**Q, f"{K}managed": "true"}
    assert made["metadata"]["finalizers"] == [f"{K}managed"]
    assert made["metadata"]["annotations"] == {f"{K}role-hash": "a9f06f3a"}
    assert made["spec"]["schedulingGates"] == [{"name": f"{K}admission"}]


def test_what_the_user_gave_is_kept_and_nothing_is_doubled() -> None:
    before = a_pod({**Q, "app": "x"}, {f"{K}role-hash": "leader"}, schedulingGates=[{"name": "mine"}])
    before["metadata"]["finalizers"] = ["other"]
    once = defaulted(POD_KIND, before, FACTS)
    assert once["metadata"]["annotations"] == {f"{K}role-hash": "leader"}
    assert once["metadata"]["finalizers"] == ["other", f"{K}managed"]
    assert [gate["name"] for gate in once["spec"]["schedulingGates"]] == ["mine", f"{K}admission"]
    assert POD_KIND.defaults(once, FACTS) == ()


@pytest.mark.parametrize(
    ("pod", "facts", "queue"),
    [
        pytest.param(a_pod(), FACTS, None, id="no queue, none by default: untouched"),
        pytest.param(a_pod(), DEFAULT, "default", id="the LocalQueue default"),
        pytest.param(a_pod(Q), DEFAULT, "q", id="the queue given is kept"),
        pytest.param(a_pod(Q), WebhookFacts(namespace_selected=False), None, id="the namespace is not selected"),
        pytest.param(a_pod(Q), WebhookFacts(owner_managed=True), None, id="the owner is queued"),
        pytest.param(a_pod(Q), WebhookFacts(by_agent=True), None, id="an agent made it"),
        pytest.param(a_pod(), WebhookFacts(manage_without_queue=True), "", id="everything is managed"),
    ],
)
def test_a_pod_is_taken_over_by(pod: Json, facts: WebhookFacts, queue: str | None) -> None:
    operations = POD_KIND.defaults(pod, facts)
    assert (queue is None) is (operations == ())
    if queue is not None:
        made = defaulted(POD_KIND, pod, facts)
        assert made["metadata"]["labels"].get(f"{K}queue-name", "") == queue
        assert made["spec"]["schedulingGates"]


def test_a_pod_with_a_suspending_parent_gets_gate_and_hash_only() -> None:
    pod = a_pod(None, {f"{K}pod-suspending-parent": "statefulset"})
    made = defaulted(POD_KIND, pod, WebhookFacts(namespace_selected=False))
    assert made["spec"]["schedulingGates"] == [{"name": f"{K}admission"}]
    assert f"{K}role-hash" in made["metadata"]["annotations"]
    assert made["metadata"].keys() == {"name", "annotations"}


@pytest.mark.parametrize(
    ("labels", "facts", "expected"),
    [
        pytest.param(Q, CLASS, "default", id="the class default exists"),
        pytest.param({**Q, f"{K}priority-class": "high"}, CLASS, "high", id="the class given is kept"),
        pytest.param(Q, FACTS, None, id="no such class"),
    ],
)
def test_the_priority_class_is(labels: Json, facts: WebhookFacts, expected: str | None) -> None:
    for kind, document in ((POD_KIND, a_pod(labels)), (JOB_KIND, a_job(labels))):
        assert defaulted(kind, document, facts)["metadata"]["labels"].get(f"{K}priority-class") == expected


# --- defaults of Jobs ---


@pytest.mark.parametrize(
    ("job", "facts", "suspend", "managed_by"),
    [
        pytest.param(a_job(Q), FACTS, True, None, id="queued: suspended"),
        pytest.param(a_job(Q), ELSEWHERE, True, f"{K}multikueue", id="a MultiKueue queue: run elsewhere"),
        pytest.param(a_job(Q, managedBy="x/y"), ELSEWHERE, True, "x/y", id="the user's managedBy is kept"),
        pytest.param(a_job(Q), WebhookFacts(), True, None, id="the queue does not exist yet"),
        pytest.param(a_job(), FACTS, None, None, id="no queue"),
        pytest.param(a_job(), DEFAULT, True, None, id="the default queue"),
        pytest.param(a_job(), WebhookFacts(manage_without_queue=True), True, None, id="everything is managed"),
        pytest.param(a_job(Q), WebhookFacts(owner_managed=True), True, None, id="HD-156: whoever owns it"),
        pytest.param(
            a_job(),
            WebhookFacts(owner_managed=True, manage_without_queue=True),
            True,
            None,
            id="HD-156: whoever owns it, where everything is managed",
        ),
        pytest.param(a_job(Q), WebhookFacts(namespace_selected=False), None, None, id="namespace not selected"),
        pytest.param(a_job(Q), WebhookFacts(by_agent=True), None, None, id="an agent made it"),
    ],
)
def test_a_job_is_taken_over_by(job: Json, facts: WebhookFacts, suspend: bool | None, managed_by: str | None) -> None:
    spec = defaulted(JOB_KIND, job, facts)["spec"]
    assert (spec.get("suspend"), spec.get("managedBy")) == (suspend, managed_by)


# --- creation ---

CREATED = [
    ("a queue's name that is none", {f"{K}queue-name": "Q_"}, {}, 'metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "Q_": must be a DNS subdomain'),
    ("an empty queue's name", {f"{K}queue-name": ""}, {}, "metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value"),
    ("an execution limit that is no number", {**Q, f"{K}max-exec-time-seconds": "x"}, {}, 'metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: Invalid value: "x": must be a whole number of seconds above 0'),
    ("an execution limit of 0", {**Q, f"{K}max-exec-time-seconds": "0"}, {}, "must be a whole number of seconds above 0"),
    ("a prebuilt Workload", {**Q, f"{K}prebuilt-workload-name": "w"}, {}, "metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]: Forbidden: prebuilt Workloads are not served but for groups"),
    ("an admission gate without a domain", Q, {f"{K}admission-gated-by": "x"}, "metadata.annotations[kueue.x-k8s.io/admission-gated-by]: Invalid value"),
    ("an admission gate twice", Q, {f"{K}admission-gated-by": "a.b/c,a.b/c"}, "is named twice"),
    ("an empty admission gate", Q, {f"{K}admission-gated-by": "a.b/c,,a.b/d"}, "holds an empty item"),
    ("a space after the comma", Q, {f"{K}admission-gated-by": "a.b/c, a.b/d"}, "without spaces"),
    ("an admission gate that is too long", Q, {f"{K}admission-gated-by": "a.b/" + "c" * 60}, "at most 63 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "text"), [pytest.param(*row[1:], id=row[0]) for row in CREATED])
@pytest.mark.parametrize("kind", [POD_KIND, JOB_KIND], ids=["Pod", "Job"])
def test_a_new_object_is_refused_with(kind: Any, labels: Json, notes: Json, text: str) -> None:
    document = (a_pod if kind is POD_KIND else a_job)(labels, notes)
    verdict = kind.validate_create(document, FACTS)
    assert not verdict.allowed
    assert any(text in line for line in told(verdict))
    assert all("\n" not in line for line in told(verdict))


@pytest.mark.parametrize(
    ("labels", "notes"),
    [
        pytest.param(Q, None, id="a queue"),
        pytest.param({**Q, f"{K}max-exec-time-seconds": "60"}, None, id="an execution limit"),
        pytest.param(Q, {f"{K}admission-gated-by": "a.b/c,d.e/f"}, id="admission gates"),
        pytest.param(Q, {f"{K}admission-gated-by": ""}, id="an empty list of gates"),
        pytest.param(None, None, id="no labels at all"),
    ],
)
def test_a_new_object_is_allowed_with(labels: Json | None, notes: Json | None) -> None:
    assert POD_KIND.validate_create(a_pod(labels, notes), FACTS).allowed
    assert JOB_KIND.validate_create(a_job(labels, notes), FACTS).allowed


@pytest.mark.parametrize("seconds", ["9" * 60, "2147483648"])
def test_hd_114_an_execution_limit_that_no_workload_can_hold_is_refused_with_its_field(seconds: str) -> None:
    verdict = JOB_KIND.validate_create(a_job({**Q, f"{K}max-exec-time-seconds": seconds}), FACTS)
    assert not verdict.allowed
    (line,) = told(verdict)
    assert line.startswith("metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: ")
    assert line.endswith("must be a whole number of seconds above 0, at most 2147483647")


GROUPS = [
    ("a group without its size", {f"{K}pod-group-name": "g"}, {}, ErrorKind.REQUIRED, "pod-group-total-count]"),
    ("a size without a group", {}, {f"{K}pod-group-total-count": "2"}, ErrorKind.REQUIRED, "pod-group-name]"),
    ("a size of 0", {f"{K}pod-group-name": "g"}, {f"{K}pod-group-total-count": "0"}, ErrorKind.INVALID, "above 0"),
    ("an empty size", {f"{K}pod-group-name": "g"}, {f"{K}pod-group-total-count": ""}, ErrorKind.INVALID, "above 0"),
    ("a group's name that is none", {f"{K}pod-group-name": "G_"}, {f"{K}pod-group-total-count": "1"}, ErrorKind.INVALID, "DNS subdomain"),
    ("a prebuilt name unlike the group's", {f"{K}pod-group-name": "g", f"{K}prebuilt-workload-name": "w"}, {f"{K}pod-group-total-count": "1"}, ErrorKind.INVALID, "must be equal"),
    ("the managed label with another value", {f"{K}managed": "false"}, {}, ErrorKind.FORBIDDEN, "may only be `true`"),
    ("an elastic pod", {}, {f"{K}elastic-job": "true"}, ErrorKind.FORBIDDEN, "is not supported for pods"),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "kind", "text"), [pytest.param(*row[1:], id=row[0]) for row in GROUPS])
def test_a_new_pod_is_refused_with(labels: Json, notes: Json, kind: ErrorKind, text: str) -> None:
    verdict = POD_KIND.validate_create(a_pod({**Q, **labels}, notes), FACTS)
    assert any(error.kind is kind and text in str(error) for error in verdict.errors)


def test_a_label_that_disagrees_with_the_group_annotation_is_ignored() -> None:
    pod = a_pod({f"{K}pod-group-name": "G_"}, {f"{K}pod-group-name": "g", f"{K}pod-group-total-count": "1"})
    assert POD_KIND.validate_create(pod, FACTS).errors == ()


def test_the_managed_label_under_a_queued_owner_is_refused() -> None:
    verdict = POD_KIND.validate_create(a_pod({f"{K}managed": "true"}), WebhookFacts(owner_managed=True))
    assert not verdict.allowed


# --- changes ---

WAITING: Json = {"suspend": True}
RUNNING: Json = {"suspend": False}
MANY: Json = {"parallelism": 4, "completions": 4}
CHANGES = [
    ("a queue named while waiting", {}, Q, WAITING, FACTS, True),
    ("a queue named while running", {}, Q, RUNNING, FACTS, False),
    ("another queue while waiting", Q, {f"{K}queue-name": "r"}, WAITING, FACTS, True),
    ("another queue while running", Q, {f"{K}queue-name": "r"}, RUNNING, FACTS, False),
    ("a bad queue while waiting", Q, {f"{K}queue-name": "R_"}, WAITING, FACTS, False),
    ("the queue removed while waiting", Q, {}, WAITING, FACTS, True),
    ("the queue removed where there is a default one", Q, {}, WAITING, DEFAULT, False),
    ("a class given while waiting", Q, {**Q, f"{K}priority-class": "a"}, WAITING, FACTS, True),
    ("a class given while running", Q, {**Q, f"{K}priority-class": "a"}, RUNNING, FACTS, False),
    ("a class changed while running", {**Q, f"{K}priority-class": "a"}, {**Q, f"{K}priority-class": "b"}, RUNNING, FACTS, True),
    ("a class removed while waiting", {**Q, f"{K}priority-class": "a"}, Q, WAITING, FACTS, False),
    ("a class removed while running", {**Q, f"{K}priority-class": "a"}, Q, RUNNING, FACTS, False),
    ("the limit changed while waiting", Q, {**Q, f"{K}max-exec-time-seconds": "5"}, WAITING, FACTS, True),
    ("the limit changed while running", Q, {**Q, f"{K}max-exec-time-seconds": "5"}, RUNNING, FACTS, False),
    ("a bad limit while waiting", Q, {**Q, f"{K}max-exec-time-seconds": "0"}, WAITING, FACTS, False),
    ("a prebuilt name changed while running", {**Q, f"{K}prebuilt-workload-name": "a"}, {**Q, f"{K}prebuilt-workload-name": "b"}, RUNNING, FACTS, False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "spec", "facts", "allowed"), [pytest.param(*row[1:], id=row[0]) for row in CHANGES]
)
def test_of_a_job(before: Json, after: Json, spec: Json, facts: WebhookFacts, allowed: bool) -> None:
    verdict = JOB_KIND.validate_update(a_job(before, **spec), a_job(after, **spec), facts)
    assert verdict.allowed is allowed, told(verdict)


@pytest.mark.parametrize(
    ("before", "after", "spec", "facts", "allowed"), [pytest.param(*row[1:], id=row[0]) for row in CHANGES]
)
def test_of_a_pod(before: Json, after: Json, spec: Json, facts: WebhookFacts, allowed: bool) -> None:
    gates = GATED if spec is WAITING else {}
    verdict = POD_KIND.validate_update(a_pod(before, **gates), a_pod(after, **gates), facts)
    assert verdict.allowed is allowed, told(verdict)


def test_a_limit_cannot_be_changed_while_the_job_is_let_go() -> None:
    after = a_job({**Q, f"{K}max-exec-time-seconds": "5"}, **RUNNING)
    assert not JOB_KIND.validate_update(a_job(Q, **WAITING), after, FACTS).allowed


GATES = f"{K}admission-gated-by"
NOTES = [
    ("an admission gate added later", {}, {GATES: "a.b/c"}, False),
    ("an admission gate removed", {GATES: "a.b/c,a.b/d"}, {GATES: "a.b/d"}, True),
    ("all admission gates removed", {GATES: "a.b/c"}, {}, True),
    ("admission gates in another order", {GATES: "a.b/c,a.b/d"}, {GATES: "a.b/d,a.b/c"}, True),
    ("one exchanged for another", {GATES: "a.b/c"}, {GATES: "a.b/x"}, False),
    ("elastic switched on", {}, {f"{K}elastic-job": "true"}, False),
    ("elastic switched off", {f"{K}elastic-job": "true"}, {}, False),
]


@pytest.mark.parametrize(("before", "after", "allowed"), [pytest.param(*row[1:], id=row[0]) for row in NOTES])
def test_a_change_of_annotations(before: Json, after: Json, allowed: bool) -> None:
    verdict = JOB_KIND.validate_update(a_job(Q, before, **WAITING), a_job(Q, after, **WAITING), FACTS)
    assert verdict.allowed is allowed, told(verdict)


MEMBERS: list[tuple[str, Json, Json, Json, Json, bool]] = [
    ("an unretriable member made retriable", {}, {f"{K}retriable-in-group": "false"}, {}, {f"{K}retriable-in-group": "true"}, False),
    ("the unretriable mark removed", {}, {f"{K}retriable-in-group": "false"}, {}, {}, False),
    ("a member made unretriable", {}, {}, {}, {f"{K}retriable-in-group": "false"}, True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "notes", "labels_after", "notes_after", "allowed"), [pytest.param(*row[1:], id=row[0]) for row in MEMBERS]
)  # fmt: skip
def test_a_change_of_group(labels: Json, notes: Json, labels_after: Json, notes_after: Json, allowed: bool) -> None:
    before = a_pod({**Q, **labels}, notes, **GATED)
    verdict = pod_rules.validate_update(before, a_pod({**Q, **labels_after}, notes_after, **GATED), FACTS)
    assert verdict.allowed is allowed, told(verdict)


# --- partial admission ---

MIN, SYNC = f"{K}job-min-parallelism", f"{K}job-completions-equal-parallelism"
PARTIAL = [
    ("a minimum below the count", {MIN: "2"}, MANY, True),
    ("a minimum that is no number", {MIN: "x"}, MANY, False),
    ("a minimum of 0", {MIN: "0"}, MANY, False),
    ("a minimum as large as the count", {MIN: "4"}, MANY, False),
    ("a minimum on an elastic Job", {MIN: "2", f"{K}elastic-job": "true"}, MANY, False),
    ("synchronous completions", {SYNC: "true"}, {**MANY, "completionMode": "Indexed"}, True),
    ("synchronous completions switched off", {SYNC: "false"}, MANY, True),
    ("synchronous completions that are no boolean", {SYNC: "x"}, MANY, False),
    ("synchronous completions of a Job without indexes", {SYNC: "true"}, MANY, False),
    ("synchronous completions unlike the parallelism", {SYNC: "true"}, {**MANY, "completions": 9, "completionMode": "Indexed"}, False),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "spec", "allowed"), [pytest.param(*row[1:], id=row[0]) for row in PARTIAL])
def test_a_job_with(notes: Json, spec: Json, allowed: bool) -> None:
    verdict = JOB_KIND.validate_create(a_job(Q, notes, suspend=True, **spec), FACTS)
    assert verdict.allowed is allowed, told(verdict)


@pytest.mark.parametrize(
    ("old", "new", "state", "allowed"),
    [
        pytest.param({MIN: "2"}, {MIN: "3"}, WAITING, True, id="the minimum while waiting"),
        pytest.param({SYNC: "false"}, {SYNC: "true"}, RUNNING, False, id="synchronous completions while running"),
        pytest.param({SYNC: "false"}, {SYNC: "true"}, WAITING, True, id="synchronous completions while waiting"),
    ],
)
def test_a_partially_admitted_jobs_annotations_change(old: Json, new: Json, state: Json, allowed: bool) -> None:
    spec = {**MANY, **state, "completionMode": "Indexed"}
    verdict = JOB_KIND.validate_update(a_job(Q, old, **spec), a_job(Q, new, **spec), FACTS)
    assert verdict.allowed is allowed, told(verdict)


@pytest.mark.parametrize(("state", "allowed"), [(RUNNING, False), (WAITING, True)], ids=["running", "waiting"])
def test_the_parallelism_of_a_partially_admitted_job_changes_only_while_it_waits(state: Json, allowed: bool) -> None:
    before = a_job(Q, {MIN: "1"}, **MANY, **state)
    after = a_job(Q, {MIN: "1"}, **{**MANY, "parallelism": 3}, **state)
    assert JOB_KIND.validate_update(before, after, FACTS).allowed is allowed


# --- a Job that its user starts or resizes ---

BY_US = WebhookFacts(local_queues={"q": False}, by_agent=True)
ELSEWHERE_MANAGED = WebhookFacts(local_queues={"q": False}, namespace_selected=False)
DONE: Json = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}


@pytest.mark.parametrize(
    ("old", "new", "facts", "put_back"),
    [
        pytest.param(a_job(Q, suspend=True), a_job(Q, suspend=False), FACTS, True, id="its user starts it"),
        pytest.param(a_job(Q, suspend=True), a_job(Q), FACTS, True, id="the field is taken away"),
        pytest.param(a_job(suspend=True), a_job(Q, suspend=False), FACTS, True, id="it is queued and started at once"),
        pytest.param(a_job(Q, suspend=True), a_job(suspend=False), FACTS, True, id="it is taken out and started"),
        pytest.param(a_job(Q, suspend=True), a_job(Q, suspend=False), BY_US, False, id="we start it"),
        pytest.param(a_job(Q, suspend=False), a_job(Q, suspend=False), FACTS, False, id="it runs"),
        pytest.param(a_job(Q, suspend=False), a_job(Q, suspend=True), FACTS, False, id="its user stops it"),
        pytest.param(a_job(Q, suspend=True), a_job(Q, suspend=True), FACTS, False, id="something else changes"),
        pytest.param(a_job(suspend=True), a_job(suspend=False), FACTS, False, id="it is in no queue"),
        pytest.param(a_job(Q, suspend=True), a_job(Q, suspend=False), ELSEWHERE_MANAGED, False, id="another namespace"),
        pytest.param({**a_job(Q, suspend=True), **DONE}, a_job(Q, suspend=False), FACTS, False, id="it is over"),
        pytest.param(
            a_job(Q, suspend=True, managedBy="example.com/x"),
            a_job(Q, suspend=False, managedBy="example.com/x"),
            FACTS,
            False,
            id="another controller's",
        ),
    ],
)
def test_hd_1_a_waiting_job_stays_suspended_and_its_user_is_told(
    old: Json, new: Json, facts: WebhookFacts, put_back: bool
) -> None:
    correction = JOB_KIND.corrected(old, new, facts)
    after = json_patch(json.loads(json.dumps(new)), list(correction.operations))
    assert (after["spec"].get("suspend") is True) is (put_back or new["spec"].get("suspend") is True)
    assert bool(correction.warnings) is put_back
    assert all(len(text) <= 256 and "gatelift explain" in text for text in correction.warnings)


def test_hd_1_a_queues_name_given_to_a_running_job_is_refused() -> None:
    verdict = JOB_KIND.validate_update(a_job(suspend=False), a_job(Q, suspend=False), FACTS)
    (text,) = told(verdict)
    assert text.startswith(
        'metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "q": is immutable while the object'
    )


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        pytest.param(
            {"parallelism": 1, "completions": 9}, {"parallelism": 6, "completions": 9}, "parallelism", id="up"
        ),
        pytest.param({}, {"parallelism": 2}, "parallelism", id="from the default"),
        pytest.param(
            {"parallelism": 6, "completions": 2}, {"parallelism": 6, "completions": 4}, "completions", id="more to do"
        ),
        pytest.param(
            {"parallelism": 2, "completions": 2}, {"parallelism": 4, "completions": 4}, "parallelism", id="both"
        ),
    ],
)
def test_hd_2_growth_of_a_running_job_is_refused_with_the_way_out(before: Json, after: Json, field: str) -> None:
    verdict = JOB_KIND.validate_update(a_job(Q, **before, **RUNNING), a_job(Q, **after, **RUNNING), FACTS)
    (text,) = told(verdict)
    assert text.startswith(f"spec.{field}: Invalid value: ")
    assert "suspend it first, and it is queued again with its new size; or make a new Job" in text


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        pytest.param(
            {"parallelism": 9, "completions": 2}, {"parallelism": 20, "completions": 2}, FACTS, id="no more at once"
        ),
        pytest.param({"parallelism": 1, "completions": 9}, {"parallelism": 6, "completions": 9}, BY_US, id="by us"),
        pytest.param({"parallelism": 2}, {"parallelism": 2, "backoffLimit": 1}, FACTS, id="something else"),
    ],
)
def test_hd_2_what_needs_no_more_quota_passes(before: Json, after: Json, facts: WebhookFacts) -> None:
    verdict = JOB_KIND.validate_update(a_job(Q, **before, **RUNNING), a_job(Q, **after, **RUNNING), facts)
    assert verdict.allowed, told(verdict)
    assert not verdict.warnings


def test_hd_2_a_job_that_is_suspended_or_not_queued_or_over_may_grow() -> None:
    small: Json = {"parallelism": 1}
    large: Json = {"parallelism": 6}
    for old, new in (
        (a_job(Q, **small, **WAITING), a_job(Q, **large, **WAITING)),
        (a_job(Q, **small, **RUNNING), a_job(Q, **large, **WAITING)),
        (a_job(**small, **RUNNING), a_job(**large, **RUNNING)),
        ({**a_job(Q, **small, **RUNNING), **DONE}, {**a_job(Q, **large, **RUNNING), **DONE}),
    ):
        assert JOB_KIND.validate_update(old, new, FACTS).allowed


def test_hd_2_who_shrinks_a_running_job_is_told_that_it_is_queued_again() -> None:
    before, after = a_job(Q, parallelism=6, **RUNNING), a_job(Q, parallelism=2, **RUNNING)
    verdict = JOB_KIND.validate_update(before, after, FACTS)
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert "stopped and queued again, with 2 instead of 6 pods at once" in warning


# --- devices that are claimed ---

CLAIMS = [{"name": "gpus", "resourceClaimTemplateName": "eight"}]


def test_hd_159_a_queued_pod_that_claims_devices_is_refused_with_the_way_out() -> None:
    pod = a_pod({**Q, f"{K}managed": "true"}, resourceClaims=CLAIMS)
    (error,) = POD_KIND.validate_create(pod, FACTS).errors
    assert error.path == "spec.resourceClaims"
    assert "ask for devices in the containers' resources, or do not queue it" in error.text


@pytest.mark.parametrize(
    ("pod", "facts"),
    [
        (a_pod(None, resourceClaims=CLAIMS), FACTS),
        (a_pod(Q, resourceClaims=CLAIMS), WebhookFacts(owner_managed=True)),
        (a_pod({**Q, f"{K}managed": "true"}), FACTS),
    ],
    ids=["it is not queued", "its owner is queued", "it claims nothing"],
)
def test_hd_159_another_is_not(pod: Json, facts: WebhookFacts) -> None:
    assert POD_KIND.validate_create(pod, facts).errors == ()


def test_hd_159_a_queued_job_whose_pods_claim_devices_is_refused_and_one_that_is_not_queued_is_not() -> None:
    for labels, refused in ((Q, ["spec.template.spec.resourceClaims"]), (None, [])):
        job = a_job(labels)
        job["spec"]["template"] = {"spec": {"resourceClaims": CLAIMS}}
        assert [error.path for error in JOB_KIND.validate_create(job, FACTS).errors] == refused


# --- a node by name ---


def test_is_40_a_job_that_another_cluster_runs_names_no_node_of_this_one() -> None:
    """It was dropped on the way there without a word, and the pods ran on another node."""
    for manager, refused in ((f"{K}multikueue", True), (None, False)):
        job = a_job(Q)
        job["spec"] |= {"template": {"spec": {"nodeName": "node-1"}}, **({"managedBy": manager} if manager else {})}
        errors = {error.path: error.text for error in JOB_KIND.validate_create(job, FACTS).errors}
        assert ("use nodeSelector or affinity" in errors.get("spec.template.spec.nodeName", "")) is refused
