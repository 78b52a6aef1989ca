"""Ages, printer columns and selectors in all their forms."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_sandbox.embedded import json_path
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.selection import parse_fields, parse_labels
from gatelift_sandbox.embedded.tables import age, duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (150, "2m30s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (5 * 3600 + 1800, "5h30m"),
        (47 * 3600, "47h"),
        (3 * 86_400, "3d"),
        (3 * 86_400 + 3600, "3d1h"),
        (30 * 86_400, "30d"),
        (3 * 365 * 86_400 + 86_400, "3y1d"),
        (10 * 365 * 86_400, "10y"),
    ],
)
def test_a_duration_is_shown_as_kubectl_does(seconds: int, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_missing_time_has_no_known_age() -> None:
    assert age(None, 0.0) == "<unknown>"
    assert age("nonsense", 0.0) == "<invalid>"


DOCUMENT: dict[str, Any] = {
    "metadata": {"labels": {"a.b/c": "d"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}], "n": 0},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".status.n", [0]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[-1].type", ["Other"]),
        (".status.conditions[*].type", ["Ready", "Other"]),
        ('.status.conditions[?(@.type=="Other")].status', ["False"]),
        (".status.conditions[?(@.type == 'Ready')].status", ["True"]),
        (r".metadata.labels.a\.b/c", ["d"]),
        (".metadata.labels['a.b/c']", ["d"]),
        (".status.none.deeper", []),
        (".status.conditions[9].type", []),
        ("{.not.understood}", []),
    ],
)
def test_a_path_finds_its_values(path: str, expected: list[Any]) -> None:
    assert json_path.find(DOCUMENT, path) == expected


@pytest.mark.parametrize("text", ["a=(b", "a in b", "=x", "a b"])
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(text: str) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


def test_a_field_selector_that_cannot_be_read_is_a_bad_request() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        parse_fields("metadata.name")
    assert refused.value.code == 400
