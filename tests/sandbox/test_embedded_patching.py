"""Patches as values: the corners that the contract suite does not reach."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_sandbox.embedded.documents import copied
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.patching import json_patch, merge, strategic


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_follows_rfc_7386(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/l/1", "value": 9}], {"l": [1, 9, 2], "m": {"a/b": 1, "c~d": 2}}),
        ([{"op": "add", "path": "/l/-", "value": 9}], {"l": [1, 2, 9], "m": {"a/b": 1, "c~d": 2}}),
        ([{"op": "remove", "path": "/l/0"}], {"l": [2], "m": {"a/b": 1, "c~d": 2}}),
        ([{"op": "replace", "path": "/m/a~1b", "value": 5}], {"l": [1, 2], "m": {"a/b": 5, "c~d": 2}}),
        ([{"op": "remove", "path": "/m/c~0d"}], {"l": [1, 2], "m": {"a/b": 1}}),
        ([{"op": "move", "from": "/l/0", "path": "/m/x"}], {"l": [2], "m": {"a/b": 1, "c~d": 2, "x": 1}}),
        ([{"op": "test", "path": "/none", "value": None}], {"l": [1, 2], "m": {"a/b": 1, "c~d": 2}}),
        ([{"op": "replace", "path": "", "value": {"new": 1}}], {"new": 1}),
    ],
)
def test_a_json_patch_follows_rfc_6902(operations: Any, expected: Any) -> None:
    assert json_patch({"l": [1, 2], "m": {"a/b": 1, "c~d": 2}}, operations) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "/no/such", "value": 1},
        {"op": "remove", "path": "/l/2"},
        {"op": "remove", "path": "/none"},
        {"op": "replace", "path": "/none", "value": 1},
        {"op": "move", "from": "/none", "path": "/x"},
        {"op": "test", "path": "/l/0", "value": True},
        {"op": "test", "path": "/l", "value": [2, 1]},
        {"op": "add", "path": "l", "value": 1},
        {"op": "add", "path": "/x"},
    ],
)
def test_an_operation_that_cannot_be_done_refuses_the_patch(operation: Any) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        json_patch({"l": [1, 2]}, [operation])
    assert refused.value.code == 422


@pytest.mark.parametrize("operations", [{}, ["x"], [{"op": "grow", "path": "/a"}]])
def test_what_is_no_json_patch_is_a_bad_request(operations: Any) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        json_patch({}, operations)
    assert refused.value.code == 400


def test_a_json_patch_has_at_most_ten_thousand_operations() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        json_patch({}, [{"op": "add", "path": "/a", "value": 1}] * 10_001)
    assert refused.value.code == 413


POD: dict[str, Any] = {
    "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}],
    "tolerations": [{"key": "t"}],
    "finalizers": ["one", "two"],
    "strategy": {"type": "Recreate", "old": 1},
}


@pytest.mark.parametrize(
    ("patch", "field", "expected"),
    [
        ({"containers": [{"name": "b", "$patch": "delete"}]}, "containers", [POD["containers"][0]]),
        ({"containers": [{"$patch": "replace"}, {"name": "c"}]}, "containers", [{"name": "c"}]),
        (
            {
                "containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}],
                "$setElementOrder/containers": [{"name": "a"}],
            },
            "containers",
            [
                {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                {"name": "b", "image": "1"},
            ],
        ),
        (
            {
                "containers": [{"name": "c"}],
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}],
            },
            "containers",
            [{"name": "c"}, *POD["containers"]],
        ),
        ({"tolerations": [{"key": "u"}]}, "tolerations", [{"key": "u"}]),
        ({"tolerations": None}, "tolerations", None),
        ({"$deleteFromPrimitiveList/finalizers": ["one"]}, "finalizers", ["two"]),
        ({"finalizers": ["two", "three"]}, "finalizers", ["one", "two", "three"]),
        ({"strategy": {"$retainKeys": ["type"], "type": "Rolling"}}, "strategy", {"type": "Rolling"}),
        ({"strategy": {"$patch": "replace", "new": 1}}, "strategy", {"new": 1}),
        ({"strategy": {"$patch": "delete"}}, "strategy", {}),
    ],
)
def test_a_strategic_patch_follows_its_directives(patch: Any, field: str, expected: Any) -> None:
    assert strategic(copied(POD), patch).get(field) == expected


def test_an_item_without_its_merge_key_is_a_bad_request() -> None:
    with pytest.raises(RequestRefusedError) as refused:
        strategic(copied(POD), {"containers": [{"image": "2"}]})
    assert "does not contain declared merge key: name" in refused.value.message
