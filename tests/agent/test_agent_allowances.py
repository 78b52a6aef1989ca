"""HD-151. A pod asks for no more than was granted for it, whatever the worker adds, or it is never let go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gatelift_agent.core.changes.allowances import ANNOTATION_GRANTED, GRANTED_BYTES_MAX, SAMPLE_SECONDS
from gatelift_kube.deciding.writes import ApiWrite, Create, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, POD_SPEC

Doc = dict[str, Any]
KINDS = ["Pod", "Job"]


def _asking(**resources: str) -> Callable[[Doc], None]:
    def change(spec: Doc) -> None:
        spec["containers"][0].setdefault("resources", {}).setdefault("requests", {}).update(resources)

    return change


class Adding(Stage):
    """A stage whose cluster changes each pod that is made there, by the agent or by the Job controller."""

    adds: Callable[[Doc], None] = staticmethod(lambda _spec: None)

    def _carry_out(self, command: ApiWrite) -> Any:
        if isinstance(command, Create) and command.ref.resource == POD:
            document = msgspec.json.decode(command.body)
            self.adds(document["spec"])
            command = replace(command, body=msgspec.json.encode(document))
        return super()._carry_out(command)


def _stage(adds: Callable[[Doc], None]) -> Adding:
    stage = Adding()
    stage.adds = adds
    stage.start()
    return stage


def _place(stage: Stage, kind: str, granted: dict[str, int] | None = None, spec: Doc | None = None) -> None:
    """Place one pod, or a Job of two, with so much granted for each."""
    count = 1 if kind == "Pod" else 2
    requests = tuple((name, amount * count) for name, amount in (granted or {}).items())
    pod_sets = (m.PodSetRequest(name="main", count=count, requests=requests),)
    whole = None if spec is None else spec if kind == "Pod" else {**JOB_SPEC, "template": {"spec": spec}}
    stage.place(kind=kind, name=_name(kind), pod_sets=pod_sets, spec=whole)


def _name(kind: str) -> str:
    return "p" if kind == "Pod" else "j"


def _after_the_create(write: ApiWrite) -> bool:
    """Say whether it is what the agent writes of an object that it has made."""
    made = isinstance(write, Patch) or (isinstance(write, Create) and write.dry_run)
    return made and write.ref.resource in (POD, JOB)


def _lifted(stage: Stage) -> bool:
    return any(b"schedulingGates" in each.body or b"/spec/suspend" in each.body for each in stage.written(Patch))


def _refused(stage: Stage) -> list[Refusal]:
    stage.pass_seconds(40.0)
    return [each.refusal for each in stage.peer.of(m.Refused)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("asked", "granted"),
    [({"cpu": "500m"}, {"cpu": 499}), ({"cpu": "1", "memory": "1Gi"}, {"cpu": 1000}), ({"example.com/gpu": "1"}, {})],
    ids=["one more than granted", "a resource that was not granted", "nothing was granted"],
)
def test_hd_151_what_asks_for_more_than_was_granted_is_never_let_go(
    kind: str, asked: dict[str, str], granted: dict[str, int]
) -> None:
    stage = _stage(_asking(**asked))
    _place(stage, kind, granted)
    assert _refused(stage) == [Refusal.REQUESTS_RAISED]
    assert not _lifted(stage)


@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_the_refusal_names_the_resource_both_amounts_and_the_way_out(kind: str) -> None:
    stage = _stage(_asking(cpu="1500m"))
    _place(stage, kind, {"cpu": 250})
    stage.pass_seconds(40.0)
    [said] = stage.peer.of(m.Refused)
    for part in (f"team-a/{_name(kind)}", "cpu", "1500m", "250m", "LimitRange", "RuntimeClass", "manifest"):
        assert part in said.text


@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_what_the_worker_adds_within_the_grant_is_let_go(kind: str) -> None:
    stage = _stage(_asking(cpu="500m"))
    _place(stage, kind, {"cpu": 500})
    stage.pass_seconds(40.0)
    assert (_lifted(stage), stage.state()) == (True, "Running")


@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_what_home_counts_under_another_name_is_let_go_as_it_was_sent(kind: str) -> None:
    """A transformation replaced the resource, so that nothing is granted under its own name."""
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    spec = {"containers": [{"name": "main", "image": "app", "resources": resources}], "restartPolicy": "Never"}
    stage = _stage(lambda _spec: None)
    _place(stage, kind, {"example.com/credits": 5}, spec)
    stage.pass_seconds(5.0)
    assert stage.state() == "Running"


@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_sidecars_and_overhead_of_the_worker_count_as_at_home(kind: str) -> None:
    def adds(spec: Doc) -> None:
        beside = {"name": "s", "image": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
        spec["initContainers"] = [beside]
        spec["overhead"] = {"cpu": "50m"}

    for granted, state in ((150, "Running"), (149, "")):
        stage = _stage(adds)
        _place(stage, kind, {"cpu": granted})
        assert _refused(stage) == ([] if state else [Refusal.REQUESTS_RAISED])


@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_an_agent_that_starts_anew_knows_by_the_object_what_was_granted(kind: str) -> None:
    for granted, lifted in (({"cpu": 500}, True), ({"cpu": 499}, False)):
        stage = _stage(_asking(cpu="500m"))
        stage.hold = _after_the_create
        _place(stage, kind, granted)
        stage.crash()
        stage.hold = lambda _write: False
        stage.held.clear()
        before = len(stage.writes)
        stage.start()
        stage.confirm()
        stage.pass_seconds(40.0)
        assert any(isinstance(each, Patch) and _lifts(each) for each in stage.writes[before:]) is lifted


def _lifts(patch: Patch) -> bool:
    return b"schedulingGates" in patch.body or b"/spec/suspend" in patch.body


@pytest.mark.parametrize("said", [None, "{", '{"cpu":"5"}', '{"cpu":' + "5" * GRANTED_BYTES_MAX + "}"])
@pytest.mark.parametrize("kind", KINDS)
def test_hd_151_what_nobody_knows_the_grant_of_is_not_let_go(kind: str, said: str | None) -> None:
    stage = _stage(lambda _spec: None)
    stage.hold = _after_the_create
    _place(stage, kind)
    stage.crash()
    stage.change(POD if kind == "Pod" else JOB, _name(kind), {"metadata": {"annotations": {ANNOTATION_GRANTED: said}}})
    stage.hold = lambda _write: False
    stage.held.clear()
    stage.start()
    stage.confirm()
    assert _refused(stage) == [Refusal.TEMPLATE_MISSING]


@pytest.mark.parametrize(
    ("error", "refusal"), [(WriteError.DENIED, Refusal.DENIED), (WriteError.QUOTA, Refusal.QUOTA_BUSY)]
)
def test_hd_151_a_job_whose_pods_would_be_refused_is_not_let_go(error: WriteError, refusal: Refusal) -> None:
    stage = _stage(lambda _spec: None)
    stage.fail = lambda write: error if isinstance(write, Create) and write.dry_run else None
    _place(stage, "Job")
    assert _refused(stage) == [refusal]
    assert not _lifted(stage)


def test_hd_151_a_job_waits_for_the_answer_and_is_asked_for_again_when_there_is_none() -> None:
    stage = _stage(_asking(cpu="500m"))
    errors = iter([WriteError.UNKNOWN, WriteError.NOT_SENT])
    stage.fail = lambda write: next(errors, None) if isinstance(write, Create) and write.dry_run else None
    _place(stage, "Job", {"cpu": 500})
    assert (_lifted(stage), stage.state()) == (False, "Gated")
    stage.pass_seconds(10.0)
    assert stage.state() == "Running"


def test_hd_151_an_answer_that_is_old_is_asked_for_again() -> None:
    stage = _stage(lambda _spec: None)
    stage.fail = lambda write: WriteError.NOT_SENT if isinstance(write, Patch) and _lifts(write) else None
    _place(stage, "Job")
    stage.adds = _asking(cpu="500m")
    stage.pass_seconds(3 * SAMPLE_SECONDS)
    assert _refused(stage) == [Refusal.REQUESTS_RAISED]


def test_hd_151_nothing_is_made_by_asking() -> None:
    stage = _stage(lambda _spec: None)
    _place(stage, "Job")
    asked = [each for each in stage.written(Create, POD) if each.dry_run]
    assert len(asked) == 1
    assert stage.store.look_all(("", "pods")) == []


def test_hd_151_a_pod_of_a_job_that_asks_for_more_ends_the_run() -> None:
    """A LimitRange came after the Job was let go."""
    stage = _stage(lambda _spec: None)
    _place(stage, "Job")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    assert stage.state() == "Running"
    [pod, *_] = stage.store.look_all(("", "pods"))
    meta = {key: pod["metadata"][key] for key in ("namespace", "labels", "ownerReferences")}
    spec = {**POD_SPEC, "restartPolicy": "Never", "tolerations": pod["spec"]["tolerations"]}
    _asking(cpu="1500m")(spec := msgspec.json.decode(msgspec.json.encode(spec)))
    stage.create(POD, {"metadata": {**meta, "name": "j-late"}, "spec": spec})
    stage.settle()
    stage.pass_seconds(2.0)
    assert stage.job()["spec"]["suspend"] is True
    for each in stage.store.look_all(("", "pods")):
        stage.remove(POD, each["metadata"]["name"])
    while cluster.react():
        pass
    stage.pass_seconds(10.0)
    [said] = stage.peer.of(m.Evicted)
    assert said.reason == "WorkerPodAsksForMore"
    assert "1500m" in said.message
