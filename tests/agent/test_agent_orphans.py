"""HD-84, HD-85. Pods that somebody took off their Job: whose they are, when they are ended, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gatelift_agent.core.placement.pods_of_jobs import Hidden
from gatelift_agent.core.seeing.orphans import COLLECT_SECONDS, TAKEN_OFF
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import Delete, EmitEvent, WriteError
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import running_job
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC

LABELS = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": KEY.uid, "gatelift.dev/epoch": "1"}
OFF = {"metadata": {"ownerReferences": None, "labels": None}}


def take_off(stage: Stage, patch: dict[str, Any] = OFF) -> str:
    """Let somebody take a pod off its Job; return its name."""
    name: str = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    stage.change(POD, name, patch)
    return name


def toleration(uid: str = KEY.uid, job: str = "j", origin: str = ORIGIN) -> dict[str, str]:
    key = f"{origin}.placed-as.gatelift.dev/{job}"
    return {"key": key, "operator": "Equal", "value": f"{uid}.1", "effect": "NoSchedule"}


def wears(stage: Stage, namespace: str = NAMESPACE_NAME, **mark: str) -> None:
    """Let a tenant make a pod that wears our labels and a mark."""
    meta = {"name": "tenants", "namespace": namespace, "labels": LABELS}
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "tolerations": [toleration(**mark)]}})
    stage.settle()


def test_hd_84_a_pod_that_was_taken_off_its_job_is_deleted_once_and_told() -> None:
    stage, _ = running_job()
    name = take_off(stage)
    stage.pass_seconds(COLLECT_SECONDS - 1.0)
    assert stage.written(Delete) == []
    stage.pass_seconds(2.0)
    assert [(each.ref.resource, each.ref.key.name) for each in stage.written(Delete)] == [(POD, name)]
    [told] = [each for each in stage.told if isinstance(each, EmitEvent) and each.reason == TAKEN_OFF]
    assert (told.ref.key.name, name in told.message) == ("j", True)
    stage.pass_seconds(COLLECT_SECONDS * 3)
    assert len(stage.written(Delete)) == 1, "it is on its way"


@pytest.mark.parametrize(("own", "asked"), [(3600, 30), (31, 30), (None, None), (30, None), (5, None)])
def test_hd_221_what_was_taken_off_its_job_has_no_more_time_to_end_than_kubernetes_gives(
    own: int | None, asked: int | None
) -> None:
    stage, _ = running_job(spec={**JOB_SPEC, "template": {"spec": patient(own)}})
    take_off(stage)
    stage.pass_seconds(COLLECT_SECONDS + 1.0)
    assert [each.grace_seconds for each in stage.written(Delete)] == [asked]


def test_hd_221_what_is_deleted_with_hours_as_it_is_taken_off_its_job_is_deleted_with_less() -> None:
    stage, _ = running_job(spec={**JOB_SPEC, "template": {"spec": patient(3600)}})
    name = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    stage.remove(POD, name)
    take_off(stage)
    stage.pass_seconds(COLLECT_SECONDS + 1.0)
    assert [each.grace_seconds for each in stage.written(Delete)] == [30]
    stage.pass_seconds(COLLECT_SECONDS * 2)
    assert len(stage.written(Delete)) == 1, "it is on its way, and in time"


def test_hd_221_what_a_job_that_is_gone_has_left_ends_in_its_own_time() -> None:
    """Nothing was made in its place, and its placement is charged until it has ended."""
    stage, _ = running_job(spec={**JOB_SPEC, "template": {"spec": patient(3600)}})
    for pod in stage.store.look_all(("", "pods")):
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    stage.remove(JOB, "j", grace=0)
    stage.pass_seconds(COLLECT_SECONDS * 2)
    assert {each.grace_seconds for each in stage.written(Delete) if each.ref.resource == POD} == {None}


def patient(seconds: int | None) -> dict[str, Any]:
    """Return a pod's spec that says how long it has for its end."""
    said = {} if seconds is None else {"terminationGracePeriodSeconds": seconds}
    return {**POD_SPEC, "restartPolicy": "Never", **said}


def test_hd_84_a_pod_that_its_job_takes_back_is_left_alone_and_has_its_time_again() -> None:
    stage, _ = running_job()
    name = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    owners = stage.pod(name)["metadata"]["ownerReferences"]
    for _ in range(3):
        stage.change(POD, name, {"metadata": {"ownerReferences": None}})
        stage.pass_seconds(COLLECT_SECONDS - 2.0)
        stage.change(POD, name, {"metadata": {"ownerReferences": owners}})
        stage.pass_seconds(1.0)
    assert stage.written(Delete) == []


@pytest.mark.parametrize("error", [WriteError.FORBIDDEN, WriteError.DENIED, WriteError.UNKNOWN])
def test_hd_84_a_deletion_that_is_refused_is_tried_again_with_a_pause_and_the_run_is_not_over(
    error: WriteError,
) -> None:
    stage, cluster = running_job()
    stage.fail = lambda write: error if isinstance(write, Delete) else None
    take_off(stage)
    stage.pass_seconds(1.0)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    while cluster.react():
        pass
    for pod in stage.store.look_all(("", "pods")):
        if pod["metadata"].get("ownerReferences"):
            stage.remove(POD, pod["metadata"]["name"], grace=0)
    stage.pass_seconds(300.0)
    assert stage.state() == "Draining"
    assert stage.peer.of(m.Stopped) == []
    assert 2 <= len(stage.written(Delete)) <= 40


def test_hd_84_a_deposed_replica_deletes_none() -> None:
    stage, _ = running_job()
    stage.machine.world.leadership.valid_until = stage.now
    take_off(stage, {"metadata": {"ownerReferences": None}})
    stage.pass_seconds(60.0)
    assert stage.written(Delete) == []


def test_hd_84_a_job_that_is_complete_is_not_over_while_a_pod_that_was_taken_off_it_runs() -> None:
    stage, _ = running_job()
    name = take_off(stage)
    for pod in stage.store.look_all(("", "pods")):
        if pod["metadata"]["name"] != name:
            stage.finish(pod["metadata"]["name"])
    met = [
        {"type": each, "status": "True", "reason": "CompletionsReached"} for each in ("SuccessCriteriaMet", "Complete")
    ]
    done = {"conditions": met, "succeeded": 2, "active": 0, "completionTime": "2026-01-01T00:00:01Z"}
    done["startTime"] = "2026-01-01T00:00:00Z"
    stage.change(JOB, "j", {"status": done}, "status")
    stage.pass_seconds(1.0)
    assert stage.peer.of(m.Finished) == []
    stage.finish(name)
    stage.pass_seconds(10.0)
    assert len(stage.peer.of(m.Finished)) == 1


def test_hd_85_after_a_restart_the_mark_tells_and_the_labels_are_put_back() -> None:
    stage, _ = running_job()
    stage.hold = lambda write: write.ref.resource == POD
    name = take_off(stage)
    stage.restart()
    stage.hold = lambda _write: False
    stage.held.clear()
    stage.restart()
    stage.pass_seconds(1.0)
    assert LABELS.items() <= stage.pod(name)["metadata"].get("labels", {}).items()
    assert len(stage.machine.world.objects.all_children()) == 2
    stage.pass_seconds(COLLECT_SECONDS)
    assert [each.ref.key.name for each in stage.written(Delete)] == [name]


def test_hd_84_what_was_taken_off_a_job_is_none_of_the_pods_that_it_has_counted() -> None:
    """A Job that is over has made no other pods than those it counted: only then no list has to prove it."""
    stage, _ = running_job()
    names = [pod["metadata"]["name"] for pod in stage.store.look_all(("", "pods"))]
    for name in names:
        stage.change(POD, name, {"metadata": {"ownerReferences": None}})
        stage.finish(name)
        stage.remove(POD, name, grace=0)
    stage.pass_seconds(5.0)
    placement = stage.placement()
    assert placement is not None
    assert placement.children_gone == 0


@pytest.mark.parametrize(
    "mark",
    [{"uid": "other"}, {"job": "k"}, {"origin": "elsewhere"}],
    ids=["another workload", "another Job", "another origin"],
)
def test_hd_85_a_tenants_pod_with_the_mark_of_nothing_that_is_here_holds_no_placement(mark: dict[str, str]) -> None:
    stage, _ = running_job()
    wears(stage, **mark)
    stage.pass_seconds(60.0)
    assert stage.written(Delete) == []
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    for pod in stage.store.look_all(("", "pods")):
        if pod["metadata"].get("ownerReferences"):
            stage.remove(POD, pod["metadata"]["name"], grace=0)
    stage.pass_seconds(1.0)
    assert "tenants" not in [pod.metadata.name for pod in stage.machine.world.objects.all_children()]


@pytest.mark.parametrize("mode", list(AgentMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("uid", [KEY.uid, "other"])
def test_hd_85_what_wears_a_mark_and_has_no_job_is_listed_under_that_name_and_ended(mode: AgentMode, uid: str) -> None:
    """The manager believes it only where it stands in the place of that workload's object (HD-43)."""
    stage = Stage(mode=mode)
    stage.start()
    wears(stage, uid=uid)
    stage.run("tenants")
    stage.restart()
    [entry] = stage.peer.inventories[-1]
    assert (entry.key.uid, entry.namespace, entry.name, entry.lifted) == (uid, NAMESPACE_NAME, "j", False)
    stage.pass_seconds(COLLECT_SECONDS + 1.0)
    assert [each.ref.key.name for each in stage.written(Delete)] == ["tenants"]


def test_hd_122_a_stop_waits_for_a_pod_that_no_watch_shows_until_it_was_asked_for() -> None:
    stage, cluster = running_job()
    placement = stage.placement()
    assert placement is not None
    elsewhere = replace(stage.machine.world.children(placement)[0].metadata, uid="not-shown", name="not-shown")
    placement.hidden["not-shown"] = Hidden(pod=Pod(metadata=elsewhere), asked=True)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass
    stage.pass_seconds(60.0)
    assert stage.peer.of(m.Stopped) == []
    placement.hidden.clear()
    stage.machine.world.look(KEY)
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Stopped)) == 1


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
def test_hd_84_pods_that_were_taken_off_are_not_missed_after_a_restart(*, restarts: bool) -> None:
    """HD-132: what no controller counted and is gone is doubted, for longer than this; they are there."""
    stage, cluster = running_job()
    take_off(stage)
    if restarts:
        stage.restart()
        stage.confirm()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(COLLECT_SECONDS + 1.0)
    while cluster.react():
        pass
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"], grace=0)
    stage.pass_seconds(10.0)
    assert len(stage.peer.of(m.Stopped)) == 1
