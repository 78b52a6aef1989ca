"""IS-46: what failed is told with the end: pod, node, container, exit code, reason, last words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_agent.core.memory import records
from gatelift_agent.core.placement import failures
from gatelift_agent.core.placement.failures import Failures
from gatelift_kinds.registry import SERVED
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.told import FailedContainer
from support.agent.drivers import fail_pod, failed_job, running_job
from support.agent.stage import Stage
from support.agent.values import KEY

FAILED = FailedContainer(
    pod="j-0", node="node-1", container="main", exit_code=3, reason="Error", message="no such file"
)


def finished(stage: Stage) -> list[FailedContainer | None]:
    return [one.failed for one in stage.peer.of(m.Finished)]


def test_is_46_a_job_that_failed_says_which_container_was_the_first() -> None:
    assert finished(failed_job()) == [FAILED]


def test_is_46_a_pod_that_failed_says_which_of_its_containers_was_the_first() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    fail_pod(stage, "p")
    assert [one and (one.pod, one.exit_code) for one in finished(stage)] == [("p", 3)]


def test_is_46_work_that_succeeded_tells_of_no_failure_that_it_got_over() -> None:
    stage, cluster = running_job()
    fail_pod(stage, "j-0")
    stage.remove(POD, "j-0", grace=0)
    stage.change(JOB, "j", {"status": {"failed": 1}}, "status")
    stage.change(POD, "j-1", {"status": {"phase": "Succeeded"}}, "status")
    said = [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]
    status = {"succeeded": 2, "active": 0, "completionTime": "2026-01-01T00:00:09Z", "conditions": said}
    status["startTime"] = "2026-01-01T00:00:00Z"
    stage.change(JOB, "j", {"status": status}, "status")
    stage.pass_seconds(5.0)
    assert finished(stage) == [None]
    assert cluster.stage is stage


def test_is_46_it_is_told_again_to_a_session_that_knows_nothing_and_by_the_next_process() -> None:
    stage = failed_job()
    stage.cut_stream()
    stage.mend(resume=False)
    assert finished(stage)[-1] == FAILED
    stage.crash()
    stage.restart()
    assert finished(stage)[-1] == FAILED
    assert len(finished(stage)) == 3


def test_is_46_nothing_is_kept_of_it_once_the_manager_has_forgotten_the_placement() -> None:
    stage = failed_job()
    assert len(stage.machine.world.failures) == 1
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(5.0)
    assert len(stage.machine.world.failures) == 0


def test_is_46_pods_that_outlive_their_job_are_noted_no_more() -> None:
    stage = failed_job()
    stage.send(m.Forget(key=KEY))
    stage.change(POD, "j-0", {"metadata": {"labels": {"example.com/late": "yes"}}})
    assert len(stage.machine.world.failures) == 0


def test_is_46_a_record_keeps_it_and_what_somebody_made_of_a_record_is_not_told() -> None:
    placement = failed_job().placement()
    assert placement is not None
    text = records.encode(placement)
    known = records.decode(SERVED, text)
    assert known is not None
    assert known.failed == FAILED
    edited = records.decode(SERVED, text.replace('"j-0"', '"j/0"'))
    assert edited is not None
    assert edited.failed is None


def test_is_46_so_many_jobs_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "JOBS_MAX", 3)
    known = Failures()
    document: dict[str, Any] = {"metadata": {"name": "p"}, "status": {"phase": "Failed"}}
    raw = msgspec.json.encode(document)
    for number in range(5):
        known.seen(str(number), msgspec.json.decode(raw, type=Pod), raw)
    assert len(known) == 3
