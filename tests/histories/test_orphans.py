"""Pods of a placed Job whose labels and owners somebody edits: they stay the Job's (HD-84, HD-85, HD-86)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.sim.history import History

NAMES_OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")
TAKEN_OFF = {"metadata": {"ownerReferences": None, "labels": dict.fromkeys(NAMES_OF_A_JOB)}}
ORPHANED = {"metadata": {"ownerReferences": None}}
RELABELLED = {
    "nothing": {},
    "origin off": {LABEL_ORIGIN: None},
    "another origin": {LABEL_ORIGIN: "somebody-else"},
    "epoch 7": {LABEL_EPOCH: "7"},
    "another uid": {LABEL_WORKLOAD_UID: "7"},
}
EVERY_LABEL = {"metadata": {"ownerReferences": None, "labels": None}}


def running(history: History, cluster: str) -> list[dict[str, Any]]:
    """Return the pods of the Job that run and that nobody has deleted."""
    return [
        each
        for each in history.objects(cluster)
        if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    ]


def take_off(history: History, cluster: str, patch: dict[str, Any], rounds: int = 1) -> None:
    """Let somebody take owner and labels off all pods that run, so that the Job's controller makes others."""
    for _ in range(rounds):
        for pod in running(history, cluster):
            if pod["metadata"].get("ownerReferences"):
                history.edit(cluster, POD, pod["metadata"]["name"], patch)
        history.passes(3.0)


def restart(history: History, cluster: str) -> None:
    """Let the agent that serves a cluster begin anew; that of `local` goes with its manager."""
    if cluster == "local":
        history.kill_leader()
    else:
        history.kill_agent(cluster)


def deactivate(history: History, name: str) -> None:
    """Let its user deactivate a Job's Workload."""
    workload = history.workload(name, "Job")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})


def charged(history: History, name: str) -> bool:
    """Say whether quota is reserved for it."""
    return history.shows(name, "QuotaReserved", "Job")


def begun(queue: str, pods: int = 2) -> tuple[History, str]:
    """Return a history in which a Job runs, and where."""
    history = History(shown=False)
    history.job("one", queue, pods=pods)
    cluster = history.until_runs("one", "Job")
    history.until("all of it runs", lambda: history.containers("one", "Job") == pods)
    return history, cluster


@pytest.mark.parametrize("again", [False, True], ids=["", "agent restarted"])
@pytest.mark.parametrize(
    "patch", [ORPHANED, TAKEN_OFF, EVERY_LABEL], ids=["owner", "owner and Job", "owner and labels"]
)
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_84_no_more_runs_than_was_granted_when_pods_are_taken_off_their_job(
    queue: str, patch: dict[str, Any], *, again: bool
) -> None:
    history, cluster = begun(queue)
    take_off(history, cluster, patch, rounds=3)
    if again:
        restart(history, cluster)
    history.until("what nobody granted is stopped", lambda: history.containers("one", "Job") == 2, 120.0)
    history.passes(30.0)
    assert history.containers("one", "Job") == 2
    assert charged(history, "one")


@pytest.mark.parametrize("again", [False, True], ids=["", "agent restarted"])
@pytest.mark.parametrize(
    "patch", [ORPHANED, TAKEN_OFF, EVERY_LABEL], ids=["owner", "owner and Job", "owner and labels"]
)
@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_84_quota_is_released_when_the_last_pod_that_was_taken_off_has_ended(
    queue: str, patch: dict[str, Any], *, again: bool
) -> None:
    history, cluster = begun(queue)
    take_off(history, cluster, patch, rounds=2)
    deactivate(history, "one")
    history.passes(0.5)
    if again:
        restart(history, cluster)
    history.until("released", lambda: not charged(history, "one") or not history.containers("one", "Job"), 240.0)
    assert history.containers("one", "Job") == 0
    history.until("released", lambda: not charged(history, "one"))


@pytest.mark.parametrize("away", ["for the label", "for both"])
@pytest.mark.parametrize("edit", RELABELLED)
def test_hd_85_a_pod_of_an_orphaned_job_is_known_whatever_its_labels_say(edit: str, away: str) -> None:
    history, cluster = begun("travels", 1)
    history.kill_agent(cluster, again=False)
    (pod,) = history.objects(cluster)
    history.edit(cluster, POD, pod["metadata"]["name"], {"metadata": {"labels": RELABELLED[edit]}})
    if away == "for the label":
        history.world.start_agent(cluster)
        history.passes(60.0)
    else:
        history.edit(cluster, JOB, "one", {"metadata": {"finalizers": None}})
    history.delete(cluster, JOB, "one", propagation="Orphan")
    history.passes(3.0)
    if away == "for both":
        history.world.start_agent(cluster)
    history.passes(300.0)
    assert history.containers("one", "Job") == 1


def test_hd_85_a_job_that_has_lost_all_that_names_it_is_known_by_its_template() -> None:
    history, cluster = begun("travels")
    history.kill_agent(cluster, again=False)
    nothing = {"metadata": {"labels": None, "annotations": None, "finalizers": None}}
    history.edit(cluster, JOB, "one", nothing)
    history.world.start_agent(cluster)
    history.passes(60.0)
    assert (history.containers("one", "Job"), charged(history, "one")) == (2, True)
    (job,) = history.objects(cluster, JOB)
    assert job["metadata"].get("labels", {}).keys() >= {LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH}


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_86_what_has_ended_is_removed_though_its_label_is_gone(kind: str) -> None:
    history = History()
    (history.pod if kind == "Pod" else history.job)("one", seconds=10.0)
    cluster = history.until_runs("one", kind)
    history.cut(cluster)
    history.until("it has ended", lambda: history.containers("one", kind) == 0)
    history.passes(3.0)
    history.edit(cluster, POD if kind == "Pod" else JOB, "one", {"metadata": {"labels": {LABEL_ORIGIN: None}}})
    history.passes(3.0)
    history.mend(cluster)
    history.until("it is finished", lambda: history.shows("one", "Finished", kind))
    history.passes(600.0)
    assert not history.objects(cluster, JOB)
    assert not history.objects(cluster, POD)
