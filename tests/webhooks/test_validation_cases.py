"""Each rule on Kueue's kinds: what it lets through, what it refuses, and in what words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift.webhooks import queueing, review
from gatelift_kinds.shared.review import Verdict
from support.manager.validation_cases import Case, cases, old_and_new

CASES = [pytest.param(one, id=one.rule) for one in cases()]
WORDED = [pytest.param(one, id=one.rule) for one in cases() if one.says]


def asked(case: Case, change: dict[str, Any]) -> Verdict:
    old, new = old_and_new(case, change)
    request = {
        "uid": "u",
        "operation": "CREATE" if old is None else "UPDATE",
        "kind": {"kind": case.resource.kind},
        "object": new,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return queueing.verdict(case.resource, review.read(json.dumps(body).encode()))


@pytest.mark.parametrize("case", CASES)
def test_what_keeps_the_rule_is_accepted(case: Case) -> None:
    assert asked(case, case.accepted) == Verdict()


@pytest.mark.parametrize("case", WORDED)
def test_what_breaks_the_rule_is_refused_with_field_rule_and_way_out(case: Case) -> None:
    assert [str(error) for error in asked(case, case.refused).errors] == [case.says]


def test_an_object_that_could_not_be_read_before_may_be_changed_and_mended() -> None:
    (case,) = [one for one in cases() if one.rule == "a template can be read"]
    unreadable = {**case.refused, "metadata": {"labels": {"a": "b"}}}
    for change in (unreadable, case.accepted):
        old, new = old_and_new(case, case.refused)[1], old_and_new(case, change)[1]
        body = {"uid": "u", "operation": "UPDATE", "kind": {"kind": "Workload"}, "object": new, "oldObject": old}
        text = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})
        assert queueing.verdict(case.resource, review.read(text.encode())).allowed


def test_fields_that_only_a_newer_api_knows_are_no_mistake() -> None:
    (case,) = [one for one in cases() if one.rule == "who has quota has an admission"]
    conditions = [{**case.accepted["status"]["conditions"][0], "unheardOf": 1}]
    newer = {"status": {**case.accepted["status"], "conditions": conditions}}
    assert asked(case, newer) == Verdict()
