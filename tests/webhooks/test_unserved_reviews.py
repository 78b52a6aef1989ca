"""What makes pods, as a review brings it: the parts that the rule looks at have their types, or are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift.webhooks import review
from gatelift_kinds.shared import unserved


@pytest.mark.parametrize("kind", [each.kind for each in unserved.BUILT_IN])
@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": "x"},
        {"spec": {"template": {"metadata": "x"}}},
        {"spec": {"jobTemplate": {"metadata": {"labels": []}}}},
        {"spec": {"jobTemplate": {"spec": {"template": 1}}}},
    ],
    ids=str,
)
def test_parts_of_other_types_are_named(kind: str, document: dict[str, Any]) -> None:
    request = {"uid": "u", "operation": "CREATE", "kind": {"kind": kind}, "object": document}
    asked = {"apiVersion": review.API_VERSION, "kind": "AdmissionReview", "request": request}
    question = review.read(msgspec.json.encode(asked))
    assert "give the field the type that the API says" in question.problem
