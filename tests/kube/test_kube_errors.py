"""Answers of an API server as errors. The bodies were recorded from a real one (1.36)."""

from __future__ import annotations

import json

import pytest

from gatelift_kube.deciding import errors
from gatelift_kube.deciding.errors import from_status, write_error
from gatelift_kube.deciding.retry import Intent, RetryPolicy, delay, is_transient
from gatelift_kube.deciding.writes import WriteError

FAILED_JSON_TEST = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server rejected our request'
    ' due to an error in our request","reason":"Invalid","details":{},"code":422}'
)
OTHER_UID = (
    '{"kind":"Status","status":"Failure","message":"ConfigMap \\"x\\" is invalid: metadata.uid: Invalid value: '
    '\\"nope\\": field is immutable","reason":"Invalid","details":{"name":"x","kind":"ConfigMap","causes":[{"reason":'
    '"FieldValueInvalid","message":"Invalid value: \\"nope\\": field is immutable","field":"metadata.uid"}]},'
    '"code":422}'
)


def said(code: int, message: str, reason: str = "Forbidden", **details: object) -> errors.ApiError:
    body = {"kind": "Status", "message": message, "reason": reason, "details": details, "code": code}
    return from_status(code, json.dumps(body).encode())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, errors.InvalidError),
        (401, errors.UnauthorizedError),
        (403, errors.ForbiddenError),
        (404, errors.NotFoundError),
        (409, errors.ConflictError),
        (410, errors.GoneError),
        (413, errors.TooLargeError),
        (418, errors.ApiError),
        (422, errors.InvalidError),
        (429, errors.BusyError),
        (500, errors.ServerError),
        (504, errors.ServerError),
    ],
)
def test_each_status_has_its_error(code: int, expected: type[errors.ApiError]) -> None:
    error = from_status(code, b"not json")
    assert type(error) is expected
    assert str(error) == f"{code} HTTP{code}: not json"


@pytest.mark.parametrize("body", [FAILED_JSON_TEST, OTHER_UID])
def test_a_precondition_that_the_server_calls_invalid_is_a_conflict(body: str) -> None:
    assert isinstance(from_status(422, body.encode()), errors.ConflictError)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            said(422, "ValidatingAdmissionPolicy 'vap' with binding 'b' denied request: not this name", "Invalid"),
            WriteError.DENIED,
        ),
        (
            said(403, 'pods "q" is forbidden: error looking up service account t/nosa: account "nosa" not found'),
            WriteError.DENIED,
        ),
        (said(403, 'pods "q" is forbidden: failed quota: rq: must specify requests.cpu for: c'), WriteError.QUOTA),
        (said(404, 'pods "p" not found', "NotFound", kind="pods"), WriteError.NOT_FOUND),
        (said(404, 'namespaces "t" not found', "NotFound", kind="namespaces"), WriteError.NAMESPACE_MISSING),
        (said(500, "etcdserver: request is too large", "InternalError"), WriteError.TOO_LARGE),
        (said(500, "etcdserver: request timed out", "InternalError"), WriteError.UNKNOWN),
        (said(429, "slow down", "TooManyRequests"), WriteError.NOT_DONE),
        (said(500, 'failed calling webhook "w": refused', "InternalError"), WriteError.NOT_DONE),
        (said(401, "Unauthorized", "Unauthorized"), WriteError.NOT_DONE),
        (from_status(404, b"404 page not found"), WriteError.NOT_DONE),
        (from_status(404, b"<html>no such backend</html>"), WriteError.NOT_DONE),
        (from_status(422, FAILED_JSON_TEST.encode()), WriteError.PRECONDITION),
        (from_status(422, OTHER_UID.encode()), WriteError.PRECONDITION),
        (
            said(
                409,
                'Operation cannot be fulfilled on Pod "p": the UID in the precondition (a) does not match the UID in'
                " record (b). The object might have been deleted and then recreated",
                "Conflict",
            ),
            WriteError.PRECONDITION,
        ),
        (
            said(
                409,
                'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes to'
                " the latest version and try again",
                "Conflict",
            ),
            WriteError.CONFLICT,
        ),
        (said(409, 'admission webhook "w" denied the request: no', "Conflict"), WriteError.DENIED),
        (said(422, 'admission webhook "w" denied the request: metadata.uid', "Invalid"), WriteError.DENIED),
        (said(415, "unsupported media type", "UnsupportedMediaType"), WriteError.INVALID),
        (errors.TimedOutError("no answer"), WriteError.UNKNOWN),
        (errors.UnreachableError("refused", maybe_done=False), WriteError.NOT_DONE),
        (errors.UnreachableError("broke", maybe_done=True), WriteError.UNKNOWN),
    ],
)
def test_a_core_is_told_what_a_failure_means_for_it(error: errors.KubeError, expected: WriteError) -> None:
    assert write_error(error) is expected


def test_retry_after_is_taken_from_the_header_or_the_details() -> None:
    assert from_status(429, b"{}", "3").retry_after == 3
    assert said(429, "slow down", "TooManyRequests", retryAfterSeconds=2).retry_after == 2
    assert from_status(429, b"{}", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after is None


def test_a_long_text_of_a_webhook_is_cut() -> None:
    assert len(said(403, "x" * 100_000).message) == errors.MESSAGE_CHARS_MAX


def test_a_webhook_that_cannot_be_called_has_not_let_anything_through() -> None:
    assert said(500, 'failed calling webhook "w": refused', "InternalError").maybe_done is False
    assert said(500, "etcdserver: request timed out", "InternalError").maybe_done is True


POLICY = RetryPolicy(tries=3, first_seconds=1.0, max_seconds=4.0)


@pytest.mark.parametrize(
    ("error", "intent", "expected"),
    [
        (said(429, "busy"), Intent.ONCE, 1.0),
        (said(503, "down"), Intent.READ, 1.0),
        (said(503, "down"), Intent.CONDITIONAL, 1.0),
        (said(503, "down"), Intent.ONCE, None),
        (said(500, "failed calling webhook"), Intent.ONCE, 1.0),
        (said(501, "not implemented"), Intent.READ, None),
        (errors.TimedOutError("t"), Intent.READ, 1.0),
        (errors.TimedOutError("t"), Intent.ONCE, None),
        (errors.UnreachableError("refused", maybe_done=False), Intent.ONCE, 1.0),
        (errors.UnreachableError("broke", maybe_done=True), Intent.ONCE, None),
        (said(401, "token expired"), Intent.ONCE, 1.0),
        (said(409, "modified", "Conflict", kind="pods"), Intent.READ, None),
        (said(409, "modified", "Conflict", kind="resourcequotas"), Intent.ONCE, 1.0),
        (said(403, "no"), Intent.READ, None),
        (said(422, "no", "Invalid"), Intent.CONDITIONAL, None),
        (said(404, "no", "NotFound"), Intent.READ, None),
    ],
)
def test_only_what_does_no_harm_is_repeated(error: errors.KubeError, intent: Intent, expected: float | None) -> None:
    assert delay(error, tried=1, intent=intent, policy=POLICY, fraction=1.0) == expected


def test_delays_double_up_to_a_limit_and_tries_end() -> None:
    policy = RetryPolicy(tries=6, first_seconds=1.0, max_seconds=4.0)
    delays = [
        delay(said(429, "busy"), tried=tried, intent=Intent.READ, policy=policy, fraction=1.0) for tried in range(1, 7)
    ]
    assert delays == [1.0, 2.0, 4.0, 4.0, 4.0, None]
    assert delay(said(429, "busy"), tried=1, intent=Intent.READ, policy=policy, fraction=0.0) == 0.5


def test_the_server_says_how_long_to_wait_at_least_and_is_not_waited_for_for_ever() -> None:
    assert delay(from_status(429, b"{}", "3"), tried=1, intent=Intent.ONCE, policy=POLICY, fraction=0.0) == 3.0
    assert delay(from_status(429, b"{}", "3"), tried=1, intent=Intent.ONCE, policy=POLICY, fraction=1.0) == 3.75
    assert delay(from_status(429, b"{}", "60"), tried=1, intent=Intent.ONCE, policy=POLICY, fraction=0.0) is None


def test_a_refused_token_is_tried_once_more_only() -> None:
    error = said(401, "Unauthorized", "Unauthorized")
    assert is_transient(error)
    assert delay(error, tried=2, intent=Intent.READ, policy=POLICY, fraction=0.0) is None


def test_is_21_what_an_api_server_says_of_a_patch_is_told_without_the_object_that_it_quotes() -> None:
    """The log had every tenant's environment, and the reason behind it was cut off."""
    quoted = '{\\"spec\\":{\\"env\\":[{\\"name\\":\\"PASSWORD\\",\\"value\\":\\"hunter2: yes\\"}]}}' + "x" * 5000
    reason = 'parsing time "yesterday" as "2006-01-02": cannot parse'
    message = f' "" is invalid: patch: Invalid value: "{quoted}": {reason}'
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
    body = json.dumps({"reason": "Invalid", "message": message, "details": {"causes": causes}}).encode()
    error = from_status(422, body)
    for said in (str(error), error.causes[0].message):
        assert "hunter2" not in said
        assert reason in said
