"""HD-3. A worker's object that somebody edits: put back once or ended, told apart from our own changes, no loop."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gatelift_agent.core.refusing.starting import WORD_SECONDS
from gatelift_kube.deciding.writes import ApiWrite, Create, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, POD_SPEC, UNSEEN_SECONDS

PARALLELISM = b'"/spec/parallelism"'
TEMPLATE = {"spec": {"template": {"spec": {"nodeSelector": {"pool": "other"}}}}}


def _job(stage: Stage | None = None) -> tuple[Stage, Cluster]:
    """Return a stage on which a Job of two pods runs."""
    stage = stage or Stage()
    stage.start()
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert stage.state() == "Running"
    return stage, cluster


def _gated() -> Stage:
    """Return a stage with a Job that was made and could not be let go yet."""
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == JOB
    stage.place(kind="Job", name="j")
    assert stage.state() == "Gated"
    return stage


def _end(stage: Stage, cluster: Cluster) -> None:
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass
    stage.pass_seconds(10.0)


def _edit(stage: Stage, **spec: Any) -> None:
    stage.change(JOB, "j", {"spec": spec})


def _told(stage: Stage) -> list[str]:
    return [event.reason for event in stage.told]


# --- put back once -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
def test_hd_3_more_pods_at_once_are_put_back_once_and_its_work_goes_on(restarts: bool) -> None:
    stage, cluster = _job()
    if restarts:
        stage.crash()
        _edit(stage, parallelism=6)
        stage.start()
        stage.confirm()
    else:
        _edit(stage, parallelism=6)
    stage.pass_seconds(2.0)
    assert stage.job()["spec"]["parallelism"] == 2
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])
    assert _told(stage) == ["WorkerObjectEdited"]
    cluster.finishes = True
    while cluster.react():
        pass
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


@pytest.mark.parametrize("restarts", [False, True])
def test_hd_3_what_is_edited_again_is_ended_and_said_when_it_has_stopped(restarts: bool) -> None:
    stage, cluster = _job()
    _edit(stage, parallelism=6)
    stage.pass_seconds(2.0)
    if restarts:
        stage.restart()
        stage.confirm()
    _edit(stage, parallelism=5)
    stage.pass_seconds(2.0)
    assert stage.job()["spec"]["suspend"] is True, "stopped by us, before anything is said"
    assert stage.peer.of(m.Evicted) == []
    _end(stage, cluster)
    [evicted] = stage.peer.of(m.Evicted)
    assert evicted.reason == "WorkerObjectEdited"
    assert "parallelism" in evicted.message
    assert "team-a/j" in evicted.message


@pytest.mark.parametrize("error", [WriteError.DENIED, WriteError.FORBIDDEN, WriteError.INVALID])
def test_hd_3_what_cannot_be_put_back_is_ended(error: WriteError) -> None:
    stage, cluster = _job()
    failures = iter([error])
    stage.fail = lambda write: next(failures, None) if isinstance(write, Patch) and PARALLELISM in write.body else None
    _edit(stage, parallelism=6)
    stage.pass_seconds(2.0)
    _end(stage, cluster)
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectEdited"]


def test_hd_134_a_job_that_was_made_smaller_is_put_back_only_where_it_may_start() -> None:
    """Lease, session and confirmation, as for a lift: the controller makes pods by it."""
    stage, _ = _job()
    stage.cut_stream()
    _edit(stage, parallelism=0)
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"], grace=0)
    stage.change(JOB, "j", {"status": {"active": 0, "ready": 0, "terminating": 0}}, "status")
    stage.pass_seconds(30.0)
    assert stage.job()["spec"]["parallelism"] == 0
    assert _told(stage) == ["WorkerObjectEdited"], "who looks at it sees that it was edited, once"
    stage.mend()
    stage.pass_seconds(WORD_SECONDS)
    assert stage.job()["spec"]["parallelism"] == 0, "not confirmed in this session"
    asked = [each for each in stage.peer.of(m.Applied) if each.waits]
    assert [each.key for each in asked] == [KEY] * 2, "it asks for that, and once more after a while"
    stage.confirm()
    assert stage.job()["spec"]["parallelism"] == 2


def test_hd_134_a_job_that_was_made_larger_is_put_back_without_a_session() -> None:
    """Nothing starts by that, and more runs than is charged until it is done."""
    stage, _ = _job()
    stage.cut_stream()
    _edit(stage, parallelism=6)
    stage.pass_seconds(2.0)
    assert stage.job()["spec"]["parallelism"] == 2


def test_hd_3_an_edit_that_somebody_makes_over_and_over_is_no_loop() -> None:
    stage, cluster = _job()
    stage.idle = lambda write: isinstance(write, Patch) and PARALLELISM in write.body
    _edit(stage, parallelism=6)
    stage.pass_seconds(5.0)
    assert len([write for write in stage.written(Patch, JOB) if PARALLELISM in write.body]) == 1
    _end(stage, cluster)
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectEdited"]


# --- ended -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
def test_hd_3_a_job_that_somebody_suspends_is_evicted_after_our_own_stop(restarts: bool) -> None:
    stage, cluster = _job()
    if restarts:
        stage.crash()
        stage.change(JOB, "j", {"spec": {"suspend": True}})
        stage.start()
        stage.confirm()
    else:
        stage.change(JOB, "j", {"spec": {"suspend": True}})
    assert stage.peer.of(m.Evicted) == []
    assert stage.state() == "Draining"
    assert stage.job()["metadata"]["labels"]["gatelift.dev/stopping"] == f"{KEY.uid}.{KEY.epoch}", (
        "a write of ours (R7)"
    )
    _end(stage, cluster)
    if restarts:  # pods that its controller deleted meanwhile were seen by nobody (HD-80)
        assert stage.peer.of(m.Evicted) == []
        stage.pass_seconds(UNSEEN_SECONDS)
    [evicted] = stage.peer.of(m.Evicted)
    assert evicted.reason == "WorkerObjectSuspended"
    assert stage.job()["spec"]["suspend"] is True, "it is not let go again"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("spec", [{"parallelism": 6}, TEMPLATE["spec"]], ids=["parallelism", "template"])
def test_hd_3_what_is_edited_before_it_is_let_go_never_runs_edited(spec: dict[str, Any], restarts: bool) -> None:
    stage = _gated()
    if restarts:
        stage.crash()
        stage.held.clear()
        stage.change(JOB, "j", {"spec": spec})
        stage.hold = lambda _write: False
        stage.start()
        stage.confirm()
    else:
        stage.change(JOB, "j", {"spec": spec})
        stage.hold = lambda _write: False
        stage.land()
    stage.pass_seconds(5.0)
    assert not (stage.job()["spec"]["suspend"] is False and "nodeSelector" in str(stage.job()["spec"]["template"]))
    if stage.job()["spec"]["suspend"] is False:
        assert stage.job()["spec"]["parallelism"] == 2
        return
    _end(stage, Cluster(stage, finishes=False))
    stage.pass_seconds(UNSEEN_SECONDS if restarts else 0.0)
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectEdited"]


def test_hd_3_a_running_pod_whose_requests_are_raised_in_place_is_ended() -> None:
    stage = Stage()
    stage.start()
    stage.place(spec=_asking("1"))
    stage.run()
    _resize(stage, "4")
    assert stage.pod()["metadata"]["deletionTimestamp"]
    assert stage.peer.of(m.Evicted) == []
    stage.finish(phase="Failed")
    [evicted] = stage.peer.of(m.Evicted)
    assert evicted.reason == "WorkerObjectEdited"
    assert "resources" in evicted.message


def test_hd_3_requests_that_were_raised_while_the_agent_was_away_end_it_too() -> None:
    stage = Stage()
    stage.start()
    stage.place(spec=_asking("1"))
    stage.run()
    stage.crash()
    _resize(stage, "4")
    stage.start()
    stage.confirm()
    stage.finish(phase="Failed")
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectEdited"]


@pytest.mark.parametrize("restarts", [False, True])
def test_hd_203_an_image_that_is_changed_in_place_is_told_and_the_run_goes_on(restarts: bool) -> None:
    """Nothing is charged for it, and who looks at it sees that somebody else than its user chose it."""
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    if restarts:
        stage.crash()
    container = stage.pod()["spec"]["containers"][0]
    stage.change(POD, "p", {"spec": {"containers": [{**container, "image": "other"}]}})
    if restarts:
        stage.start()
        stage.confirm()
    stage.change(POD, "p", {"metadata": {"labels": {"seen": "again"}}})
    stage.pass_seconds(5.0)
    assert _told(stage) == ["WorkerObjectEdited"], "once"
    assert "image" in stage.told[0].message
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


ANOTHER = [{"key": "zz", "operator": "Exists"}]
CHANGES: dict[str, Any] = {"activeDeadlineSeconds": 77, "tolerations": ANOTHER}


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fields", [*((one,) for one in CHANGES), tuple(CHANGES)], ids="+".join)
def test_hd_213_what_else_is_changed_in_place_at_a_worker_is_told_there(
    fields: tuple[str, ...], restarts: bool
) -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    if restarts:
        stage.crash()
    changes = CHANGES | {"tolerations": [*stage.pod()["spec"]["tolerations"], *ANOTHER]}
    stage.change(POD, "p", {"spec": {one: changes[one] for one in fields}})
    if restarts:
        stage.start()
        stage.confirm()
    stage.change(POD, "p", {"metadata": {"labels": {"seen": "again"}}})
    stage.pass_seconds(5.0)
    assert _told(stage) == ["WorkerObjectEdited"], "once, for all of them"
    text = ", ".join(f"spec.{one}" for one in fields)
    assert stage.told[0].message.startswith(f"{text} was changed by somebody else; home does not see it")
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


def test_hd_213_what_was_told_is_not_told_again_after_a_restart() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    for field in CHANGES:
        before = len(stage.told)
        change = CHANGES | {"tolerations": [*stage.pod()["spec"]["tolerations"], *ANOTHER]}
        change = {field: change[field]}
        stage.change(POD, "p", {"spec": change})
        stage.pass_seconds(30.0)
        assert len(stage.told) == before + 1
        stage.crash()
        stage.start()
        stage.confirm()
        stage.pass_seconds(30.0)
        assert len(stage.told) == before + 1
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


def _restarted_with(forget: Callable[[dict[str, Any]], object], **changes: Any) -> Stage:
    """Return a stage on which a pod's mark has lost something, and its spec was changed, while no agent ran."""
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.crash()
    mark = msgspec.json.decode(stage.pod()["metadata"]["annotations"]["gatelift.dev/made"])
    forget(mark)
    text = msgspec.json.encode(mark).decode()
    stage.change(POD, "p", {"metadata": {"annotations": {"gatelift.dev/made": text}}, **changes})
    stage.start()
    stage.confirm()
    stage.pass_seconds(5.0)
    return stage


def test_hd_213_a_field_that_a_mark_does_not_know_of_is_no_edit() -> None:
    stage = _restarted_with(lambda mark: mark["uncharged"].pop("tolerations"))
    assert (stage.state(), _told(stage)) == ("Running", [])


def test_hd_203_a_mark_of_before_images_were_known_is_no_edit() -> None:
    stage = _restarted_with(lambda mark: mark.pop("uncharged"))
    assert (stage.state(), _told(stage), stage.peer.of(m.Evicted)) == ("Running", [], [])


# --- no edit -----------------------------------------------------------------------------------------------------


class Mutating(Stage):
    """A stage whose cluster has webhooks and defaults: creates and lifts get something of their own."""

    def _carry_out(self, command: ApiWrite) -> Any:
        if isinstance(command, Create) and command.ref.resource in (POD, JOB):
            document = msgspec.json.decode(command.body)
            spec = document["spec"]
            pod_spec = spec["template"]["spec"] if command.ref.resource == JOB else spec
            pod_spec["containers"][0].setdefault("resources", {"requests": {"cpu": "50m"}})
            spec.setdefault("completionMode", "NonIndexed") if command.ref.resource == JOB else None
            command = replace(command, body=msgspec.json.encode(document))
        if isinstance(command, Patch) and b'"/spec/suspend"' in command.body:
            path = "/spec/template/spec/nodeSelector"
            lift = [*msgspec.json.decode(command.body), {"op": "add", "path": path, "value": {"pool": "own"}}]
            command = replace(command, body=msgspec.json.encode(lift))
        return super()._carry_out(command)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_3_what_the_workers_webhooks_and_defaults_add_is_no_edit(kind: str, restarts: bool) -> None:
    stage = Mutating()
    stage.start()
    name = "p" if kind == "Pod" else "j"
    granted = m.PodSetRequest(name="main", count=2, requests=(("cpu", 100),))  # as home charges by the same LimitRange
    stage.place(kind=kind, name=name, pod_sets=(granted,))
    if restarts:
        stage.restart()
        stage.confirm()
    cluster = Cluster(stage)
    while cluster.react():
        pass
    stage.pass_seconds(UNSEEN_SECONDS if restarts else 0.0)  # what a Job just let go had made before is doubted so long
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]
    assert (stage.peer.of(m.Evicted), _told(stage)) == ([], [])


@pytest.mark.parametrize("spec", [{"backoffLimit": 3}, {"activeDeadlineSeconds": 100}, {"ttlSecondsAfterFinished": 5}])
def test_hd_3_what_changes_no_charge_is_the_workers_own_business(spec: dict[str, Any]) -> None:
    stage, _ = _job()
    _edit(stage, **spec)
    stage.restart()
    stage.confirm()
    stage.pass_seconds(5.0)
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


def test_hd_3_our_own_stop_is_no_edit_after_a_restart_either() -> None:
    stage, cluster = _job()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.restart()
    stage.confirm()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    _end(stage, cluster)
    stage.pass_seconds(UNSEEN_SECONDS)
    assert [each.reason for each in stage.peer.of(m.Stopped)] == ["Preempted"]
    assert stage.peer.of(m.Evicted) == []


def test_hd_3_a_job_made_before_there_were_marks_is_taken_as_it_is() -> None:
    stage, _ = _job()
    stage.crash()
    stage.change(JOB, "j", {"metadata": {"annotations": {"gatelift.dev/made": None}}})
    stage.start()
    stage.confirm()
    stage.pass_seconds(5.0)
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


@pytest.mark.parametrize("text", ["{", "[]", '{"parallelism":"' + "9" * 5000 + '"}', '{"parallelism":-1}', "null"])
def test_hd_3_a_mark_that_cannot_be_read_counts_as_an_edit_at_most(text: str) -> None:
    stage, _ = _job()
    stage.crash()
    stage.change(JOB, "j", {"metadata": {"annotations": {"gatelift.dev/made": text}}})
    stage.start()
    stage.confirm()
    stage.pass_seconds(5.0)
    assert stage.peer.open
    assert stage.job()["spec"]["parallelism"] == 2


def _asking(cpu: str) -> dict[str, Any]:
    spec = copy.deepcopy(POD_SPEC)
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return spec


def _resize(stage: Stage, cpu: str) -> None:
    containers = [{**POD_SPEC["containers"][0], "resources": {"requests": {"cpu": cpu}}}]
    stage.change(POD, "p", {"spec": {"containers": containers}}, "resize")
