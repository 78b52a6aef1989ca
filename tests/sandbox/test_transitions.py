"""The transition rules that the simulated API server applies are those of the CRDs that are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift_sandbox.embedded.schema import Schema
from gatelift_sandbox.embedded.transitions import RULES, broken, transitions_of

Json = dict[str, Any]
CRDS = Path(__file__).parents[2] / "deploy" / "crds"
OF_WHOLE_WORKLOADS = {"podSets", "queueName", "priorityClassRef", "maximumExecutionTimeSeconds"}
"""What is immutable while quota is reserved: shown on a real server (`tests/e2e/test_deploy_rules.py`)."""


def rules(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        for name, part in schema.items():
            if name == "x-kubernetes-validations":
                yield from (each for each in part if "oldSelf" in each["rule"])
            else:
                yield from rules(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from rules(part)


def test_each_transition_rule_of_our_crds_is_applied_or_named_here() -> None:
    found = {
        each["rule"]: each["message"]
        for path in CRDS.glob("*.yaml")
        for each in rules(yaml.safe_load(path.read_text()))
    }
    left = {message.split()[0] for rule, message in found.items() if rule not in RULES}
    assert left == OF_WHOLE_WORKLOADS
    assert found.keys() & RULES.keys() == RULES.keys() - {"self >= oldSelf"}


def test_no_rule_keeps_gatelift_from_writing_its_own_numbers_over_an_edit() -> None:
    """HD-225, HD-226: of a WorkerCluster only `revoked` is kept by the CRD, which no status has."""
    document = yaml.safe_load((CRDS / "gatelift.dev_workerclusters.yaml").read_text())
    (version,) = document["spec"]["versions"]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert list(rules(properties["status"])) == []
    assert [each["message"].split()[0] for each in rules(properties["spec"])] == ["revoked"]


def of(rule: str, kind: str = "integer") -> Schema:
    field: Json = {"type": kind, "x-kubernetes-validations": [{"rule": rule, "message": "no"}]}
    if kind == "object":
        field["x-kubernetes-preserve-unknown-fields"] = True
    return Schema({"type": "object", "properties": {"spec": {"type": "object", "properties": {"of": field}}}})


CASES = [
    ("self >= oldSelf", 3, 3, True),
    ("self >= oldSelf", 3, 2, False),
    ("self >= oldSelf", None, 2, True),
    ("self >= oldSelf", 3, None, True),
    ("self == oldSelf", 3, 4, False),
    ("self == oldSelf", 3, 3, True),
]


@pytest.mark.parametrize(("rule", "old", "new", "taken"), CASES)
def test_a_change_is_held_against_the_rule_of_its_field(
    rule: str, old: int | None, new: int | None, taken: bool
) -> None:
    found = broken(transitions_of(of(rule)), {"spec": {"of": old}}, {"spec": {"of": new}})
    assert [str(each) for each in found] == ([] if taken else [f"spec.of: Invalid value: {new}: no"])


OBJECTS: list[tuple[str, Json, Json, bool]] = [
    ("revoked", {"revoked": True}, {}, False),
    ("revoked", {"revoked": True}, {"revoked": False}, False),
    ("revoked", {"revoked": False}, {"revoked": True}, True),
    ("revoked", {}, {"revoked": True}, True),
    ("clusterName", {"clusterName": "a"}, {"clusterName": "b"}, False),
    ("clusterName", {"clusterName": "a"}, {}, True),
    ("clusterName", {}, {"clusterName": "b"}, True),
    ("topologyName", {"topologyName": "a"}, {}, False),
    ("topologyName", {"topologyName": "a"}, {"topologyName": "b"}, False),
    ("topologyName", {}, {"topologyName": "b"}, True),
]


@pytest.mark.parametrize(("field", "old", "new", "taken"), OBJECTS)
def test_a_change_is_held_against_the_rule_of_what_it_stands_in(field: str, old: Json, new: Json, taken: bool) -> None:
    (rule,) = [each for each in RULES if f"oldSelf.{field}" in each]
    found = broken(transitions_of(of(rule, "object")), {"spec": {"of": old}}, {"spec": {"of": new}})
    assert bool(found) is not taken
