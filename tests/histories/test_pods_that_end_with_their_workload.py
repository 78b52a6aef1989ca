"""Who deletes the Workload of a single pod ends the pod, as in Kueue (decision 86).

Once nothing of it runs, and only where the deletion was a person's, of the Workload that is the pod's.
"""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, Resource
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.port import ApiPort

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


def ends_unheard(kind: str = "Pod") -> tuple[History, str]:
    """Return a history in which it has succeeded at a worker that is cut off, and its Workload is deleted."""
    history = History()
    if kind == "Pod":
        history.pod("one", "travels", seconds=10.0)
    else:
        history.job("one", "travels", seconds=10.0)
    cluster = history.until_runs("one", kind)
    history.cut(cluster)
    history.passes(15.0)
    assert history.containers("one", kind) == 0
    workload_goes(history, kind)
    history.passes(2.0)
    return history, cluster


def shows_its_end(history: History) -> bool:
    return ((at_home(history) or {}).get("status") or {}).get("phase") == "Succeeded"


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_362_a_pod_that_has_succeeded_elsewhere_shows_that_and_stays(*, another_leads: bool) -> None:
    """Its cluster says so after the Workload was deleted."""
    history, cluster = ends_unheard()
    if another_leads:
        history.kill_leader()
        history.until("another leads", history.leads, 120.0)
    history.mend(cluster)
    history.until("its Workload is gone", lambda: history.workload("one") is None, 120.0)
    history.passes(60.0)
    assert shows_its_end(history)
    pod = at_home(history)
    assert pod is not None
    assert "deletionTimestamp" not in pod["metadata"]
    assert MANAGED not in pod["metadata"].get("finalizers", ())
    assert history.leader.charges("travels") == 0
    assert not history.objects(cluster, POD)


@pytest.mark.parametrize("after", [0.0, 0.05, 0.5])
def test_hd_362_whoever_leads_next_shows_it_when_the_one_before_has_heard_of_it(
    after: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cluster forgets how it ended before that is shown."""
    history, cluster = ends_unheard()
    with monkeypatch.context() as refusing:
        send = ApiPort._send

        def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
            if isinstance(command, Patch) and command.ref.resource == POD and command.subresource == "status":
                port._timeline.after(0.02, lambda: port._refuse(command))
            else:
                send(port, command, deadline)

        refusing.setattr(ApiPort, "_send", sent)
        refusing.setattr("support.sim.port.REFUSALS", (429,))
        history.mend(cluster)
        history.until("its cluster is heard", lambda: history.connected(cluster), 60.0)
        history.passes(1.0 + after)
        assert not shows_its_end(history)
        history.kill_leader()
    history.until("another leads", history.leads, 120.0)
    history.until("its Workload is gone", lambda: history.workload("one") is None, 120.0)
    assert shows_its_end(history)


def test_hd_362_a_job_that_is_over_elsewhere_shows_that_and_runs_no_second_time() -> None:
    history, cluster = ends_unheard("Job")
    history.mend(cluster)
    for _ in range(120):
        history.passes(1.0)
        assert history.containers("one", "Job") == 0
    job = at_home(history, JOB)
    assert job is not None
    assert [each["type"] for each in job["status"]["conditions"] if each["status"] == "True"][-1] == "Complete"
    assert history.workload("one", "Job") is None


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
