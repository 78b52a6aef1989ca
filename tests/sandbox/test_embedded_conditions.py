"""The subset of CEL in which matchConditions are understood."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_sandbox.embedded.conditions import holds

VARIABLES: dict[str, Any] = {
    "object": {
        "metadata": {"name": "a", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"suspend": True, "gates": [{"name": "g"}]},
    },
    "oldObject": None,
    "request": {"namespace": "team", "operation": "CREATE", "userInfo": {"username": "system:serviceaccount:ns:agent"}},
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", True),
        ("false", False),
        ("request.operation == 'CREATE'", True),
        ("request.operation != 'CREATE'", False),
        ('request.namespace in ["kube-system", "team"]', True),
        ("!(request.namespace in ['kube-system'])", True),
        ("has(object.metadata.labels)", True),
        ("has(object.metadata.annotations)", False),
        ("'kueue.x-k8s.io/queue-name' in object.metadata.labels", True),
        ("object.metadata.labels['kueue.x-k8s.io/queue-name'] == 'q'", True),
        ("has(object.metadata.annotations) && 'x' in object.metadata.annotations", False),
        ("!has(object.metadata.annotations) || object.metadata.annotations['x'] == 'y'", True),
        ("request.userInfo.username.startsWith('system:serviceaccount:ns:')", True),
        ("request.userInfo.username.endsWith('other')", False),
        ("size(object.spec.gates) == 1 && object.spec.gates[0].name == 'g'", True),
        ("object.spec.suspend == true && oldObject == null", True),
        ("object.spec.suspend", True),
    ],
)
def test_a_condition_is_evaluated(expression: str, expected: bool) -> None:
    assert holds(expression, VARIABLES) is expected


@pytest.mark.parametrize(
    "expression",
    ["object.spec.gates.all(g, g.name == 'g')", "object.spec.suspend ? false : false", "1 + 1 == 3", "", "(" * 200],
)
def test_what_is_not_understood_counts_as_true(expression: str) -> None:
    assert holds(expression, VARIABLES)


def test_a_missing_field_counts_as_true_unless_the_other_side_settles_it() -> None:
    assert holds("object.spec.nothing == 1", VARIABLES)
    assert not holds("object.spec.nothing == 1 && false", VARIABLES)


@pytest.mark.parametrize(
    ("expression", "true"),
    [
        ("size(object.items) > 1", True),
        ("size(object.items) > 2", False),
        ("object.items.exists(c, has(c.a) && c.a == 'x')", True),
        ("object.items.exists(c, has(c.a) && size(c.a) > 1)", False),
        ("object.none.exists(c, c.a == 'x')", False),
        ("object.items.exists(c)", True),  # beyond the subset: asked
    ],
)
def test_numbers_are_compared_and_lists_looked_through(expression: str, *, true: bool) -> None:
    variables = {"object": {"items": [{"a": "x"}, {"b": "y"}], "none": []}}
    assert holds(expression, variables) is true
