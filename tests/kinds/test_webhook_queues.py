"""Whose a Job is: the queue of what holds quota stays, and where work is sent away no Job comes that home would run."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.review import WebhookFacts
from support.webhook_documents import ELSEWHERE, FACTS, Json, K, Q, a_job, a_pod, told

HELD = WebhookFacts(local_queues={"q": False, "r": False}, reserved_by="pod-x-12345")
OTHER: Json = {f"{K}queue-name": "r"}
GATE: Json = {"schedulingGates": [{"name": f"{K}admission"}]}


@pytest.mark.parametrize("after", [pytest.param(OTHER, id="changed"), pytest.param({}, id="taken off")])
@pytest.mark.parametrize("facts", [pytest.param(HELD, id="it holds quota"), pytest.param(FACTS, id="it holds none")])
def test_hd_109_the_queue_of_what_waits_may_change_and_that_of_what_holds_quota_may_not(
    after: Json, facts: WebhookFacts
) -> None:
    pods = POD_KIND.validate_update(a_pod(Q, **GATE), a_pod(after, **GATE), facts)
    jobs = JOB_KIND.validate_update(a_job(Q, suspend=True), a_job(after, suspend=True), facts)
    for verdict in (pods, jobs):
        assert verdict.allowed is (facts is not HELD)
        for text in told(verdict):
            assert "is immutable while its Workload pod-x-12345 holds quota: make the object anew, or" in text


MANAGERS = (
    pytest.param({}, id="nobody"),
    pytest.param({"managedBy": "kubernetes.io/job-controller"}, id="the Job controller"),
)


@pytest.mark.parametrize("spec", MANAGERS)
def test_hd_106_a_job_that_its_own_cluster_would_run_is_refused_where_work_is_sent_away(spec: Json) -> None:
    new = a_job(Q, suspend=True, **spec)
    verdicts = [
        JOB_KIND.validate_create(new, ELSEWHERE),
        JOB_KIND.validate_update(a_job(OTHER, suspend=True, **spec), new, ELSEWHERE),
    ]
    for verdict in verdicts:
        assert not verdict.allowed
        (text,) = told(verdict)
        assert text.startswith("spec.managedBy: Invalid value: ")
        assert 'must be "kueue.x-k8s.io/multikueue" where LocalQueue q sends work to other clusters' in text


@pytest.mark.parametrize("spec", MANAGERS)
def test_hd_106_one_that_is_there_already_may_be_changed_otherwise_and_one_at_home_is_taken(spec: Json) -> None:
    old = a_job(Q, suspend=True, **spec)
    assert JOB_KIND.validate_update(
        old, {**old, "metadata": {**old["metadata"], "annotations": {"a": "b"}}}, ELSEWHERE
    ).allowed
    assert JOB_KIND.validate_create(old, WebhookFacts(local_queues={"q": False})).allowed
    ours = a_job(Q, suspend=True, managedBy=f"{K}multikueue")
    assert JOB_KIND.validate_create(ours, ELSEWHERE).allowed
