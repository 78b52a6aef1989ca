"""Writes of an agent whose answers are lost: what has to go goes in the end, also when the write never landed."""

from __future__ import annotations

import pytest

from gatelift_kube.resources import JOB, POD
from gatelift_kube.writes import Delete, WriteError
from gatelift_wire import messages as m
from support.agent_drivers import Cluster
from support.agent_stage import Stage
from support.agent_values import KEY


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
