"""What both webhooks take for a question: any other bytes are refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gatelift.webhooks import conversion, review
from gatelift.webhooks.envelope import BadReviewError

ADMISSION = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "ns"},
}
CONVERSION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "ConversionReview",
    "request": {"uid": "u", "desiredAPIVersion": conversion.NEW, "objects": []},
}


@pytest.fixture(params=["admission", "conversion"])
def whose(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Callable[[bytes], object]]:
    return {"admission": (ADMISSION, review.read), "conversion": (CONVERSION, conversion.answer)}[request.param]


Whose = tuple[dict[str, Any], Callable[[bytes], object]]


def test_a_question_is_opened(whose: Whose) -> None:
    document, read = whose
    assert read(json.dumps(document).encode())


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"apiVersion": "v1beta1"}, id="another version"),
        pytest.param({"kind": "Pod"}, id="another kind"),
        pytest.param({"kind": None}, id="no kind"),
        pytest.param({"request": None}, id="no request"),
        pytest.param({"request": {"uid": 1}}, id="a request of another shape"),
        pytest.param({"request": {"uid": "u", "operation": "CREATE", "object": [], "objects": {}}}, id="wrong objects"),
    ],
)
def test_a_document_that_is_no_question_is_told_in_one_line(whose: Whose, change: dict[str, Any]) -> None:
    document, read = whose
    with pytest.raises(BadReviewError) as caught:
        read(json.dumps({**document, **change}).encode())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not JSON", id="no JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"{}", id="an empty object"),
        pytest.param(b'{"a":' * 5000 + b"1" + b"}" * 5000, id="very deep JSON"),
        pytest.param(b"\xff\xfe", id="no UTF-8"),
    ],
)
def test_bytes_that_are_no_question_are_told_in_one_line(whose: Whose, body: bytes) -> None:
    with pytest.raises(BadReviewError) as caught:
        whose[1](body)
    assert "\n" not in str(caught.value)


def test_another_version_is_told_which_one_to_send() -> None:
    body = json.dumps({**ADMISSION, "apiVersion": "admission.k8s.io/v1beta1"}).encode()
    with pytest.raises(BadReviewError, match=r"v1beta1 AdmissionReview is not understood: send admission.k8s.io/v1 "):
        review.read(body)
