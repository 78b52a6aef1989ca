"""What the pods of a Job request when they run is what it is charged for."""

from __future__ import annotations

import pytest

from gatelift_kube.resources import JOB, LIMIT_RANGE
from support.builders_manager import a_job
from support.history import History
from support.sim_cluster import TEAM, Doc


def create(history: History, queue: str, resources: Doc, *, pods: int) -> None:
    """Let a user create a Job whose one container says `resources`."""
    document = a_job("work", parallelism=pods, completions=pods)
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    if queue == "stays":
        del document["spec"]["managedBy"]
    del document["status"]
    history.home.create(JOB, document)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_152_a_job_with_limits_only_is_charged_what_its_pods_request(queue: str) -> None:
    history = History(shown=False)
    item = {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "100m"}}
    history.home.create(LIMIT_RANGE, {"metadata": {"name": "small", "namespace": TEAM}, "spec": {"limits": [item]}})
    history.passes(2.0)
    create(history, queue, {"limits": {"cpu": "1"}}, pods=2)
    history.until_runs("work", "Job")
    history.until("both run", lambda: history.containers("work", "Job") == 2)
    assert history.leader.charges(queue) == 2000
