"""Pods of a Job that the agent's watch does not show yet: nothing is called stopped while they may run (R7)."""

from __future__ import annotations

from typing import Any

from gatelift_agent.core.values import commands, events
from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY


class Lagging(Stage):
    """A stage on which the watch of pods can stand still, and lists can fail."""

    blind = False
    unreadable = 0
    lists = 0

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        if not (self.blind and storage == ("", "pods")):
            super()._changed(storage, change)

    def _carry(self, command: commands.Command) -> None:
        self.lists += isinstance(command, commands.ReadPods)
        if isinstance(command, commands.ReadPods) and self.unreadable:
            self.unreadable -= 1
            self.events.append(events.PodsNotRead(read_id=command.read_id, message="timeout"))
        else:
            super()._carry(command)


def _runs_unseen(**settings: Any) -> tuple[Lagging, Cluster]:
    """Return a stage with a Job whose pods run, which the agent has not seen."""
    stage = Lagging(**settings)
    stage.start()
    stage.place(kind="Job", name="j")
    stage.blind = True
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert len(cluster.running) == 2
    assert stage.machine.world.objects.all_children() == ()
    return stage, cluster


def _pods_end(stage: Lagging, cluster: Cluster) -> None:
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass


def test_a_job_that_somebody_deleted_is_not_over_while_a_pod_runs_that_no_watch_has_shown() -> None:
    stage, cluster = _runs_unseen()
    stage.remove(JOB, "j")
    stage.pass_seconds(20.0)
    assert stage.document(JOB, "j") is None
    assert stage.peer.of(m.Evicted) == []
    _pods_end(stage, cluster)
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_a_job_is_not_stopped_while_a_pod_runs_that_no_watch_has_shown() -> None:
    stage, cluster = _runs_unseen()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    while cluster._jobs():  # the Job's controller acknowledges; its pods take their time
        pass
    stage.pass_seconds(20.0)
    assert stage.job()["spec"]["suspend"]
    assert stage.peer.of(m.Stopped) == []
    _pods_end(stage, cluster)
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def test_a_list_that_fails_is_asked_for_again() -> None:
    stage, cluster = _runs_unseen()
    stage.unreadable = 3
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    _pods_end(stage, cluster)
    stage.pass_seconds(4.0)
    assert stage.peer.of(m.Stopped) == []
    stage.pass_seconds(30.0)
    assert len(stage.peer.of(m.Stopped)) == 1


def _fails(stage: Lagging, counted: int) -> None:
    """Let the Job's controller say Failed as in Kubernetes 1.30: when it deletes its pods, which it has counted."""
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
    status = {"conditions": [failed], "failed": counted, "active": 0, "ready": 0, "startTime": "2026-01-01T00:00:00Z"}
    stage.change(JOB, "j", {"status": status}, "status")


def test_hd_81_a_job_that_failed_is_not_over_while_a_pod_runs_that_no_watch_has_shown() -> None:
    stage, cluster = _runs_unseen()
    _fails(stage, 2)
    stage.pass_seconds(20.0)
    assert stage.peer.of(m.Finished) == []
    assert stage.state() == "Draining"
    _pods_end(stage, cluster)
    stage.pass_seconds(5.0)
    (said,) = stage.peer.of(m.Finished)
    assert not said.succeeded


def test_a_job_whose_ended_pods_are_all_known_is_over_without_a_list() -> None:
    stage = Lagging()
    stage.start()
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=True)
    while cluster.react():
        pass
    assert stage.peer.of(m.Finished)[0].succeeded
    assert stage.lists == 0


def test_hd_81_a_stop_that_comes_while_a_finished_jobs_pods_stop_is_answered_with_its_end() -> None:
    stage, cluster = _runs_unseen()
    _fails(stage, 2)
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.pass_seconds(3.0)
    assert stage.peer.of(m.Stopped) == []
    _pods_end(stage, cluster)
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Finished)) == len(stage.peer.of(m.Stopped)) == 1
