"""IS-40: the table of what is not served, as it answers: once, for what is new, and never in anybody's way."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared import asked_for, markers, not_served
from gatelift_kinds.shared.not_served import TABLE, Treatment
from gatelift_kinds.shared.review import WebhookFacts

FACTS = WebhookFacts(local_queues={"q": False})
Q = {markers.QUEUE_NAME: "q"}
NEAR = {markers.REQUIRED_TOPOLOGY: "rack"}


def job(labels: dict[str, str], **notes: str) -> dict[str, Any]:
    template = {"metadata": {"annotations": notes}, "spec": {"containers": []}}
    return {"metadata": {"labels": labels}, "spec": {"suspend": True, "template": template}}


def pod(labels: dict[str, str], **notes: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels, "annotations": notes}, "spec": {"containers": []}}


def test_is_40_a_hard_constraint_of_what_is_queued_is_refused() -> None:
    (error,) = JOB_KIND.validate_create(job(Q, **NEAR), FACTS).errors
    assert "use affinity, or ask for a preferred one" in str(error)
    managed = {**Q, markers.MANAGED: "true"}
    assert not POD_KIND.validate_create(pod(managed, **NEAR), FACTS).allowed


def test_is_40_what_is_not_queued_here_asks_us_for_nothing() -> None:
    assert JOB_KIND.validate_create(job({}, **NEAR), FACTS).allowed
    assert POD_KIND.validate_create(pod(Q, **NEAR), FACTS).allowed, "the webhook did not take it over"
    elsewhere = WebhookFacts(namespace_selected=False)
    assert JOB_KIND.validate_create(job(Q, **NEAR), elsewhere).allowed
    ours = WebhookFacts(by_agent=True)
    assert JOB_KIND.validate_create(job(Q, **NEAR), ours).allowed


def test_is_40_pods_of_a_queued_job_are_made_whatever_its_template_says() -> None:
    """A Job from before this version runs: its controller would try for ever."""
    facts = WebhookFacts(owner_managed=True)
    made = pod({markers.POD_SET: "main"}, **NEAR)
    assert POD_KIND.validate_create(made, facts).allowed


def test_is_40_a_change_is_answered_for_what_is_new_in_it() -> None:
    before = job(Q, **NEAR)
    assert JOB_KIND.validate_update(before, {**before, "status": {}}, FACTS).allowed
    other = job(Q, **{markers.REQUIRED_TOPOLOGY: "block"})
    assert not JOB_KIND.validate_update(before, other, FACTS).allowed
    assert JOB_KIND.validate_update(before, job(Q), FACTS).allowed, "who takes it off mends it"


def test_is_40_a_job_that_first_gets_a_queue_is_answered_for_all_of_it() -> None:
    assert not JOB_KIND.validate_update(job({}, **NEAR), job(Q, **NEAR), FACTS).allowed


def test_is_40_items_of_lists_are_told_apart() -> None:
    wish = {"topologyRequest": {"preferred": "rack"}}
    workload = {"spec": {"podSets": [{}, wish, {}, wish]}}
    said = asked_for.verdict("Workload", {}, workload).warnings
    assert [one.partition(":")[0] for one in said] == [
        "spec.podSets[1].topologyRequest.preferred",
        "spec.podSets[3].topologyRequest.preferred",
    ]


@pytest.mark.parametrize("kind", sorted({kind for entry in TABLE for kind in entry.kinds}))
@pytest.mark.parametrize(
    "document",
    [{}, {"spec": None}, {"spec": []}, {"spec": {"podSets": {"a": 1}, "template": "x"}}, {"metadata": 1}],
    ids=str,
)
def test_is_40_any_document_gets_an_answer(kind: str, document: Any) -> None:
    assert asked_for.verdict(kind, {}, document).allowed


def test_is_40_every_row_says_what_is_so_in_one_line_that_is_not_cut() -> None:
    for entry in TABLE:
        line = f"{asked_for.shown(entry.path)}: {entry.text}"
        assert "\n" not in line
        if entry.answer is not Treatment.LEFT:
            assert len(line) <= 256, f"the API server cuts warnings: {line}"


def test_is_40_what_rules_refuse_has_its_words_in_the_table() -> None:
    assert "prebuilt Workloads" in not_served.refusal(markers.PREBUILT_WORKLOAD)
    with pytest.raises(KeyError):
        not_served.refusal(markers.QUEUE_NAME)
