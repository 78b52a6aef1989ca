"""HD-259: how a placement ends whose namespace is being deleted, what is said of it, and what becomes of what is left.

What proves that it has stopped: `test_agent_condemned`.
"""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.state.condemned import LEFT_SECONDS, REASON, SETTLE_SECONDS
from gatelift_kinds.shared.pod_trouble import NAMESPACE_GOES
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.values.resources import CONFIG_MAP, JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import FINALIZER_REPORT, PlacementKey
from support.agent.drivers import Cluster, namespace_goes, running_job
from support.agent.namespaces import condemn, job_goes, pod_names, running_pod, writes_refused
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME

SETTLED = SETTLE_SECONDS + 15.0


def _told(stage: Stage) -> list[str]:
    return [trouble.text for each in stage.peer.of(m.CountsReport) for trouble in each.troubles]


# --- at once -------------------------------------------------------------------------------------------------------


def test_hd_259_a_placement_is_stopped_as_soon_as_its_namespace_is_being_deleted() -> None:
    stage, cluster = running_job()
    condemn(stage)
    assert stage.state() == "Draining"
    assert stage.job()["spec"]["suspend"] is True
    for name in pod_names(stage):
        stage.remove(POD, name)  # as the Job's controller does
    while cluster.react():
        pass
    (evicted,) = stage.peer.of(m.Evicted)
    assert evicted.reason == REASON
    assert "kubectl" not in evicted.message, "nothing was refused"


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_259_its_finalizer_goes_at_once_when_the_manager_does_not_answer(kind: str) -> None:
    """HD-259: the RoleBinding may go a moment later; the record says all that the object would."""
    stage = running_pod() if kind == "Pod" else running_job()[0]
    condemn(stage)
    cluster = Cluster(stage, finishes=False)
    for name in pod_names(stage):
        stage.remove(POD, name)
    while cluster.react():
        pass
    stage.pass_seconds(5.0)
    found = stage.document(POD, "p") if kind == "Pod" else stage.document(JOB, "j")
    assert found is None or FINALIZER_REPORT not in found["metadata"].get("finalizers", [])
    records = stage.store.look_all(("", CONFIG_MAP.plural))
    assert any(f"{KEY.uid}.{KEY.epoch}" in each.get("data", {}) for each in records)


def test_hd_259_nothing_new_is_placed_there() -> None:
    stage = Stage()
    stage.start()
    condemn(stage)
    stage.offer(PlacementKey("w-2", 1), name="q")
    bid = stage.peer.of(m.Bid)[-1]
    assert bid.kind is not m.BidKind.HELD
    assert "is being deleted" in bid.text


# --- what is said --------------------------------------------------------------------------------------------------


def test_hd_259_a_stop_that_waits_there_says_for_what_and_how_it_goes_on() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    stage.pass_seconds(30.0)
    said = _told(stage)[-1]
    assert f"namespace {NAMESPACE_NAME} is being deleted there: it stays charged until" in said
    assert f"kubectl -n {NAMESPACE_NAME} patch job j --type=json -p '" in said
    assert stage.peer.of(m.CountsReport)[-1].troubles[0].reason == NAMESPACE_GOES
    assert len(_told(stage)) <= 3
    log = [note.text for note in stage.notes if "kubectl" in note.text]
    assert log
    stage.cut_stream()
    stage.mend(resume=False)
    stage.pass_seconds(5.0)
    assert _told(stage)[-1] == said, "a session that knows nothing is told again"


def test_hd_259_the_command_that_is_named_takes_off_our_finalizer_and_no_other() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    stage.change(JOB, "j", {"metadata": {"finalizers": ["a.example/other", FINALIZER_REPORT]}})
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(SETTLED)
    command = stage.peer.of(m.Evicted)[-1].message.partition("-p '")[2].rstrip("'")
    kind = stage.store.kinds.of(JOB)
    stage.store.patch(kind, NAMESPACE_NAME, "j", command.encode(), "application/json-patch+json", stage.now)
    assert stage.job()["metadata"]["finalizers"] == ["a.example/other"]


# --- what is left --------------------------------------------------------------------------------------------------


def test_hd_259_what_is_left_there_is_tried_rarely_and_goes_with_its_namespace() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(SETTLED)
    stage.send(m.Forget(key=KEY))
    before = len(stage.writes)
    stage.pass_seconds(6 * LEFT_SECONDS)
    assert len([each for each in stage.writes[before:] if each.ref.resource == JOB]) <= 7
    assert stage.state() == "Reported"
    stage.watched = set()
    bare = msgspec.json.encode({"metadata": {"finalizers": None}})
    media = "application/merge-patch+json"
    stage.store.patch(stage.store.kinds.of(JOB), NAMESPACE_NAME, "j", bare, media, stage.now)
    namespace_goes(stage)
    stage.pass_seconds(60.0)
    assert stage.state() == "none"


def test_hd_259_what_is_left_there_goes_when_we_are_let_again() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(SETTLED)
    stage.send(m.Forget(key=KEY))
    stage.fail = lambda _write: None
    stage.pass_seconds(2 * LEFT_SECONDS)
    assert stage.state() == "none"
    assert stage.document(JOB, "j") is None
    assert stage.written(Patch, JOB)
