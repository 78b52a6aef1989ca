"""Pods of a Job that are gone and that nobody counted: what is there against what was made."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kinds.job import pods as job_pods
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod

STARTED = "2026-11-18T12:00:10Z"
FIRST, LATER = "2026-11-18T12:00:10Z", "2026-11-18T12:05:00Z"


def job(parallelism: int = 2, completions: int | None = None, **status: object) -> Job:
    """Return a Job that was let go."""
    spec: dict[str, Any] = {
        "parallelism": parallelism,
        "completions": completions,
        "template": {"spec": {"containers": []}},
    }
    return msgspec.convert({"spec": spec, "status": {"startTime": STARTED, **status}}, Job)


def pod(made: str = FIRST, phase: str = "Running") -> Pod:
    """Return one of its pods."""
    return msgspec.convert({"metadata": {"creationTimestamp": made}, "status": {"phase": phase}}, Pod)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        pytest.param(job(), [pod(), pod()], id="all first ones"),
        pytest.param(job(failed=1), [pod(), pod(phase="Failed"), pod(LATER)], id="a failed one was replaced"),
        pytest.param(job(failed=1), [pod(), pod(LATER)], id="it is gone by now"),
        pytest.param(job(failed=1), [pod()], id="it is not replaced yet"),
        pytest.param(job(), [pod(), pod(phase="Failed")], id="it is not counted yet"),
        pytest.param(
            job(completions=9, succeeded=2), [pod(phase="Succeeded")] * 2 + [pod(LATER)] * 2, id="a next round"
        ),
        pytest.param(job(5, completions=2), [pod(), pod()], id="fewer completions than pods at once"),
        pytest.param(job(completions=2, succeeded=2), [], id="complete"),
        pytest.param(
            job(uncountedTerminatedPods={"failed": ["u"], "succeeded": []}), [pod(), pod(LATER)], id="noted as failed"
        ),
    ],
)
def test_hd_132_what_goes_its_usual_way_was_counted(made: Job, found: list[Pod]) -> None:
    assert job_pods.uncounted(made, found) == 0


@pytest.mark.parametrize(
    ("made", "found", "missing"),
    [
        pytest.param(job(), [pod()], 1, id="one is not there"),
        pytest.param(job(), [], 2, id="none is there"),
        pytest.param(job(), [pod(), pod(LATER)], 1, id="another one stands in its place"),
        pytest.param(job(failed=1), [pod(LATER), pod(LATER)], 1, id="one of two was counted"),
        pytest.param(job(startTime=None), [], 2, id="its controller has said nothing yet"),
        pytest.param(job(completions=9, succeeded=1), [pod(phase="Succeeded"), pod(LATER)], 1, id="in a next round"),
    ],
)
def test_hd_132_a_pod_that_went_uncounted_is_found_missing(made: Job, found: list[Pod], missing: int) -> None:
    assert job_pods.uncounted(made, found) == missing
