"""HD-221: a queued Job knows its pods by the labels that Kubernetes generates, not by those that its user chose."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gatelift_kinds.job.rules import validate_create, validate_update
from gatelift_kinds.registry import JOB_KIND as KIND
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kinds.shared.values import MergeConflictError, Placing, PodSetStart, Priority, UserChange
from support.manager.kind_objects import KEY, Json, a_job, job, raw, workload

FACTS = WebhookFacts(namespace_selected=True)
QUEUE = "kueue.x-k8s.io/queue-name"
PLACING = Placing(key=KEY, origin="home", namespace="ns", starts=(PodSetStart(pod_set="main", count=3),))
GENERATED = {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-j"}}
OWN: Mapping[str, Json] = {
    "its user's": {"manualSelector": True, "selector": {"matchLabels": {"foo": "x"}}},
    "its user's, no longer said so": {"manualSelector": False, "selector": {"matchLabels": {"foo": "x"}}},
    "another Job's": {"selector": {"matchLabels": {"controller-uid": "uid-other"}}},
    "one label more": {"selector": {"matchLabels": {"controller-uid": "uid-j", "foo": "x"}}},
    "an expression": {"selector": {**GENERATED, "matchExpressions": [{"key": "foo", "operator": "Exists"}]}},
    "generated, to be its user's elsewhere": {"manualSelector": True, "selector": GENERATED},
}
GIVEN: Mapping[str, Json] = {
    "not yet": {"manualSelector": None, "selector": None},
    "new": {"manualSelector": False, "selector": GENERATED},
    "old": {"selector": {"matchLabels": {"controller-uid": "uid-j"}}},
}


def a_suspended_job(spec: Json) -> Json:
    document = a_job(**spec)
    document["metadata"]["labels"] = {QUEUE: "q"}
    return document


def wrong(old: Json | None, new: Json) -> list[tuple[str, str]]:
    verdict = validate_create(new, FACTS) if old is None else validate_update(old, new, FACTS)
    return [(one.path, one.text) for one in verdict.errors if "elector" in one.path]


@pytest.mark.parametrize("case", OWN)
def test_hd_221_a_job_that_selects_its_pods_itself_is_not_queued_and_told_the_way_out(case: str) -> None:
    queued = a_suspended_job(OWN[case])
    refused = wrong(None, queued)
    assert len(refused) == 1
    path, text = refused[0]
    assert path == ("spec.manualSelector" if OWN[case].get("manualSelector") else "spec.selector")
    assert "make the Job anew without spec.selector and spec.manualSelector" in text
    before = a_suspended_job(OWN[case])
    before["metadata"]["labels"] = {}
    assert wrong(None, before) == [], "without a queue it is its user's"
    assert wrong(before, queued) == [(path, text)], "as it is given a queue's name"
    assert wrong(queued, queued) == [], "what is there already can be changed, and deleted"
    assert wrong(a_suspended_job(GIVEN["new"]), queued) == [(path, text)]


@pytest.mark.parametrize("case", GIVEN)
def test_hd_221_a_selector_that_kubernetes_has_generated_is_taken(case: str) -> None:
    assert wrong(None, a_suspended_job(GIVEN[case])) == []
    assert KIND.nowhere(job(a_suspended_job(GIVEN[case]))) == ""


@pytest.mark.parametrize("case", OWN)
def test_hd_221_around_the_webhook_it_is_let_go_nowhere_and_what_runs_is_no_longer_as_admitted(case: str) -> None:
    document = a_suspended_job(OWN[case])
    assert "spec.selector and spec.manualSelector" in KIND.nowhere(job(document))
    with pytest.raises(MergeConflictError, match=r"spec\.(manualS|s)elector: "):
        KIND.local_lift_patch(job(document), raw(document), PLACING)
    asked = workload(KIND.workload_document(job(document), raw(document), Priority()))
    assert KIND.user_change(job(document), asked, KEY, {}) is UserChange.RESIZED
