"""HD-259: the namespace of a placement is being deleted, and takes our rights along before we have let go of all in it.

The namespace's controller deletes the pods, then all else, the agent's RoleBinding among it: what our finalizer keeps
then keeps the namespace, and nothing can be made there any more, so that no pod comes to those that are seen.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_agent.core.state.condemned import REASON, SETTLE_SECONDS
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.watched import ownership
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import Create, Delete, ObjectSeen
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.values.resources import JOB, NAMESPACE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import FINALIZER_REPORT
from support.agent.drivers import running_job
from support.agent.namespaces import (
    condemn,
    job_goes,
    job_pods_end,
    make_unseen,
    node_heard,
    pod_names,
    rights_go,
    running_pod,
    writes_refused,
)
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME

SETTLED = SETTLE_SECONDS + 15.0
"""By then a look that counts is over."""


class StaleStage(Stage):
    """A stage whose API server answers a read of the namespace with what a test says."""

    answer: Namespace | None = None

    def _carry(self, command: commands.Command) -> None:
        if isinstance(command, commands.ReadNamespace) and self.answer is not None:
            self.events.append(events.NamespaceRead(read_id=command.read_id, namespace=self.answer))
        else:
            super()._carry(command)


class LateStage(Stage):
    """A stage in which a pod lands at a moment: no list shows it before that."""

    lands_at = 0.0

    def _carry(self, command: commands.Command) -> None:
        super()._carry(command)
        if isinstance(command, commands.ReadPods) and self.now < self.lands_at:
            answer = self.events.pop()
            assert isinstance(answer, events.PodsRead)
            both = [each for each in zip(answer.pods, answer.raws, strict=True) if each[0].metadata.name != "late"]
            pods, raws = tuple(pod for pod, _ in both), tuple(raw for _, raw in both)
            self.events.append(events.PodsRead(read_id=answer.read_id, pods=pods, raws=raws))


def _namespace(stage: Stage, **metadata: Any) -> tuple[Namespace, bytes]:
    """Return the namespace as it is, with other metadata."""
    found = stage.store.look(("", "namespaces"), "", NAMESPACE_NAME)
    assert found is not None
    raw = msgspec.json.encode({**found, "metadata": {**found["metadata"], **metadata}})
    return msgspec.json.decode(raw, type=Namespace), raw


# --- quota comes back --------------------------------------------------------------------------------------------


def test_hd_259_a_job_has_stopped_once_none_of_its_pods_can_run_in_a_namespace_that_goes() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(50.0)
    assert stage.peer.of(m.Evicted) == [], "what was let through before may land until then"
    stage.pass_seconds(25.0)
    (evicted,) = stage.peer.of(m.Evicted)
    assert evicted.reason == REASON
    assert f"namespace {NAMESPACE_NAME} is being deleted" in evicted.message
    assert f"kubectl -n {NAMESPACE_NAME} patch job j --type=json" in evicted.message
    assert stage.state() == "Reported"


@pytest.mark.parametrize("watched", [True, False], ids=["seen by its watch", "its watch has ended"])
def test_hd_259_a_pod_has_stopped_by_its_own_last_word(watched: bool) -> None:
    stage = running_pod()
    writes_refused(stage)
    condemn(stage)
    if not watched:
        stage.watched = set()
    stage.remove(POD, "p")
    stage.finish("p", "Failed")
    stage.pass_seconds(SETTLED)
    (evicted,) = stage.peer.of(m.Evicted)
    assert evicted.reason == REASON
    assert FINALIZER_REPORT in stage.pod()["metadata"]["finalizers"]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("watched", [True, False], ids=["watched", "its watch has ended"])
def test_hd_259_what_still_runs_there_has_not_stopped(kind: str, watched: bool) -> None:
    stage = running_pod() if kind == "Pod" else running_job()[0]
    writes_refused(stage)
    condemn(stage)
    if not watched:
        stage.watched = set()
    stage.pass_seconds(900.0)
    assert stage.state() == "Draining"
    assert stage.peer.of(m.Evicted) == []
    for name in pod_names(stage):
        stage.remove(POD, name)
        stage.finish(name, "Failed")
    if kind == "Job":
        stage.change(JOB, "j", {"status": {"active": 0, "terminating": 0, "failed": 2}}, "status")
        stage.remove(JOB, "j")
    stage.pass_seconds(200.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_259_pods_on_a_node_that_is_away_stay_charged() -> None:
    """HD-259, P10: somebody removed them by force, and their kubelet may not know of it."""
    stage, _ = running_job()
    node_heard(stage, 1)
    writes_refused(stage)
    condemn(stage)
    for name in pod_names(stage):
        stage.remove(POD, name, grace=0)
    stage.change(JOB, "j", {"status": {"active": 0, "failed": 2}}, "status")
    stage.remove(JOB, "j")
    stage.pass_seconds(300.0)
    assert stage.state() == "Draining"
    assert stage.peer.of(m.Evicted) == []
    node_heard(stage, 2)
    node_heard(stage, 3)
    stage.pass_seconds(30.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_259_a_pod_that_no_watch_shows_is_found_among_all_of_the_namespace() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    left = pod_names(stage)[0]
    stage.change(POD, left, {"metadata": {"labels": None}})
    for name in pod_names(stage)[1:]:
        stage.remove(POD, name)
        stage.finish(name, "Failed")
    stage.change(JOB, "j", {"status": {"active": 0, "failed": 2}}, "status")
    stage.remove(JOB, "j")
    stage.pass_seconds(900.0)
    assert stage.peer.of(m.Evicted) == []
    stage.remove(POD, left)
    stage.finish(left, "Failed")
    stage.pass_seconds(200.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_259_a_pod_that_was_let_through_in_the_last_moment_is_waited_for() -> None:
    """HD-259: an API server that learned of the deletion late has made it, and no watch shows it."""
    stage, _ = running_job(stage=LateStage())
    assert isinstance(stage, LateStage)
    writes_refused(stage)
    make_unseen(stage)
    stage.lands_at = stage.now + 45.0
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Evicted) == []
    assert stage.state() == "Draining"


def test_hd_259_pods_that_nobody_may_list_prove_nothing() -> None:
    stage, _ = running_job()
    rights_go(stage)
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(900.0)
    assert stage.state() == "Draining"
    assert stage.peer.of(m.Evicted) == []
    stage.allowed = True
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_hd_259_a_look_that_cannot_be_taken_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, _ = running_job()
    writes_refused(stage)
    make_unseen(stage, labelled=False)
    condemn(stage)
    job_goes(stage)
    with monkeypatch.context() as broken:
        broken.setattr(Contained, "surfaces", False)
        broken.setattr(ownership, "may_hide", lambda _kinds, _pod: 1 // 0)
        stage.pass_seconds(300.0)
        assert stage.state() == "Draining"
    stage.pass_seconds(60.0)
    assert stage.state() == "Draining"
    stage.finish("late", "Failed")
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Evicted)) == 1


@pytest.mark.parametrize("seen", ["the Job's own end", "fewer than it counts"])
def test_hd_259_pods_that_came_and_went_while_nobody_might_watch_are_doubted(seen: str) -> None:
    """HD-259, P10: somebody may have removed them by force; each node is waited for, as after a restart."""
    stage, _ = running_job()
    node_heard(stage, 1)
    writes_refused(stage)
    condemn(stage)
    if seen == "fewer than it counts":
        job_pods_end(stage)
        stage.change(JOB, "j", {"status": {"failed": 3}}, "status")
        stage.remove(JOB, "j")
    else:
        job_pods_end(stage)
        stage.watched = set()
        stage.remove(JOB, "j")
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Evicted) == []
    node_heard(stage, 2)
    node_heard(stage, 3)
    stage.pass_seconds(30.0)
    assert len(stage.peer.of(m.Evicted)) == 1


# --- only said to be deleted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("uid", ["the same", "another"])
def test_hd_259_a_watch_that_is_behind_ends_nothing(kind: str, uid: str) -> None:
    stage = running_pod() if kind == "Pod" else running_job()[0]
    other = {"uid": "another"} if uid == "another" else {}
    said = _namespace(stage, deletionTimestamp="2126-01-01T00:00:00Z", resourceVersion="99999", **other)
    stage.post(ObjectSeen(NAMESPACE, *said))
    stage.pass_seconds(900.0)
    assert stage.state() == "Running"
    assert stage.written(Delete) == []


def test_hd_259_a_namespace_made_anew_that_is_deleted_as_well_is_not_the_one_that_was_said() -> None:
    """HD-259: the watch shows the end of a former one; what the API server says is about another."""
    stage = running_pod(StaleStage())
    assert isinstance(stage, StaleStage)
    stage.answer = _namespace(stage, deletionTimestamp="2126-01-01T00:00:00Z", uid="another")[0]
    stage.post(ObjectSeen(NAMESPACE, *_namespace(stage, deletionTimestamp="2126-01-01T00:00:00Z")))
    stage.pass_seconds(900.0)
    assert stage.state() == "Running"


def test_hd_259_what_was_made_after_the_deletion_is_in_a_later_namespace_of_that_name() -> None:
    stage = running_pod(StaleStage())
    assert isinstance(stage, StaleStage)
    said = _namespace(stage, deletionTimestamp="1926-01-01T00:00:00Z")
    stage.answer = said[0]
    stage.post(ObjectSeen(NAMESPACE, *said))
    stage.pass_seconds(900.0)
    assert stage.state() == "Running"


def test_hd_259_a_namespace_that_was_made_anew_counts_as_one() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    stage.pass_seconds(5.0)
    stage.post(ObjectSeen(NAMESPACE, *_namespace(stage, deletionTimestamp=None, uid="another")))
    job_pods_end(stage)
    stage.pass_seconds(900.0)
    assert stage.peer.of(m.Evicted) == []


def test_hd_259_a_pod_whose_create_has_no_answer_as_its_namespace_goes_is_looked_for_among_all() -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Create)
    stage.place()
    stage.hold = lambda _write: False
    writes_refused(stage)
    condemn(stage)
    stage.lose()
    stage.pass_seconds(50.0)
    assert stage.state() == "Draining"
    stage.pass_seconds(30.0)
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"


def test_hd_259_a_pod_that_is_seen_to_run_after_all_is_stopped_again() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    first = stage.document(POD, pod_names(stage)[0])
    assert first is not None
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(SETTLED)
    assert stage.state() == "Reported"
    raw = msgspec.json.encode({**first, "metadata": {**first["metadata"], "name": "late", "uid": "late"}})
    stage.post(ObjectSeen(POD, msgspec.json.decode(raw, type=Pod), raw))
    assert stage.state() == "Draining"


# --- a restart in the middle ---------------------------------------------------------------------------------------


def test_hd_259_an_agent_that_starts_when_nobody_may_list_there_serves_and_its_absence_is_believed_late() -> None:
    """HD-259: lists that never come keep no agent from its other namespaces, and prove nothing before a look."""
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    job_goes(stage)
    node_heard(stage, 1)
    stage.listing = False
    stage.restart()
    assert stage.peer.inventories[-1] == ()
    assert stage.peer.unheard[-1], "what is not listed there is not absent"
    stage.allowed = False
    stage.pass_seconds(200.0)
    node_heard(stage, 2)
    node_heard(stage, 3)
    stage.pass_seconds(200.0)
    assert stage.machine.world.unheard, "nobody has looked into it"
    stage.allowed = True
    stage.pass_seconds(20.0)
    node_heard(stage, 4)
    node_heard(stage, 5)
    assert not stage.machine.world.unheard


def test_hd_259_after_a_restart_pods_that_run_there_are_found_although_their_job_is_not() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    stage.listing = False
    stage.restart()
    stage.pass_seconds(SETTLED)
    assert stage.state() == "Draining"
    for name in pod_names(stage):
        stage.remove(POD, name)
        stage.finish(name, "Failed")
    stage.pass_seconds(400.0)
    assert len(stage.peer.of(m.Evicted)) == 1


@pytest.mark.parametrize("session", ["the same", "another"])
def test_hd_259_a_stop_of_what_cannot_be_listed_there_is_answered_once_it_was_looked_into(session: str) -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    stage.listing = False
    stage.restart()
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    assert stage.peer.of(m.Stopped) == [], "its pods run"
    if session == "another":
        stage.cut_stream()
        stage.mend(resume=False)
        stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.pass_seconds(SETTLED)
    assert stage.state() == "Draining"
    for name in pod_names(stage):
        stage.remove(POD, name)
        stage.finish(name, "Failed")
    stage.pass_seconds(400.0)
    assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]


def test_hd_259_what_has_stopped_there_is_no_run_after_a_restart() -> None:
    stage, _ = running_job()
    writes_refused(stage)
    condemn(stage)
    job_goes(stage)
    stage.pass_seconds(SETTLED)
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.pass_seconds(10.0)
    stage.restart()
    assert [each.state for each in stage.peer.inventories[-1]] in (["Stopped"], ["Reported"])
    stage.pass_seconds(300.0)
    assert stage.state() == "Reported"
    assert len(stage.peer.of(m.Evicted)) >= 2
