"""Reviews in and out: any bytes get an answer, and no object can break the daemon."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift.webhooks import review
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared.review import ErrorKind, FieldError, Verdict, WebhookFacts

Json = dict[str, Any]
FACTS = WebhookFacts(local_queues={"default": True}, default_priority_class=True)


def a_review(kind: str = "Pod", **request: Any) -> bytes:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "u", "operation": "CREATE", "kind": {"kind": kind}, "namespace": "ns", **request},
    }
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("kind", "document", "path"),
    [
        pytest.param("Pod", {"metadata": []}, "$.metadata", id="metadata is a list"),
        pytest.param("Pod", {"metadata": {"labels": {"a": 1}}}, "$.metadata.labels", id="a label is a number"),
        pytest.param("Pod", {"spec": {"schedulingGates": "g"}}, "$.spec.schedulingGates", id="gates are a text"),
        pytest.param("Pod", {"spec": {"containers": [[]]}}, "$.spec.containers[0]", id="a container is a list"),
        pytest.param("Job", {"spec": {"suspend": "yes"}}, "$.spec.suspend", id="suspend is a text"),
        pytest.param("Job", {"spec": {"parallelism": "2"}}, "$.spec.parallelism", id="parallelism is a text"),
    ],
)
def test_an_object_with_a_wrong_type_is_refused_with_the_path(kind: str, document: Json, path: str) -> None:
    question = review.read(a_review(kind, object=document))
    answer = json.loads(review.malformed(question))["response"]
    assert answer["allowed"] is False
    assert path in answer["status"]["message"]


def test_the_old_object_is_checked_too() -> None:
    assert review.read(a_review(object={}, oldObject={"metadata": {"labels": []}})).problem


def test_a_patch_goes_out_as_base64() -> None:
    response = json.loads(review.allow("u", ({"op": "add", "path": "/x", "value": 1},)))["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u", True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/x", "value": 1}]


def test_no_defaults_are_no_patch() -> None:
    assert json.loads(review.allow("u"))["response"] == {"uid": "u", "allowed": True}


@pytest.mark.parametrize(
    ("kinds", "code", "reason"),
    [
        pytest.param((ErrorKind.FORBIDDEN,), 403, "Forbidden", id="only what may not be"),
        pytest.param((ErrorKind.FORBIDDEN, ErrorKind.INVALID), 422, "Invalid", id="a bad value besides"),
        pytest.param((ErrorKind.REQUIRED,), 422, "Invalid", id="something missing"),
    ],
)
def test_a_refusal_carries_all_errors_in_one_line(kinds: tuple[ErrorKind, ...], code: int, reason: str) -> None:
    errors = tuple(FieldError(kind=kind, path="a.b", text="do this", value="v") for kind in kinds)
    status = json.loads(review.deny("u", Verdict(errors=errors)))["response"]["status"]
    assert (status["code"], status["reason"]) == (code, reason)
    assert status["message"].count("a.b: ") == len(kinds)
    assert "\n" not in status["message"]


def test_long_refusals_and_many_warnings_are_cut() -> None:
    errors = (FieldError(kind=ErrorKind.FORBIDDEN, path="a", text="x" * 10_000),)
    response = json.loads(review.deny("u", Verdict(errors=errors, warnings=("w" * 1000,) * 50)))["response"]
    assert len(response["status"]["message"]) == review.MESSAGE_CHARS_MAX
    assert len(response["warnings"]) == review.WARNINGS_MAX
    assert {len(text) for text in response["warnings"]} == {review.WARNING_CHARS_MAX}


def test_our_own_service_accounts_are_known_by_their_group() -> None:
    groups = ["system:serviceaccounts", "system:serviceaccounts:gatelift-system"]
    question = review.read(a_review(userInfo={"username": "x", "groups": groups}))
    assert question.asked_by_gatelift("gatelift-system")
    assert not question.asked_by_gatelift("elsewhere")
    assert not review.read(a_review(userInfo={"groups": None})).asked_by_gatelift("gatelift-system")


_WORDS = (
    "queue-name",
    "managed",
    "pod-group-name",
    "pod-group-total-count",
    "max-exec-time-seconds",
    "admission",
    "job-min-parallelism",
    "admission-gated-by",
    "job-completions-equal-parallelism",
    "pod-suspending-parent",
    "priority-class",
)
_TEXTS = st.sampled_from(["", "a", "q", "true", "1", "labels", "name", *(f"kueue.x-k8s.io/{word}" for word in _WORDS)])
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)
_MARKS = st.none() | st.dictionaries(_TEXTS, _TEXTS, max_size=4) | _ANY
_OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": _ANY
        | st.fixed_dictionaries({}, optional={"labels": _MARKS, "annotations": _MARKS, "finalizers": _ANY}),
        "spec": _ANY
        | st.fixed_dictionaries(
            {},
            optional={
                "schedulingGates": _ANY,
                "containers": _ANY,
                "suspend": _ANY,
                "parallelism": _ANY,
                "completions": _ANY,
                "managedBy": _ANY,
                "completionMode": _ANY,
            },
        ),
        "status": _ANY,
    },
)


@settings(max_examples=300, deadline=None)
@given(kind=st.sampled_from([POD_KIND, JOB_KIND]), new=_OBJECTS, old=_OBJECTS)
def test_whatever_the_object_holds_there_is_an_answer(kind: Kind[Any], new: Json, old: Json) -> None:
    question = review.read(a_review(kind.resource.kind, object=new, oldObject=old))
    if question.problem:
        assert json.loads(review.malformed(question))["response"]["allowed"] is False
        return
    operations = kind.defaults(question.new, FACTS)
    assert json.loads(review.allow(question.uid, operations))["response"]["allowed"] is True
    for verdict in (
        kind.validate_create(question.new, FACTS),
        kind.validate_update(question.old, question.new, FACTS),
    ):
        assert verdict.allowed or json.loads(review.deny("u", verdict))["response"]["allowed"] is False
