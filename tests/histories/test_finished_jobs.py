"""Scripted histories (HD-138): a Job at home whose Workload is finished, let go again around the webhook."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, WORKLOAD
from support.sim.history import History

ANNOTATIONS = ["", "gatelift.dev/shown", "gatelift.dev/template-before"]


@pytest.mark.parametrize("forged", ANNOTATIONS, ids=["HD-138 plain", "HD-138 shown", "HD-138 template-before"])
def test_a_job_whose_workload_is_finished_is_held_back_whatever_annotation_it_bears(forged: str) -> None:
    history = History(shown=False)
    history.job("one", "stays", completions=8)
    history.until_runs("one", "Job")
    workload = history.workload("one", "Job")
    assert workload is not None
    time = workload["metadata"]["creationTimestamp"]
    over = {"type": "Finished", "status": "True", "reason": "Failed", "message": "", "lastTransitionTime": time}
    finished = {"status": {"conditions": [*workload["status"]["conditions"], over]}}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], finished, "status")
    history.until("it is stopped", lambda: history.containers("one", "Job") == 0 and suspended(history))
    edit: dict[str, Any] = {"spec": {"suspend": False}}
    if forged:
        edit["metadata"] = {"annotations": {forged: "{}"}}
    history.edit("home", JOB, "one", edit)
    history.passes(1.0)
    history.until("it is held back", lambda: suspended(history), 20.0)
    history.until("nothing of it runs", lambda: history.containers("one", "Job") == 0, 60.0)


def suspended(history: History) -> bool:
    job = history.home.look(JOB, "one")
    return job is not None and bool(job["spec"]["suspend"])
