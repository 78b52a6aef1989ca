"""HD-40. Labels that somebody changes: the same UID is the same object, it is followed, and its labels are put back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import Create, Delete, Patch
from gatelift_kube.values.resources import JOB, POD, Resource
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME, ORIGIN, ORIGIN_WITHOUT_MARKS, POD_SPEC

OURS = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": KEY.uid, "gatelift.dev/epoch": str(KEY.epoch)}
GATE = {"name": "kueue.x-k8s.io/admission"}
EDITS = [
    pytest.param({"gatelift.dev/epoch": "2"}, id="epoch"),
    pytest.param({"gatelift.dev/epoch": "x"}, id="epoch is no number"),
    pytest.param({"gatelift.dev/workload-uid": "w-9"}, id="workload"),
    pytest.param({"gatelift.dev/workload-uid": None}, id="no workload"),
    pytest.param({"gatelift.dev/origin": "another"}, id="origin"),
    pytest.param({"gatelift.dev/origin": None}, id="no origin"),
    pytest.param(None, id="all"),
]
KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


def _running(kind: str) -> tuple[Stage, Resource, str]:
    stage = Stage()
    stage.start()
    if kind == "Pod":
        stage.place()
        stage.run()
        return stage, POD, "p"
    stage.place(kind="Job", name="j")
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    return stage, JOB, "j"


def _edit(stage: Stage, resource: Resource, name: str, labels: Mapping[str, str | None] | None) -> None:
    stage.change(resource, name, {"metadata": {"labels": labels}})


def _labels(stage: Stage, resource: Resource, name: str) -> dict[str, str]:
    found = stage.document(resource, name)
    assert found is not None
    labels: dict[str, str] = found["metadata"].get("labels", {})
    return {key: labels.get(key, "") for key in OURS}


@KINDS
@pytest.mark.parametrize("labels", EDITS)
def test_hd_40_labels_of_what_runs_are_put_back_and_it_goes_on(kind: str, labels: dict[str, str | None] | None) -> None:
    stage, resource, name = _running(kind)
    _edit(stage, resource, name, labels)
    stage.pass_seconds(120.0)
    assert _labels(stage, resource, name) == OURS
    assert stage.state() == "Running"
    assert stage.peer.of(m.Evicted) == []
    stage.restart()
    assert [(entry.key, entry.state) for entry in stage.peer.inventories[-1]] == [(KEY, "Running")]


@KINDS
@pytest.mark.parametrize("labels", EDITS)
def test_hd_40_labels_that_were_changed_while_the_agent_was_away_hide_nothing(
    kind: str, labels: dict[str, str | None] | None
) -> None:
    stage, resource, name = _running(kind)
    stage.crash()
    _edit(stage, resource, name, labels)
    stage.start()
    assert [(entry.key, entry.state) for entry in stage.peer.inventories[-1]] == [(KEY, "Running")]
    stage.confirm()
    stage.pass_seconds(5.0)
    assert _labels(stage, resource, name) == OURS
    assert stage.state() == "Running"
    assert stage.peer.of(m.Evicted) == []


def test_hd_40_a_pod_whose_finalizer_and_labels_are_taken_off_at_once_is_asked_for_before_that_is_believed() -> None:
    stage, _, _ = _running("Pod")
    stage.change(POD, "p", {"metadata": {"labels": None, "finalizers": None}})
    stage.pass_seconds(5.0)
    assert _labels(stage, POD, "p") == OURS
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


def test_hd_40_what_was_made_under_other_labels_is_let_go_only_with_its_own() -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    stage.hold = lambda _write: False
    _edit(stage, POD, "p", {"gatelift.dev/epoch": "2"})
    stage.lose()
    stage.pass_seconds(5.0)
    assert (stage.state(), _labels(stage, POD, "p")) == ("Running", OURS)
    assert len(stage.written(Create)) == 1


def test_hd_40_a_deposed_replica_puts_nothing_back() -> None:
    stage, _, _ = _running("Pod")
    stage.machine.world.leadership.valid_until = stage.now
    before = len(stage.writes)
    _edit(stage, POD, "p", {"gatelift.dev/epoch": "2"})
    _edit(stage, POD, "p", None)
    stage.pass_seconds(60.0)
    assert len(stage.writes) == before
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])
    stage.lead()
    stage.pass_seconds(1.0)
    assert _labels(stage, POD, "p") == OURS


def test_hd_40_an_object_with_another_uid_is_another_object_whatever_it_says() -> None:
    stage, _, _ = _running("Pod")
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    labels = {**OURS, "mine": "yes"}
    stage.create(
        POD, {"metadata": {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels}, "spec": dict(POD_SPEC)}
    )
    stage.settle()
    stage.pass_seconds(1.0)
    assert stage.state() != "Running"
    assert stage.written(Delete) == []


def _local_pod() -> Stage:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    labels = {"kueue.x-k8s.io/managed": "true"}
    meta = {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels, "finalizers": ["kueue.x-k8s.io/managed"]}
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": [GATE]}})
    stage.settle()
    stage.place()
    stage.run()
    return stage


def test_hd_40_labels_of_the_users_own_pod_that_runs_are_put_back() -> None:
    stage = _local_pod()
    _edit(stage, POD, "p", {"gatelift.dev/epoch": "7", "gatelift.dev/workload-uid": None})
    stage.pass_seconds(5.0)
    assert (stage.state(), _labels(stage, POD, "p")) == ("Running", OURS)


def test_hd_40_the_labels_of_a_later_attempt_that_is_known_are_no_edit() -> None:
    """At `local` one Job lives through many attempts."""
    stage = Stage(mode=AgentMode.LOCAL)
    stage.origin = ORIGIN_WITHOUT_MARKS
    stage.start()
    meta = {"name": "j", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    stage.create(JOB, {"metadata": meta, "spec": JOB_SPEC})
    stage.settle()
    stage.place(kind="Job", name="j")
    later = PlacementKey("w-2", 1)
    stage.hold = lambda write: isinstance(write, Patch)
    stage.place(later, kind="Job", name="j")
    before = len(stage.writes)
    _edit(stage, JOB, "j", {"gatelift.dev/workload-uid": later.uid})
    stage.pass_seconds(5.0)
    assert len(stage.writes) == before
    assert _labels(stage, JOB, "j")["gatelift.dev/workload-uid"] == later.uid


def test_hd_40_labels_of_a_later_attempt_are_left_by_whom_the_manager_has_not_confirmed() -> None:
    stage = _local_pod()
    stage.cut_stream()
    before = len(stage.writes)
    _edit(stage, POD, "p", {"gatelift.dev/epoch": "2"})
    stage.pass_seconds(30.0)
    assert len(stage.writes) == before
