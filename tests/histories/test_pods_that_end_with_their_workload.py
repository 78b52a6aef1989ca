"""Who deletes the Workload of a single pod ends the pod, as in Kueue (decision 86).

Once nothing of it runs, and only where the deletion was a person's, of the Workload that is the pod's.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.cluster import Doc
from support.sim.history import History

QUEUES = (pytest.param("stays", id="local"), pytest.param("travels", id="worker"))
MANAGED = "kueue.x-k8s.io/managed"


def workload_goes(history: History, kind: str = "Pod") -> str:
    """Let somebody delete the Workload; return its UID."""
    found = history.workload("one", kind)
    assert found is not None
    history.delete("home", WORKLOAD, found["metadata"]["name"])
    uid: str = found["metadata"]["uid"]
    return uid


def at_home(history: History, kind: Resource = POD) -> Doc | None:
    return history.home.look(kind, "one")


def all_is_gone(history: History) -> bool:
    return at_home(history) is None and not history.objects("home", WORKLOAD) and not history.runs("one")


def waits(history: History, queue: str) -> None:
    """Let a pod wait for more quota than there is."""
    history.pod("one", queue, cpu="900")
    history.until("a Workload", lambda: history.workload("one") is not None)
    history.passes(5.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_330_a_pod_that_runs_ends_with_its_workload(queue: str) -> None:
    history = History()
    history.pod("one", queue, stops_in=5.0)
    cluster = history.until_runs("one")
    workload_goes(history)
    history.until("all of it is gone", lambda: all_is_gone(history), 60.0)
    history.passes(60.0)
    assert all_is_gone(history), "nothing makes it anew"
    assert not history.objects(cluster, POD)
    assert history.leader.charges(queue) == 0


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_330_a_pod_that_waits_ends_with_its_workload(queue: str) -> None:
    history = History()
    waits(history, queue)
    workload_goes(history)
    history.until("all of it is gone", lambda: all_is_gone(history), 30.0)
    history.passes(30.0)
    assert all_is_gone(history)


def test_pg_26_what_ran_elsewhere_says_at_home_why_it_goes() -> None:
    history = History()
    history.pod("one", "travels")
    history.until_runs("one")
    history.edit("home", POD, "one", {"metadata": {"finalizers": [MANAGED, "example.com/kept"]}})
    workload_goes(history)
    history.until("it is being deleted", lambda: "deletionTimestamp" in (at_home(history) or {})["metadata"], 60.0)
    pod = at_home(history)
    assert pod is not None
    [said] = [one for one in pod["status"]["conditions"] if one["type"] == "TerminationTarget"]
    assert (said["reason"], said["message"]) == ("WorkloadDeleted", "Workload is deleted")


def test_hd_331_the_pod_at_home_stays_until_a_cluster_that_is_away_has_said_that_nothing_runs() -> None:
    history = History()
    history.pod("one", "travels")
    cluster = history.until_runs("one")
    history.cut(cluster)
    workload_goes(history)
    history.until_lost(cluster)
    history.passes(120.0)
    pod = at_home(history)
    assert pod is not None
    assert "deletionTimestamp" not in pod["metadata"]
    assert history.workload("one") is not None, "charged and shown"
    history.mend(cluster)
    history.until("all of it is gone", lambda: all_is_gone(history), 120.0)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1, 0.5, 2.0])
def test_hd_332_another_leader_ends_what_the_one_before_it_has_begun_to(queue: str, after: float) -> None:
    history = History()
    history.pod("one", queue, stops_in=1.0)
    history.until_runs("one")
    workload_goes(history)
    history.passes(after)
    history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.until("all of it is gone", lambda: all_is_gone(history), 120.0)


def test_hd_333_a_pod_that_is_over_stays_as_it_is() -> None:
    history = History()
    history.pod("one", "stays", seconds=2.0)
    history.until("it is finished", lambda: history.shows("one", "Finished"))
    workload_goes(history)
    history.passes(30.0)
    pod = at_home(history)
    assert pod is not None
    assert pod["status"]["phase"] == "Succeeded"
    assert "deletionTimestamp" not in pod["metadata"]
    assert history.workload("one") is None, "it waits for no end of its pod"


def test_hd_334_a_workload_that_is_one_too_many_ends_nothing() -> None:
    history = History()
    history.pod("one", "stays")
    history.until_runs("one")
    own = history.workload("one")
    assert own is not None
    second = {
        "metadata": {**own["metadata"], "name": "second", "uid": "", "annotations": {}},
        "spec": own["spec"],
    }
    for field in ("uid", "resourceVersion", "creationTimestamp", "finalizers"):
        second["metadata"].pop(field, None)
    history.home.create(WORKLOAD, second)
    history.passes(60.0)
    assert history.runs("one") == {"home"} or history.runs("one") == {"local"}
    assert [each["metadata"]["uid"] for each in history.objects("home", WORKLOAD)] == [own["metadata"]["uid"]]


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_335_a_pod_that_asks_for_something_else_than_its_workload_gets_another_one(*, another_leads: bool) -> None:
    """Our own deletion, or nobody can tell: it is not known that a person wants the pod to end."""
    history = History()
    waits(history, "stays")
    found = history.workload("one")
    assert found is not None
    name = found["metadata"]["name"]
    if another_leads:
        history.kill_leader()
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": ["example.com/kept"]}})
    history.edit("home", POD, "one", {"spec": {"nodeSelector": {"pool": "a"}}})
    workload_goes(history)
    history.until("another leads", history.leads, 120.0)
    history.passes(30.0)
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": None}})
    history.passes(30.0)
    pod, now = at_home(history), history.workload("one")
    assert pod is not None
    assert "deletionTimestamp" not in pod["metadata"]
    assert now is not None
    assert now["metadata"]["uid"] != found["metadata"]["uid"]


@pytest.mark.parametrize("queue", QUEUES)
def test_hd_330_a_job_gets_another_workload(queue: str) -> None:
    history = History()
    history.job("one", queue, stops_in=1.0)
    history.until_runs("one", "Job")
    old = workload_goes(history, "Job")
    history.until(
        "another Workload",
        lambda: (history.workload("one", "Job") or {"metadata": {"uid": old}})["metadata"]["uid"] != old,
    )
    history.until_runs("one", "Job")
    assert at_home(history, JOB) is not None
