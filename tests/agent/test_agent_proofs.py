"""What proves that an object is gone, and what does not: answers to probes, and namespaces that went (HD-42, HD-46)."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.placement.placements import Placement
from gatelift_kube.deciding.writes import (
    ApiWrite,
    Create,
    Delete,
    KubeObject,
    ObjectGone,
    ObjectSeen,
    Patch,
    WriteError,
    WriteFailed,
)
from gatelift_kube.objects.core import Namespace
from gatelift_kube.values.resources import JOB, NAMESPACE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import FINALIZER_REPORT, PlacementKey
from support.agent.drivers import Cluster, namespace_goes
from support.agent.namespaces import all_go_unseen, node_heard, rights_go
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, decode

NO_ANSWERS = [
    WriteError.FORBIDDEN,
    WriteError.DENIED,
    WriteError.INVALID,
    WriteError.CONFLICT,
    WriteError.QUOTA,
    WriteError.NOT_DONE,
    WriteError.NAMESPACE_MISSING,
]


def _running(kind: str = "Pod") -> Stage:
    stage = Stage()
    stage.start()
    if kind == "Pod":
        stage.place()
        stage.run()
    else:
        stage.place(kind="Job", name="j")
        cluster = Cluster(stage, finishes=False)
        while cluster.react():
            pass
    return stage


def _placement(stage: Stage) -> Placement:
    found = stage.placement()
    assert found is not None
    return found


def _tracked(stage: Stage, name: str) -> KubeObject:
    found = _placement(stage).objects[name].object
    assert found is not None
    return found


def _fails(stage: Stage, error: WriteError, kind: type[ApiWrite] = Patch) -> None:
    stage.fail = lambda write: error if isinstance(write, kind) and write.ref.resource in {POD, JOB} else None


# --- answers to a probe (HD-46) ------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", NO_ANSWERS)
def test_hd_46_an_answer_that_is_none_proves_nothing(error: WriteError) -> None:
    """HD-46: rights taken away, or somebody's webhook, while an object is doubted."""
    stage = _running()
    _fails(stage, error)
    stage.change(POD, "p", {"metadata": {"labels": None}})
    stage.pass_seconds(300.0)
    assert stage.state() == "Running"
    assert stage.peer.of(m.Evicted) == []
    stage.fail = lambda _write: None
    stage.pass_seconds(40.0)
    assert stage.state() == "Running"
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/epoch"] == "1"


@pytest.mark.parametrize("error", [WriteError.FORBIDDEN, WriteError.DENIED, WriteError.INVALID])
def test_hd_46_an_answer_that_is_none_is_shown(error: WriteError) -> None:
    stage = _running()
    _fails(stage, error)
    stage.change(POD, "p", {"metadata": {"labels": None}})
    stage.pass_seconds(5.0)
    shown = [note for note in stage.notes if "whether it is still there is not known" in note.text]
    assert shown
    assert shown[0].level == "warning"
    assert shown[0].workload == KEY.uid


@pytest.mark.parametrize("error", [WriteError.NOT_FOUND, WriteError.PRECONDITION])
def test_hd_46_a_404_another_uid_and_a_failed_test_prove(error: WriteError) -> None:
    stage = _running()
    _fails(stage, error)
    stage.change(POD, "p", {"metadata": {"labels": None}})
    assert len(stage.peer.of(m.Evicted)) == 1


@pytest.mark.parametrize("error", NO_ANSWERS)
def test_hd_46_a_stop_that_is_not_answered_has_stopped_nothing(error: WriteError) -> None:
    stage = _running()
    _fails(stage, error, Delete)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Stopped) == []
    stage.fail = lambda _write: None
    stage.pass_seconds(40.0)
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Stopped)) == 1


# --- namespaces that went (HD-42) ----------------------------------------------------------------------------------


def test_hd_42_a_pod_whose_last_events_never_came_is_asked_for_when_its_namespace_is_gone() -> None:
    stage = _running()
    all_go_unseen(stage)
    namespace_goes(stage)
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_42_a_namespace_that_took_our_rights_along_proves_by_its_own_absence(kind: str) -> None:
    stage = _running(kind)
    rights_go(stage)
    all_go_unseen(stage)
    stage.pass_seconds(300.0)
    assert stage.state() == "Running", "rights that are gone prove nothing"
    namespace_goes(stage)
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.state() == "none"


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_42_what_may_run_on_on_a_node_stays_charged_when_its_namespace_is_gone(kind: str) -> None:
    """HD-42, P10: the API server knows nothing of it any more, its kubelet may."""
    stage = _running(kind)
    node_heard(stage, 1)
    rights_go(stage)
    all_go_unseen(stage)
    namespace_goes(stage)
    stage.pass_seconds(300.0)
    assert stage.state() == "Draining"
    assert stage.peer.of(m.Evicted) == []
    node_heard(stage, 2)
    node_heard(stage, 3)
    stage.pass_seconds(20.0)
    assert len(stage.peer.of(m.Evicted)) == 1


@pytest.mark.parametrize("rights", [True, False], ids=["with rights", "rights gone with it"])
@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_65_what_was_proved_gone_before_its_namespace_went_is_not_asked_for_without_end(
    kind: str, rights: bool
) -> None:
    """HD-65: there is nothing left that a further answer could be about."""
    stage = _running(kind)
    node_heard(stage, 1)
    all_go_unseen(stage)
    stage.watched = {NAMESPACE_NAME}
    resource, known = (POD, "p") if kind == "Pod" else (JOB, "j")
    stage.post(ObjectGone(resource, _tracked(stage, known)))
    for pod in stage.machine.world.children(_placement(stage)):
        stage.post(ObjectGone(POD, pod))
    stage.pass_seconds(5.0)
    assert stage.state() == "Draining", "proved gone, and its kubelet is waited for"
    if not rights:
        rights_go(stage)
    namespace_goes(stage)
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Evicted) == []
    node_heard(stage, 2)
    node_heard(stage, 3)
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.state() == "none"


@pytest.mark.parametrize("error", [WriteError.NAMESPACE_MISSING, WriteError.UNKNOWN], ids=lambda each: each.value)
@pytest.mark.parametrize("rights", [True, False], ids=["with rights", "rights gone with it"])
def test_hd_65_a_create_that_was_under_way_as_its_namespace_went_is_refused_once_nothing_can_have_come_of_it(
    rights: bool, error: WriteError
) -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Create)
    stage.place()
    create = stage.held.popleft().command
    assert create.ref.resource == POD
    stage.hold = lambda _write: False
    if not rights:
        rights_go(stage)
    namespace_goes(stage)
    stage.post(WriteFailed(write_id=create.write_id, error=error, message="no"))
    stage.pass_seconds(120.0)
    assert len(stage.peer.of(m.Refused)) == 1
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.state() == "none"


def test_hd_42_a_namespace_made_anew_is_not_the_one_that_the_pod_was_in() -> None:
    stage = _running()
    rights_go(stage)
    all_go_unseen(stage)
    stage.pass_seconds(5.0)
    stage.watching = False
    namespace_goes(stage)
    stage.create(NAMESPACE, {"metadata": {"name": NAMESPACE_NAME, "labels": {"gatelift.dev/accept": "true"}}})
    stage.watching = True
    found = stage.store.find(("", "namespaces"), "", NAMESPACE_NAME)
    assert found is not None
    stage.post(ObjectSeen(NAMESPACE, decode(NAMESPACE, found), found.raw))
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_42_a_namespace_that_is_older_than_a_pod_proves_nothing_about_it() -> None:
    """HD-42: another UID is seen late, the pod was made in the namespace that is there."""
    stage = _running()
    rights_go(stage)
    found = stage.store.find(("", "namespaces"), "", NAMESPACE_NAME)
    assert found is not None
    other = msgspec.json.decode(found.raw)
    other["metadata"] |= {"uid": "another", "resourceVersion": "9999"}
    raw = msgspec.json.encode(other)
    stage.post(ObjectSeen(NAMESPACE, msgspec.json.decode(raw, type=Namespace), raw))
    stage.pass_seconds(300.0)
    assert stage.state() == "Running"
    assert stage.peer.of(m.Evicted) == []


def test_hd_42_a_pod_that_outlives_its_namespace_runs_on() -> None:
    """Somebody took the finalizers off the namespace itself: what was in it is still there."""
    stage = _running()
    namespace_goes(stage)
    stage.pass_seconds(300.0)
    assert stage.state() == "Running"
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1


def test_hd_42_an_answer_from_before_the_end_of_the_namespace_is_not_the_last_word() -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    assert stage.state() == "Gated"
    lift = stage.held.popleft().command
    stage.hold = lambda _write: False
    stage.watched = set()
    stage._write(lift, answered=True)
    answer = stage.events.pop()
    all_go_unseen(stage)
    namespace_goes(stage)
    stage.post(answer)
    stage.pass_seconds(120.0)  # it was let go and never seen on a node: grace and margin
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_65_a_probe_from_before_the_end_of_the_namespace_is_not_the_last_word() -> None:
    stage = _running()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.change(POD, "p", {"metadata": {"labels": None}})
    probe = stage.held.popleft().command
    stage.hold = lambda _write: False
    stage.watched = set()
    stage._write(probe, answered=True)
    answer = stage.events.pop()
    stage.pass_seconds(1.0)
    all_go_unseen(stage)
    namespace_goes(stage)
    stage.post(answer)
    stage.pass_seconds(120.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_42_the_watch_of_a_namespace_that_is_gone_ends_with_its_last_placement() -> None:
    stage = _running()
    rights_go(stage)
    namespace_goes(stage)
    assert NAMESPACE_NAME in stage.watched
    all_go_unseen(stage)
    stage.watched = {NAMESPACE_NAME}
    stage.pass_seconds(60.0)
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"
    assert NAMESPACE_NAME not in stage.watched


def test_hd_42_what_was_reported_is_forgotten_although_nothing_in_its_namespace_can_be_asked() -> None:
    stage = _running()
    stage.finish()
    assert stage.state() == "Reported"
    assert FINALIZER_REPORT in stage.pod()["metadata"]["finalizers"]
    rights_go(stage)
    all_go_unseen(stage)
    namespace_goes(stage)
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.state() == "none"
    assert stage.placement(PlacementKey("w-1", 2)) is None
