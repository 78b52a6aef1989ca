"""F16: a standby whose watch was behind leads: it stops what runs, deletes users' own pods, charges nothing for what runs.

History
 1. A standby is there; one of its watches stalls (a half-dead connection, an API server replica that is behind). Of a watch
    the simulation promises that the last state comes in the end, no more; it draws 5 s at most, which is less than the 15 s
    that a Lease takes, so that no seed has seen this.
 2. A user makes a pod; the leader admits it, it runs. The leader dies. The standby leads 15 s later; its watch comes back
    after `LAG_SECONDS`.
 a. It was the watch of *Pods*: the Workload is there, its owner is not in the cache: `_over`: "its object is gone": the run
    is stopped. At home the stop *deletes the user's own pod*: his work is lost.
 b. It was the watch of *Workloads*: nothing is charged for what runs at a worker, until its inventory has made the manager
    list anew (AccountError). (More than the queue has was not admitted in what I tried: that list comes first.)
Promised: "standby promoted with old cache"; what runs is charged; H14 (rule: a leader begins from the objects as they are
then) holds for WorkerClusters only.
Cause: manager/gatelift/core/reconcile.py:_over (owner None is believed from a cache; R3 reads the Workload again, never the
owner), machine.handle: nothing lists anew, or asks for the present revision, when a standby begins to lead (the agent
does: its replica lists after it took its Lease, R8).
Very grave: a) loses users' work by one stalled watch and one leader change.
"""

from __future__ import annotations

import pytest

from gatelift_kube.resources import JOB, POD, WORKLOAD, Resource
from support.history import History

LAG_SECONDS = 30.0


def standby_with_a_stalled_watch(history: History, resource: Resource) -> None:
    time = history.world.time
    standby = history.world.start_manager()
    history.passes(20.0)
    until = time.now + LAG_SECONDS
    for watch in standby._watches:
        if watch._resource == resource:
            read = watch._read
            watch._read = lambda read=read: time.after(until - time.now, read) if time.now < until else read()


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_a_what_runs_goes_on_though_its_object_is_not_in_the_cache_yet(queue: str, kind: str) -> None:
    history = History(shown=False)
    history.passes(5.0)
    standby_with_a_stalled_watch(history, POD if kind == "Pod" else JOB)
    (history.pod if kind == "Pod" else history.job)("one", queue=queue)
    cluster = history.until_runs("one", kind)
    history.kill_leader()
    history.passes(120.0)
    assert history.home.look(POD if kind == "Pod" else JOB, "one") is not None, "nobody has deleted it"
    assert history.runs("one", kind) == {cluster}
    workload = history.workload("one", kind)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1", "nobody has asked for its end"


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_b_what_runs_is_charged_though_its_workload_is_not_in_the_cache_yet(queue: str) -> None:
    history = History(shown=False)
    standby_with_a_stalled_watch(history, WORKLOAD)
    history.pod("one", queue=queue)
    history.until_runs("one")
    history.kill_leader()
    history.passes(60.0)  # AccountError: the leading manager charges 0m
