"""Scripted histories (IS-4): whatever ends a run in an ordinary look ends it also while that look raises.

It is told to stop by what stands in the API; that it has stopped is concluded by nobody, so it stays charged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.works import reconcile
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from support.on_purpose import OnPurposeError
from support.sim.history import History
from support.sim.others import REST_SECONDS

NOW = "2026-11-28T10:00:00Z"


def workload(history: History, kind: str = "Pod") -> dict[str, Any]:
    found = history.workload("bad", kind)
    assert found is not None
    return found


def says(history: History, condition: str, reason: str) -> None:
    """Let somebody write a condition of its Workload."""
    found = workload(history)
    said = {"type": condition, "status": "True", "reason": reason, "message": "by hand", "lastTransitionTime": NOW}
    conditions = [each for each in found["status"]["conditions"] if each["type"] != condition] + [said]
    history.edit("home", WORKLOAD, found["metadata"]["name"], {"status": {"conditions": conditions}}, "status")


def edits(history: History, spec: dict[str, Any]) -> None:
    history.edit("home", WORKLOAD, workload(history)["metadata"]["name"], {"spec": spec})


def deleted_without_a_trace(history: History) -> None:
    """Let its pod go at once, and its Workload stay."""
    history.edit("home", POD, "bad", {"metadata": {"finalizers": None}})
    history.delete("home", POD, "bad", propagation="Orphan")


def left_its_queue(history: History) -> None:
    """Let its user take all off its pod by which it is queued; the label of the queue alone is put back."""
    labels = {"kueue.x-k8s.io/queue-name": None, "kueue.x-k8s.io/managed": None}
    history.edit("home", POD, "bad", {"metadata": {"labels": labels}})


def suspended(history: History) -> None:
    history.edit("home", JOB, "bad", {"spec": {"suspend": True}})


WAYS: dict[str, Callable[[History], None]] = {
    "its pod is deleted": lambda history: history.delete("home", POD, "bad"),
    "its Workload is deleted": lambda history: history.delete("home", WORKLOAD, workload(history)["metadata"]["name"]),
    "its pod is gone, and orphaned it": deleted_without_a_trace,
    "it is deactivated": lambda history: edits(history, {"active": False}),
    "its eviction is written": lambda history: says(history, "Evicted", "Preempted"),
    "somebody else has finished it": lambda history: says(history, "Finished", "JobFinished"),
    "it left its queue": left_its_queue,
    "its time is over": lambda history: edits(history, {"maximumExecutionTimeSeconds": 5}),
}
ENDS = ("its pod is deleted", "its pod is gone, and orphaned it")
"""After these its Workload goes, too."""


class Set:
    """Each look at `bad` raises, until it is mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.mended = False
        due = reconcile._due

        def faulty(case: Any) -> None:
            if not self.mended and case.known.metadata.name.startswith(("pod-bad", "job-bad")):
                raise OnPurposeError("on purpose")
            due(case)

        monkeypatch.setattr(reconcile, "_due", faulty)
        monkeypatch.setattr(Contained, "surfaces", False)


@pytest.mark.parametrize("anew", [False, True], ids=["the same leader", "the next leader"])
@pytest.mark.parametrize("way", WAYS)
def test_is_4_what_ends_a_run_ends_it_though_each_look_raises(
    monkeypatch: pytest.MonkeyPatch, way: str, *, anew: bool
) -> None:
    """safety-13: only deletion and deactivation were obeyed, and an eviction waited for ever with its preemptor."""
    history = History(shown=False)
    history.pod("bad")
    history.until_runs("bad")
    history.passes(10.0)
    aside = Set(monkeypatch)
    if anew:
        history.kill_leader()
        history.passes(20.0)
    WAYS[way](history)
    history.until("it has stopped", lambda: history.containers("bad") == 0, 90.0)
    assert history.leader.charges("travels") == 500, "and is not called stopped"
    aside.mended = True
    if way in ENDS:
        history.until("it is gone", lambda: history.workload("bad") is None, REST_SECONDS)
        history.until("its quota is free", lambda: history.leader.charges("travels") == 0)


def test_is_4_what_its_user_suspends_stops_though_each_look_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.job("bad", "stays")
    history.until_runs("bad", "Job")
    history.passes(10.0)
    aside = Set(monkeypatch)
    suspended(history)
    history.until("it has stopped", lambda: history.containers("bad", "Job") == 0, 60.0)
    assert history.leader.charges("stays") == 500
    aside.mended = True
    history.until("it runs anew", lambda: history.containers("bad", "Job") == 1, REST_SECONDS)


def test_is_4_what_nothing_ends_runs_on_though_each_look_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    aside = Set(monkeypatch)
    edits(history, {"maximumExecutionTimeSeconds": 3600})
    history.kill_leader()
    history.passes(400.0)
    assert history.runs("bad") == {cluster}
    aside.mended = True
    history.passes(REST_SECONDS)
    assert history.containers("bad") == 1


def test_is_4_a_preemptor_runs_once_its_victim_can_be_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eviction is written, its leader dies before the stop is told, and the next one cannot look at the victim."""
    history = History(shown=False)
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}})
    history.pod("bad", cpu="2900m")
    history.until_runs("bad")
    history.pod("vip", cpu="2900m")
    history.until("it has a Workload", lambda: history.workload("vip") is not None)
    vip = history.workload("vip")
    assert vip is not None
    history.leader.dies_after_write(2)
    history.edit("home", WORKLOAD, vip["metadata"]["name"], {"spec": {"priority": 1000}})
    history.until("it is evicted", lambda: history.shows("bad", "Evicted"), 60.0)
    aside = Set(monkeypatch)
    history.until("it has stopped", lambda: history.containers("bad") == 0, 120.0)
    assert history.containers("vip") == 0
    aside.mended = True
    history.until("its preemptor runs", lambda: history.containers("vip") == 1, REST_SECONDS)
