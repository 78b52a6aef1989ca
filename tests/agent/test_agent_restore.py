"""HD-195. What a user's Job was before it was let go at `local` is given back when it stops; no stop waits for that."""

from __future__ import annotations

import pytest

from gatelift_agent.core.values.asked import WritePurpose
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import ApiWrite, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME

NEVER = [WriteError.INVALID, WriteError.DENIED, WriteError.TOO_LARGE]


def running() -> tuple[Stage, Cluster]:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    meta = {"name": "j", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    stage.create(JOB, {"metadata": meta, "spec": {**JOB_SPEC, "parallelism": 1}})
    stage.settle()
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    return stage, cluster


def restoring(stage: Stage, write: ApiWrite) -> bool:
    asked = stage.machine.world.writes.look(write.write_id)
    return asked is not None and asked.purpose is WritePurpose.RESTORE


def stop(stage: Stage, cluster: Cluster) -> None:
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass


@pytest.mark.parametrize("answer", NEVER)
def test_hd_195_a_restore_that_is_refused_for_good_keeps_no_job_from_stopping(answer: WriteError) -> None:
    stage, cluster = running()
    stage.fail = lambda write: answer if restoring(stage, write) else None
    stop(stage, cluster)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert stage.job()["spec"]["suspend"] is True
    [told] = [each for each in stage.told if each.reason == "TemplateNotRestored"]
    assert (told.warning, told.uid) == (True, stage.job()["metadata"]["uid"])


def test_hd_195_a_restore_without_effect_keeps_no_job_from_stopping() -> None:
    stage, cluster = running()
    stage.idle = lambda write: restoring(stage, write)
    stop(stage, cluster)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert stage.job()["spec"]["suspend"] is True


@pytest.mark.parametrize("answer", [WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.CONFLICT])
def test_hd_195_a_restore_that_may_be_taken_later_is_tried_again(answer: WriteError) -> None:
    stage, cluster = running()
    stage.fail = lambda write: answer if restoring(stage, write) else None
    stop(stage, cluster)
    assert not stage.peer.of(m.Stopped)
    stage.fail = lambda _write: None
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert "gatelift.dev/template-before" not in stage.job()["metadata"].get("annotations", {})
    assert not [each for each in stage.told if each.reason == "TemplateNotRestored"]
