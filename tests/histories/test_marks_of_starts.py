"""What a pod says once it is let go, and what says so: no write more than before (KEP-976, PG-26)."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD, WORKLOAD
from support.sim.history import History


@pytest.mark.parametrize("queue", [pytest.param("stays", id="local"), pytest.param("travels", id="worker")])
def test_pg_26_what_runs_names_its_pod_set_its_queues_and_its_workload(queue: str) -> None:
    """PC-016."""
    history = History()
    history.pod("one", queue=queue)
    cluster = history.until_runs("one")
    [workload] = history.objects("home", WORKLOAD)
    [pod] = [each for each in history.objects(cluster, POD) if each["metadata"]["name"] == "one"]
    labels, notes = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    assert labels["kueue.x-k8s.io/podset"] == "main"
    assert labels["kueue.x-k8s.io/local-queue-name"] == queue
    assert labels["kueue.x-k8s.io/cluster-queue-name"] == workload["status"]["admission"]["clusterQueue"]
    assert notes["kueue.x-k8s.io/workload"] == workload["metadata"]["name"]


def test_pg_26_a_pod_that_is_evicted_at_home_says_why_it_goes() -> None:
    """PC-023, PI-004."""
    history = History()
    history.pod("one", queue="stays", stops_in=20.0)
    history.until_runs("one")
    [workload] = history.objects("home", WORKLOAD)
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.until("it is being deleted", lambda: "deletionTimestamp" in history.objects("home")[0]["metadata"])
    [pod] = history.objects("home")
    [said] = [one for one in pod["status"]["conditions"] if one["type"] == "TerminationTarget"]
    assert (said["status"], said["reason"]) == ("True", "WorkloadEvictedDueToDeactivated")
    assert said["message"] == "The workload is deactivated"
