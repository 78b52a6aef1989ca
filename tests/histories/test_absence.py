"""Histories about absence on both real cores: what is not seen any more, and what proves that it does not run."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import ApiWrite, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD, WORKLOAD
from support.sim.cluster import TEAM
from support.sim.history import History

KUBELET_IS_HEARD_SECONDS = 900.0
"""Grace, margin, and two heartbeats of a node: by then a doubt is over that a heartbeat ends."""


def refuse_pods(history: History, cluster: str, error: WriteError, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker's API server refuse the agent every write to Pods and Jobs, its kubelet none."""
    worker = history.workers[cluster]
    carry_out = worker.carry_out

    def refusing(command: ApiWrite) -> WriteDone | WriteFailed:
        if command.ref.resource in (POD, JOB):
            return WriteFailed(write_id=command.write_id, error=error, message=f"{command.ref}: {error.value}")
        return carry_out(command)

    port = history.agent(cluster).port
    monkeypatch.setattr(port, "cluster", _Refusing(worker, refusing))


class _Refusing:
    """A cluster as one process has it: all but its writes is the cluster's own."""

    def __init__(self, cluster: Any, carry_out: Any) -> None:
        self._cluster = cluster
        self.carry_out = carry_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def break_watches(history: History, cluster: str) -> None:
    """End the agent's watches of Pods and Jobs; nobody tells it."""
    for watches in history.agent(cluster)._namespace_watches.values():
        for watch in watches:
            watch.end()


def remove_namespace(history: History, cluster: str) -> None:
    """Let a person delete the namespace, and its controller remove it."""
    worker = history.workers[cluster]
    worker.delete(NAMESPACE, TEAM)
    bare = worker.look(NAMESPACE, TEAM)
    assert bare is not None
    kind = worker.store.kinds.of(NAMESPACE)
    worker.store.update(kind, "", TEAM, {**bare, "spec": {}}, worker.timeline.wall, subresource="finalize")


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("rights", [True, False], ids=["with rights", "rights gone with it"])
def test_hd_42_work_of_a_namespace_that_went_unseen_runs_elsewhere_once_its_kubelet_was_heard(
    kind: str,
    rights: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History()
    (history.pod if kind == "Pod" else history.job)("one")
    cluster = history.until_runs("one", kind)
    first = history.workload("one", kind)
    assert first is not None
    break_watches(history, cluster)
    if not rights:
        refuse_pods(history, cluster, WriteError.FORBIDDEN, monkeypatch)
    for resource in (JOB, POD):
        for each in history.objects(cluster, resource):
            name = each["metadata"]["name"]
            history.edit(cluster, resource, name, {"metadata": {"finalizers": None}})
            history.workers[cluster].delete(resource, name, grace_seconds=0)
    remove_namespace(history, cluster)
    elsewhere = next(name for name in history.workers if name != cluster)
    history.until(
        "it runs elsewhere",
        lambda: history.runs("one", kind) == {elsewhere} and history.containers("one", kind) == 1,
        KUBELET_IS_HEARD_SECONDS,
    )


@pytest.mark.parametrize(
    "error", [WriteError.FORBIDDEN, WriteError.DENIED, WriteError.INVALID, WriteError.CONFLICT], ids=lambda e: e.value
)
def test_hd_46_work_that_cannot_be_asked_for_stays_where_it_is(
    error: WriteError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-46: its labels are gone, and 403, 409, 422 or a webhook's no is all that a probe of it is answered."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    with monkeypatch.context() as patched:
        refuse_pods(history, cluster, error, patched)
        history.edit(cluster, POD, "one", {"metadata": {"labels": None}})
        history.passes(KUBELET_IS_HEARD_SECONDS)
        assert history.runs("one") == {cluster}
        assert history.shows("one", "QuotaReserved")
        assert not history.shows("one", "Evicted")
    history.passes(60.0)
    assert history.objects(cluster)[0]["metadata"]["labels"]["gatelift.dev/epoch"] == "1"
    assert history.runs("one") == {cluster}


def test_hd_47_a_pod_bound_behind_a_slow_watch_and_removed_by_force_does_not_run_twice() -> None:
    """HD-47: its last version that was seen names no node, its containers take long to stop."""
    history = History()
    nodes = {name: worker.all(NODE)[0]["metadata"]["name"] for name, worker in history.workers.items()}
    for name, node in nodes.items():
        history.edit(name, NODE, node, {"spec": {"unschedulable": True}})
    history.pod("one", stops_in=25.0)
    history.until("it is let go", lambda: any(history.runs("one")))
    (cluster,) = history.runs("one")
    elsewhere = next(name for name in nodes if name != cluster)
    assert history.containers("one") == 0
    break_watches(history, cluster)
    for name, node in nodes.items():
        history.edit(name, NODE, node, {"spec": {"unschedulable": None}})
    history.until("its containers run", lambda: history.containers("one") == 1)
    history.edit(cluster, POD, "one", {"metadata": {"finalizers": None}})
    history.workers[cluster].delete(POD, "one", grace_seconds=0)
    workload = history.workload("one")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.passes(5.0)
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": True}})
    history.until(
        "it runs again",
        lambda: history.containers("one") == 1 and history.runs("one") <= {cluster, elsewhere},
        KUBELET_IS_HEARD_SECONDS,
    )
