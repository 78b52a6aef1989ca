"""IS-45: an agent tells what keeps pods from running when nothing else of them is news."""

from __future__ import annotations

import json

import pytest

from gatelift_agent.core.reporting.troubles import TROUBLE_SECONDS
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kinds.shared.markers import ADMISSION_GATE
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.told import PodTrouble
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, POD_SPEC

A_WHILE = TROUBLE_SECONDS + 5.0


def test_is_45_a_pod_that_no_node_takes_is_reported_though_it_was_before() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.pass_seconds(3.0)
    gated = {"type": "PodScheduled", "status": "False", "reason": "Other"}
    stage.change(POD, "p", {"status": {"conditions": [gated]}}, "status")
    stage.pass_seconds(3.0)
    told = len(stage.peer.of(m.ObjectReport))
    stage.change(POD, "p", {"status": {"conditions": [{**gated, "reason": "Unschedulable"}]}}, "status")
    stage.pass_seconds(3.0)
    assert len(stage.peer.of(m.ObjectReport)) == told + 1
    (said,) = json.loads(stage.peer.of(m.ObjectReport)[-1].status)["conditions"]
    assert said["reason"] == "Unschedulable"


# --- gates -----------------------------------------------------------------------------------------------------------

GATE = "example.com/quarantine"


def told(stage: Stage) -> list[tuple[PodTrouble, ...]]:
    return [each.troubles for each in stage.peer.of(m.CountsReport)]


@pytest.mark.parametrize("mode", [AgentMode.REMOTE, AgentMode.LOCAL])
def test_is_45_a_pod_that_waits_for_a_gate_of_others_says_for_which(mode: AgentMode) -> None:
    stage = Stage(mode=mode)
    stage.start()
    spec = {**POD_SPEC, "schedulingGates": [{"name": GATE}]}
    if mode is AgentMode.LOCAL:
        held = {**spec, "schedulingGates": [*spec["schedulingGates"], {"name": ADMISSION_GATE}]}
        labels = {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "q"}
        stage.create(POD, {"metadata": {"name": "p", "namespace": "team-a", "labels": labels}, "spec": held})
        stage.settle()
    stage.place(spec=spec)
    stage.pass_seconds(TROUBLE_SECONDS - 1.0)
    assert told(stage) == []
    stage.pass_seconds(3600.0)
    text = f'waits for scheduling gate "{GATE}" to be taken off'
    assert told(stage) == [(PodTrouble(reason="SchedulingGated", pod="p", text=text),)], "once"
    stage.change(POD, "p", {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}})
    stage.pass_seconds(A_WHILE)
    assert stage.state() == "Running"
    assert told(stage)[1:] == [()]


def test_is_45_a_pod_that_waits_for_our_gate_alone_tells_nothing() -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    stage.pass_seconds(60.0)
    assert (stage.state(), told(stage)) == ("Gated", [])


def test_is_45_pods_of_a_job_that_wait_for_a_gate_say_for_which() -> None:
    stage = Stage()
    stage.start()
    cluster = Cluster(stage, finishes=False)
    template = {"spec": {**POD_SPEC, "restartPolicy": "Never", "schedulingGates": [{"name": GATE}, {"name": "b/c"}]}}
    stage.place(kind="Job", name="j", spec={**JOB_SPEC, "template": template})
    while cluster.react():
        pass
    stage.pass_seconds(A_WHILE)
    ((one,),) = told(stage)[-1:]
    assert (one.reason, one.text) == ("SchedulingGated", f'waits for scheduling gates "{GATE}", "b/c" to be taken off')
    for name in sorted(each["metadata"]["name"] for each in stage.store.look_all(("", "pods"))):
        stage.change(POD, name, {"spec": {"schedulingGates": None}})
    stage.pass_seconds(A_WHILE)
    assert told(stage)[-1] == ()


# --- pods of a Job ---------------------------------------------------------------------------------------------------


def a_job_with_pods() -> tuple[Stage, list[str]]:
    stage = Stage()
    stage.start()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.pass_seconds(A_WHILE)
    return stage, sorted(each["metadata"]["name"] for each in stage.store.look_all(("", "pods")))


def say(stage: Stage, name: str, *, ready: bool = False, reason: str = "", phase: str = "Pending") -> None:
    container = {"name": "main", "image": "app:1", "state": {"waiting": {"reason": reason}} if reason else {}}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
    stage.change(POD, name, {"status": status}, "status")


def troubles(stage: Stage) -> tuple[PodTrouble, ...]:
    found: tuple[PodTrouble, ...] = stage.peer.of(m.CountsReport)[-1].troubles
    return found


def test_is_45_of_a_jobs_pods_the_first_trouble_is_told_until_it_is_over() -> None:
    stage, (first, second) = a_job_with_pods()
    assert troubles(stage) == ()
    say(stage, second, reason="CrashLoopBackOff")
    stage.pass_seconds(A_WHILE)
    (told,) = troubles(stage)
    assert (told.reason, told.pod) == ("ContainerCrashes", second)
    say(stage, first, reason="ImagePullBackOff")
    stage.pass_seconds(A_WHILE)
    (told,) = troubles(stage)
    assert (told.reason, told.pod) == ("ImageNotPulled", first)
    for name in (first, second):
        say(stage, name, ready=True, phase="Running")
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == ()


def test_is_45_what_passes_and_what_goes_round_is_not_told_each_time() -> None:
    stage, (first, _) = a_job_with_pods()
    say(stage, first)
    stage.pass_seconds(A_WHILE)
    told = len(stage.peer.of(m.CountsReport))
    for _ in range(50):
        say(stage, first, reason="ErrImagePull")
        stage.pass_seconds(TROUBLE_SECONDS / 4)
        say(stage, first, reason="ContainerCreating")
        stage.pass_seconds(TROUBLE_SECONDS / 4)
    assert len(stage.peer.of(m.CountsReport)) == told
    for reason in ("ErrImagePull", "ImagePullBackOff") * 25:
        say(stage, first, reason=reason)
        stage.pass_seconds(1.0)
    assert [len(one.troubles) for one in stage.peer.of(m.CountsReport)[told:]] == [1]


def test_is_45_a_pod_that_failed_is_trouble_while_no_other_is_ready() -> None:
    stage, (first, second) = a_job_with_pods()
    say(stage, second)
    say(stage, first, phase="Failed")
    stage.pass_seconds(A_WHILE)
    assert [(one.pod, one.text) for one in troubles(stage)] == [(first, "it has failed")]
    say(stage, second, ready=True, phase="Running")
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == ()


def test_is_45_a_session_that_begins_anew_is_told_again_and_what_is_gone_is_forgotten() -> None:
    stage, (first, _) = a_job_with_pods()
    say(stage, first, reason="ErrImagePull")
    stage.pass_seconds(A_WHILE)
    stage.cut_stream()
    stage.mend(resume=False)
    stage.pass_seconds(A_WHILE)
    assert [one.pod for one in troubles(stage)] == [first]
    stage.remove(POD, first)
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == ()
