"""Whose a Job is: the queue of what holds quota stays, and where work is sent away no Job comes that home would run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.webhooks.review import WARNING_CHARS_MAX
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared.review import WebhookFacts
from support.manager.webhook_documents import ELSEWHERE, FACTS, Json, K, Q, a_job, a_pod, defaulted, told

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


def test_hd_139_who_takes_a_waiting_pod_out_of_its_queue_is_told_that_it_stays_gated_and_how_to_go_on() -> None:
    waiting, left = a_pod({**Q, **MARK}, **GATE), a_pod(MARK, **GATE)
    verdict = POD_KIND.validate_update(waiting, left, FACTS)
    (text,) = verdict.warnings
    assert verdict.allowed
    assert text.startswith("metadata.labels[kueue.x-k8s.io/queue-name]: without it the pod stays at its gate")
    assert "give it the label again, or delete the pod" in text
    assert len(text) <= WARNING_CHARS_MAX
    for old, new in ((waiting, waiting), (left, left), (left, waiting), (a_pod({**Q, **MARK}), a_pod(MARK))):
        assert not POD_KIND.validate_update(old, new, FACTS).warnings
    everything = WebhookFacts(local_queues={"q": False}, manage_without_queue=True)
    assert not POD_KIND.validate_update(waiting, left, everything).warnings


LATE = [
    pytest.param({}, {f"{K}priority-class": "high"}, "cannot be added", id="a class is given"),
    pytest.param({}, {f"{K}max-exec-time-seconds": "60"}, "is immutable", id="a limit is given"),
    pytest.param({f"{K}max-exec-time-seconds": "60"}, {}, "is immutable", id="a limit is taken off"),
]


@pytest.mark.parametrize(("before", "after", "text"), LATE)
def test_hd_526_what_counts_while_a_pod_waits_is_refused_once_it_has_quota(
    before: Json, after: Json, text: str
) -> None:
    """At a worker its gate stays, so it was taken without a word, and nothing followed."""
    old, new = (a_pod({**Q, **labels}, **GATE) for labels in (before, after))
    assert POD_KIND.depends_on_quota(old, new)
    assert POD_KIND.validate_update(old, new, FACTS).allowed
    lines = told(POD_KIND.validate_update(old, new, HELD))
    assert len(lines) == 1
    assert f"{text} while its Workload pod-x-12345 holds quota: make the object anew, or" in lines[0]


def test_hd_526_its_class_may_be_another_one_which_its_workload_follows() -> None:
    old, new = (a_pod({**Q, f"{K}priority-class": name}, **GATE) for name in ("low", "high"))
    assert POD_KIND.validate_update(old, new, HELD).allowed
    assert not POD_KIND.depends_on_quota(old, new)


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


# --- HD-129, HD-130: where a queued object runs ----------------------------------------------------------------------

MARK: Json = {f"{K}managed": "true"}
OWNED = WebhookFacts(local_queues={"q": True}, owner_managed=True)


def test_hd_129_a_pod_of_a_queued_job_loses_the_label_of_those_that_are_taken_over() -> None:
    pod = a_pod({**Q, **MARK})
    assert defaulted(POD_KIND, pod, OWNED)["metadata"]["labels"] == Q
    assert defaulted(POD_KIND, a_pod(Q), OWNED) == a_pod(Q)
    verdict = POD_KIND.validate_create(pod, OWNED)
    (text,) = told(verdict)
    assert text.startswith("metadata.labels[kueue.x-k8s.io/managed]: Forbidden: the pod's owner is queued, not the pod")


CLAIMED = WebhookFacts(local_queues={"q": True}, owner_claimed=True)


def test_hd_198_a_pod_that_claims_a_queued_job_is_queued_like_any_other_or_refused() -> None:
    assert defaulted(POD_KIND, a_pod(Q), CLAIMED) == defaulted(
        POD_KIND, a_pod(Q), WebhookFacts(local_queues={"q": True})
    )
    held = defaulted(POD_KIND, a_pod(Q), CLAIMED)
    assert POD_KIND.validate_create(held, CLAIMED).allowed
    for labels in (MARK, Q):
        said = told(POD_KIND.validate_create(a_pod(labels), CLAIMED))
        assert len(said) == 1
        assert said[0].startswith("metadata.ownerReferences: Forbidden: names a queued Job as its controller")
    assert POD_KIND.validate_create(a_pod(MARK), replace(CLAIMED, by_agent=True)).allowed


@pytest.mark.parametrize("labels", [Q, OTHER])
def test_hd_129_a_queued_jobs_template_may_name_a_queue_and_not_say_that_its_pods_are_queued(labels: Json) -> None:
    named = a_job(Q, suspend=True, template={"metadata": {"labels": labels}})
    assert JOB_KIND.validate_create(named, FACTS).allowed
    marked = a_job(Q, suspend=True, template={"metadata": {"labels": {**labels, **MARK}}})
    unqueued = a_job({}, suspend=True, template={"metadata": {"labels": {**labels, **MARK}}})
    for verdict in (
        JOB_KIND.validate_create(marked, FACTS),
        JOB_KIND.validate_update(named, marked, FACTS),
        JOB_KIND.validate_update(unqueued, marked, FACTS),
    ):
        (text,) = told(verdict)
        assert text.startswith("spec.template.metadata.labels[kueue.x-k8s.io/managed]: Forbidden: the Job is queued")
    assert JOB_KIND.validate_update(marked, marked, FACTS).allowed, "what is there already may end"
    assert JOB_KIND.validate_create(unqueued, FACTS).allowed


def test_hd_130_a_job_that_nobody_here_would_run_is_refused_where_work_stays() -> None:
    new = a_job(Q, suspend=True, managedBy=f"{K}multikueue")
    for verdict in (
        JOB_KIND.validate_create(new, FACTS),
        JOB_KIND.validate_update(a_job(OTHER, suspend=True, managedBy=f"{K}multikueue"), new, FACTS),
    ):
        (text,) = told(verdict)
        assert text.startswith('spec.managedBy: Invalid value: "kueue.x-k8s.io/multikueue": LocalQueue q runs its work')
        assert "make the Job anew without the field, or in a queue that sends work to other clusters" in text
    assert JOB_KIND.validate_update(new, new, FACTS).allowed
    assert JOB_KIND.validate_create(new, WebhookFacts()).allowed, "its queue may be made later"
