"""Writes of an agent whose answers are lost: what has to go goes in the end, also when the write never landed."""

from __future__ import annotations

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import Delete, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME


@pytest.mark.parametrize("error", [WriteError.UNKNOWN, WriteError.FORBIDDEN, WriteError.INVALID])
def test_a_last_delete_that_never_landed_is_asked_for_again(error: WriteError) -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.finish()
    failures = iter([error])
    stage.fail = lambda write: next(failures, None) if isinstance(write, Delete) else None
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.document(POD, "p") is None
    assert stage.state() == "none"


def test_a_job_whose_last_delete_never_landed_is_deleted_after_all() -> None:
    stage = Stage()
    stage.start()
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage)
    while cluster.react():
        pass
    failures = iter([WriteError.UNKNOWN])
    stage.fail = lambda write: next(failures, None) if isinstance(write, Delete) and write.ref.resource == JOB else None
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.document(JOB, "j") is None
    assert stage.state() == "none"


def test_a_job_of_the_user_that_goes_before_it_was_let_go_is_stopped_when_the_manager_says_so() -> None:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    meta = {"name": "j", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    stage.create(JOB, {"metadata": meta, "spec": JOB_SPEC})
    stage.settle()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == JOB
    stage.place(kind="Job", name="j")
    assert stage.state() == "Gated"
    stage.remove(JOB, "j")
    stage.hold = lambda _write: False
    stage.lose()
    stage.pass_seconds(5.0)
    assert stage.state() == "Gated"
    stage.send(m.Stop(key=KEY, reason="OwnerDeleted"))
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Stopped)) == 1
