"""What is not served is refused also where it is added to what waits or runs (HD-357, HD-358), or by hand (HD-359)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared.review import WebhookFacts
from support.manager.webhook_documents import FACTS, GATED, Json, K, Q, a_job, a_pod, told

GROUP, SIZE = {f"{K}pod-group-name": "g"}, {f"{K}pod-group-total-count": "1"}
TAKEN_OVER = {**Q, f"{K}managed": "true"}
RUNS: Json = {"schedulingGates": []}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(a_pod(TAKEN_OVER, **GATED), a_pod({**TAKEN_OVER, **GROUP}, SIZE, **GATED), id="it waits"),
        pytest.param(a_pod(TAKEN_OVER, **RUNS), a_pod({**TAKEN_OVER, **GROUP}, SIZE, **RUNS), id="it runs"),
        pytest.param(a_pod(TAKEN_OVER, **GATED), a_pod(TAKEN_OVER, {**GROUP, **SIZE}, **GATED), id="by an annotation"),
        pytest.param(a_pod(Q, **GATED), a_pod({**Q, **GROUP}, SIZE, **GATED), id="its label was taken off"),
    ],
)
def test_hd_357_a_pod_that_was_queued_by_itself_is_given_no_group(old: Json, new: Json) -> None:
    (line,) = told(POD_KIND.validate_update(old, new, FACTS))
    assert line.endswith("cannot be given to a pod that was queued by itself: leave it out, or make a new pod")


def test_hd_357_one_whose_label_was_taken_off_and_that_runs_is_known_by_the_finalizer() -> None:
    old, new = a_pod(Q, **RUNS), a_pod({**Q, **GROUP}, SIZE, **RUNS)
    old["metadata"]["finalizers"] = [f"{K}managed"]
    assert len(told(POD_KIND.validate_update(old, new, FACTS))) == 1


MADE_FOR_IT = (
    "metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]: Forbidden: prebuilt Workloads are not served but "
    "for groups of pods: leave it out, and the Workload is made for you"
)
NAMED = {**Q, f"{K}prebuilt-workload-name": "w"}


@pytest.mark.parametrize(
    ("kind", "old", "new", "lines"),
    [
        pytest.param(POD_KIND, a_pod(Q, **GATED), a_pod(NAMED, **GATED), [MADE_FOR_IT], id="a pod at its gate"),
        pytest.param(JOB_KIND, a_job(Q, suspend=True), a_job(NAMED, suspend=True), [MADE_FOR_IT], id="a Job"),
        pytest.param(
            JOB_KIND,
            a_job({f"{K}prebuilt-workload-name": "w"}, suspend=True),
            a_job(NAMED, suspend=True),
            [MADE_FOR_IT],
            id="a Job that had it, and is queued",
        ),
        pytest.param(JOB_KIND, a_job(NAMED, suspend=True), a_job(Q, suspend=True), [], id="it is taken off"),
        pytest.param(POD_KIND, a_pod(NAMED, **GATED), a_pod({**NAMED, "a": "b"}, **GATED), [], id="it was there"),
    ],
)
def test_hd_358_what_waits_is_given_no_prebuilt_workload(kind: Any, old: Json, new: Json, lines: list[str]) -> None:
    assert told(kind.validate_update(old, new, FACTS)) == lines


PARENT = {f"{K}pod-suspending-parent": "x"}
NO_PARENT = (
    "metadata.annotations[kueue.x-k8s.io/pod-suspending-parent]: Forbidden: nothing that is served holds pods back by "
    "this, and nobody would take the pod's gate off: leave it out, and the pod waits in the queue that it names"
)


def test_hd_359_a_pod_that_is_to_wait_for_a_parent_is_refused_when_it_is_made_or_changed() -> None:
    new = a_pod(Q, PARENT, **GATED)
    assert told(POD_KIND.validate_create(new, FACTS)) == [NO_PARENT]
    assert told(POD_KIND.validate_update(a_pod(Q, **GATED), new, FACTS)) == [NO_PARENT]
    assert told(POD_KIND.validate_update(new, a_pod(Q, {**PARENT, "a": "b"}, **GATED), FACTS)) == [], "it was there"
    assert told(POD_KIND.validate_create(new, WebhookFacts(by_agent=True))) == []
