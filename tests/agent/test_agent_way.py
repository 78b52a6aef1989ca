"""The way of placements beside the happy path: holds, quota, several objects, gates, reports, leadership, restarts."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from gatelift_agent.core.reporting import reports
from gatelift_agent.core.state import world
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kube.deciding.writes import Create, Delete, ObjectGone, ObjectSeen, Patch
from gatelift_kube.objects.kueue import ResourceFlavor, ResourceFlavorSpec
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import JOB, POD, RESOURCE_FLAVOR
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import DeleteObject, SetUserGates
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC, UNSEEN_SECONDS, commit_messages

OTHER = PlacementKey("w-2", 1)
ADMISSION = {"name": "kueue.x-k8s.io/admission"}


def _started(**settings: Any) -> Stage:
    stage = Stage(**settings)
    stage.start()
    return stage


# --- offers and holds --------------------------------------------------------------------------------------------


def test_an_offer_that_is_repeated_lengthens_its_hold_and_is_charged_once() -> None:
    stage = _started(capacity=(NominalCapacity(flavor="default", resource="cpu", nominal=1000),))
    sets = (m.PodSetRequest(name="main", count=1, requests=(("cpu", 600),), flavors=(("cpu", "default"),)),)
    stage.offer(pod_sets=sets)
    stage.pass_seconds(20.0)
    stage.offer(pod_sets=sets)
    stage.pass_seconds(20.0)
    assert stage.state() == "Held"
    assert [bid.kind for bid in stage.peer.of(m.Bid)] == [m.BidKind.HELD, m.BidKind.HELD]
    stage.offer(OTHER, name="q", pod_sets=sets)
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.QUOTA_BUSY
    stage.send(m.Withdraw(key=KEY))
    stage.offer(OTHER, name="q", pod_sets=sets)
    assert stage.peer.of(m.Bid)[-1].kind is m.BidKind.HELD


def test_room_is_given_back_when_the_work_is_over() -> None:
    stage = _started(capacity=(NominalCapacity(flavor="default", resource="cpu", nominal=1000),))
    sets = (m.PodSetRequest(name="main", count=1, requests=(("cpu", 600),), flavors=(("cpu", "default"),)),)
    stage.offer(pod_sets=sets)
    stage.commit(pod_sets=sets)
    stage.run()
    stage.pass_seconds(2.0)
    assert stage.peer.of(m.Capacity)[-1].entries[0].used == 600
    stage.finish()
    stage.pass_seconds(2.0)
    assert stage.peer.of(m.Capacity)[-1].entries[0].used == 0


def test_capacity_is_told_when_it_changes_and_not_else() -> None:
    stage = _started()
    told = len(stage.peer.of(m.Capacity))
    stage.place()
    stage.run()
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Capacity)) == told
    assert stage.peer.of(m.Capacity)[-1].namespaces == (NAMESPACE_NAME,)


def test_a_hold_is_never_longer_than_the_limit() -> None:
    stage = _started()
    stage.offer(hold_seconds=100_000.0)
    assert stage.peer.of(m.Bid)[-1].hold_seconds == 300.0


def test_an_offer_is_refused_with_the_reason_that_people_read() -> None:
    stage = _started(kinds=("Pod",))
    stage.offer(kind="Job", name="j")
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.KIND_NOT_SERVED
    stage.send(m.Offer(key=KEY, kind="Pod", namespace="nowhere", name="p", queue="q"))
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.NAMESPACE_MISSING
    stage.send(m.Offer(key=KEY, kind="Pod", namespace="kube-system", name="p", queue="q"))
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.NAMESPACE_NOT_ALLOWED
    stage.send(m.Cordon(cordoned=True))
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.CORDONED
    stage.send(m.Cordon(cordoned=False))
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].kind is m.BidKind.HELD


def test_a_commit_is_refused_with_the_reason_that_people_read() -> None:
    stage = _started()
    stage.offer()
    template, commit = commit_messages(spec={**POD_SPEC, "hostNetwork": True})
    stage.send(template, commit)
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.POLICY
    assert "spec.hostNetwork" in stage.peer.of(m.Refused)[-1].text
    stage.offer(OTHER, name="q")
    _, unknown = commit_messages(OTHER, name="q", spec={"containers": []})
    stage.send(unknown)
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.TEMPLATE_MISSING
    third = PlacementKey("w-3", 1)
    stage.offer(third, name="r")
    stage.send(m.Commit(key=third, kind="Pod", namespace=NAMESPACE_NAME, name="r", queue="q", objects=()))
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.INVALID


def test_a_placement_that_the_agent_would_have_to_stop_by_the_clock_is_refused() -> None:
    stage = _started()
    stage.offer()
    stage.commit(policy=m.DisconnectPolicy.FAILOVER)
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.POLICY]
    assert "failover is not carried out by this agent" in stage.peer.of(m.Refused)[-1].text
    stage.place(OTHER, name="q", policy=m.DisconnectPolicy.UNFENCED)
    assert [refused.key for refused in stage.peer.of(m.Refused)] == [KEY], "that one is the manager's business alone"


def test_a_template_that_is_not_what_its_hash_says_is_dropped() -> None:
    stage = _started()
    stage.offer()
    template, commit = commit_messages()
    assert isinstance(template, m.TemplateBlob)
    # The codec refuses such a blob already; the core does not rely on that.
    assert not stage.machine.world.templates.put(template.hash, b"{}")
    stage.send(commit)
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.TEMPLATE_MISSING


def test_the_flavors_of_this_cluster_place_the_pod() -> None:
    stage = _started()
    spec = ResourceFlavorSpec(node_labels={"pool": "spot"})
    flavor = ResourceFlavor(metadata=ObjectMeta(name="spot"), spec=spec)
    stage.post(ObjectSeen(RESOURCE_FLAVOR, flavor, b""))
    sets = (m.PodSetRequest(name="main", count=1, requests=(("cpu", 1),), flavors=(("cpu", "spot"),)),)
    stage.offer(pod_sets=sets)
    stage.commit(pod_sets=sets)
    assert stage.pod()["spec"]["nodeSelector"] == {"pool": "spot"}


def test_a_flavor_that_contradicts_the_pod_is_refused() -> None:
    stage = _started()
    spec = ResourceFlavorSpec(node_labels={"pool": "spot"})
    stage.post(ObjectSeen(RESOURCE_FLAVOR, ResourceFlavor(metadata=ObjectMeta(name="spot"), spec=spec), b""))
    sets = (m.PodSetRequest(name="main", count=1, requests=(("cpu", 1),), flavors=(("cpu", "spot"),)),)
    stage.offer(pod_sets=sets)
    stage.commit(pod_sets=sets, spec={**POD_SPEC, "nodeSelector": {"pool": "other"}})
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.INVALID
    stage.post(ObjectGone(RESOURCE_FLAVOR, ResourceFlavor(metadata=ObjectMeta(name="spot"), spec=spec)))
    assert stage.machine.world.flavors == {}


# --- several objects ---------------------------------------------------------------------------------------------


def _group(key: PlacementKey = KEY, size: int = 3) -> tuple[m.Message, m.Message]:
    content = msgspec.json.encode(POD_SPEC)
    digest = hashlib.sha256(content).hexdigest()
    objects = tuple(m.ObjectTemplate(name=f"p-{number}", pod_set="main", template=digest) for number in range(size))
    commit = m.Commit(key=key, kind="Pod", namespace=NAMESPACE_NAME, name="p", queue="q", objects=objects)
    return m.TemplateBlob(hash=digest, content=content), commit


def test_nothing_of_a_group_is_let_go_before_all_of_it_exists() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.key.name == "p-2"
    stage.offer()
    stage.send(*_group())
    assert stage.state() == "Applying"
    assert stage.pod("p-0")["spec"]["schedulingGates"] == [ADMISSION]
    assert stage.peer.of(m.Applied) == []
    stage.hold = lambda _write: False
    stage.land()
    assert stage.state() == "Running"
    assert len(stage.peer.of(m.Applied)) == len(stage.peer.of(m.GatesLifted)) == 1


def test_a_group_of_which_one_object_is_refused_leaves_nothing_behind() -> None:
    stage = _started()
    stage.create(POD, {"metadata": {"name": "p-1", "namespace": NAMESPACE_NAME}, "spec": POD_SPEC})
    stage.offer()
    stage.send(*_group())
    stage.pass_seconds(5.0)
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.NAME_CONFLICT
    assert stage.document(POD, "p-0") is None
    assert stage.document(POD, "p-2") is None
    assert stage.pod("p-1")["metadata"].get("labels") is None
    assert stage.state() == "none"


def test_a_partly_lifted_group_counts_as_running_and_its_rest_waits_for_a_confirmation() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.key.name == "p-2"
    stage.offer()
    stage.send(*_group())
    stage.crash()
    stage.held.clear()
    stage.hold = lambda _write: False
    stage.start()
    [entry] = stage.peer.inventories[-1]
    assert entry.lifted
    assert entry.counts == (("main", 3),)
    stage.pass_seconds(5.0)
    assert stage.pod("p-2")["spec"]["schedulingGates"] == [ADMISSION]
    stage.confirm()
    assert not stage.pod("p-2")["spec"].get("schedulingGates")


def test_a_group_that_a_crash_left_incomplete_is_completed_by_a_commit_that_is_sent_again() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.key.name == "p-2"
    stage.offer()
    stage.send(*_group())
    stage.crash()
    stage.held.clear()
    stage.hold = lambda _write: False
    stage.start()
    assert stage.state() == "Applying"
    stage.send(*_group())
    assert stage.state() == "Running"
    assert stage.pod("p-2")["metadata"]["annotations"]["gatelift.dev/objects"] == "3"


def test_one_object_of_a_group_that_the_user_deletes_is_ended_and_the_rest_goes_on() -> None:
    stage = _started()
    stage.offer()
    stage.send(*_group())
    for name in ("p-0", "p-1", "p-2"):
        stage.run(name)
    stage.send(DeleteObject(key=KEY, name="p-1", grace_seconds=3.0))
    assert stage.pod("p-1")["metadata"]["deletionGracePeriodSeconds"] == 3
    stage.finish("p-1", "Failed")
    assert stage.state() == "Running"
    for name in ("p-0", "p-2"):
        stage.finish(name)
    [finished] = stage.peer.of(m.Finished)
    assert finished.succeeded


def test_the_deletion_of_the_only_object_is_a_stop() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.send(DeleteObject(key=KEY, name="p"))
    stage.finish(phase="Failed")
    assert stage.peer.of(m.Stopped)[-1].reason == "Deleted"


# --- gates -------------------------------------------------------------------------------------------------------


def test_a_gate_of_the_users_own_goes_first_and_ours_last() -> None:
    stage = _started()
    gated = {**POD_SPEC, "schedulingGates": [{"name": "example.com/a"}, {"name": "example.com/b"}]}
    stage.place(spec=gated)
    assert stage.state() == "Gated"
    names = [gate["name"] for gate in stage.pod()["spec"]["schedulingGates"]]
    assert names == ["example.com/a", "example.com/b", ADMISSION["name"]]
    stage.send(SetUserGates(key=KEY, name="p", gates=("example.com/b",)))
    assert [gate["name"] for gate in stage.pod()["spec"]["schedulingGates"]] == ["example.com/b", ADMISSION["name"]]
    assert stage.state() == "Gated"
    stage.send(SetUserGates(key=KEY, name="p", gates=()))
    assert stage.state() == "Running"


# --- reports -----------------------------------------------------------------------------------------------------


def test_running_is_told_at_once_and_what_nobody_waits_for_once_a_second() -> None:
    stage = _started()
    stage.place()
    stage.bind()
    assert stage.peer.of(m.ObjectReport) == []
    stage.change(
        POD, "p", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, "status"
    )
    assert len(stage.peer.of(m.ObjectReport)) == 1
    for count in range(5):
        containers = [{"name": "main", "restartCount": count, "ready": True, "state": {}}]
        stage.change(POD, "p", {"status": {"containerStatuses": containers}}, "status")
    assert len(stage.peer.of(m.ObjectReport)) == 1
    stage.pass_seconds(reports.COALESCE_SECONDS)
    told = stage.peer.of(m.ObjectReport)
    assert len(told) == 2
    assert b'"restartCount":4' in told[-1].status


def test_a_pod_that_finishes_costs_one_report_of_its_running_and_one_of_its_end() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.finish()
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.ObjectReport)) == 1
    assert len(stage.peer.of(m.Finished)) == 1


def test_a_failed_pod_says_why() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.finish(phase="Failed", message="the container was killed for memory")
    [finished] = stage.peer.of(m.Finished)
    assert (finished.succeeded, finished.reason, finished.message) == (
        False,
        "Failed",
        "the container was killed for memory",
    )


def test_the_counts_of_a_jobs_pods_are_told_as_they_change() -> None:
    stage = _started()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.pass_seconds(2.0)
    [counts] = stage.peer.of(m.CountsReport)[-1].pod_sets
    assert (counts.name, counts.active, counts.ready, counts.remaining) == ("main", 2, 2, 2)
    first = stage.store.look_all(("", "pods"))[0]["metadata"]["name"]
    stage.remove(POD, first)
    [counts] = stage.peer.of(m.CountsReport)[-1].pod_sets
    assert (counts.active, counts.terminating, counts.remaining) == (1, 1, 2)


def test_a_new_session_is_told_everything_anew() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.place(OTHER, name="q")
    stage.run("q")
    stage.finish("q")
    before = len(stage.peer.heard)
    stage.cut_stream()
    stage.mend(resume=False)
    told = [(type(each).__name__, getattr(each, "key", None)) for each in stage.peer.heard[before:]]
    assert ("GatesLifted", KEY) in told
    assert ("ObjectReport", KEY) in told
    assert ("Finished", OTHER) in told


def test_a_resumed_session_is_told_only_what_was_not_acknowledged() -> None:
    stage = _started()
    stage.place()
    stage.run()
    before = len(stage.peer.heard)
    stage.cut_stream()
    stage.finish()
    stage.mend(resume=True)
    told = [type(each).__name__ for each in stage.peer.heard[before:] if not isinstance(each, m.Capacity)]
    assert told == ["Finished"]


# --- leadership and restarts -------------------------------------------------------------------------------------


def test_a_replica_that_loses_its_lead_forgets_all_but_the_used_epochs() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.post(events.AgentLeadershipLost())
    assert (stage.peer.open, stage.watching) == (False, False)
    assert stage.state() == "none"
    stage.post(events.AgentLeadershipGained(term=5, settle_seconds=0.0))
    stage.lead()
    stage.pass_seconds(120.0)
    assert stage.peer.open
    assert stage.state() == "Running"
    stage.finish()
    stage.send(m.Forget(key=KEY))
    stage.offer()
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.EPOCH_STALE


def test_answers_to_writes_of_a_lost_lead_change_nothing() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == POD
    stage.place()
    stage.hold = lambda _write: False
    stage.post(events.AgentLeadershipLost())
    stage.land()
    assert stage.state() == "none"
    stage.post(events.AgentLeadershipGained(term=5, settle_seconds=10.0))
    stage.lead()
    stage.pass_seconds(60.0)
    assert stage.state() == "Gated"


def test_the_manager_is_not_dialled_before_all_lists_are_complete() -> None:
    stage = Stage()
    stage.post(events.AgentLeadershipGained(term=1, settle_seconds=5.0))
    stage.lead()
    stage.pass_seconds(4.0)
    assert stage.stream is None
    stage.pass_seconds(2.0)
    assert stage.peer.open


def test_a_finished_pod_that_was_forgotten_before_the_restart_is_removed_without_a_word() -> None:
    stage = _started()
    stage.place()
    stage.run()
    stage.finish()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.send(m.Forget(key=KEY))
    stage.crash()
    stage.held.clear()
    stage.hold = lambda _write: False
    heard = len(stage.peer.of(m.Finished))
    stage.start()
    stage.pass_seconds(1.0)
    assert stage.document(POD, "p") is None
    assert len(stage.peer.of(m.Finished)) == heard
    assert stage.state() == "none"


def test_pods_of_a_job_that_is_gone_are_known_after_a_restart() -> None:
    stage = _started()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.remove(JOB, "j")
    stage.restart()
    assert [entry.state for entry in stage.peer.inventories[-1]] == ["Draining"]
    while cluster.react():
        pass
    stage.pass_seconds(UNSEEN_SECONDS)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_objects_of_another_manager_are_left_alone_and_not_spoken_of() -> None:
    stage = _started()
    labels = {"gatelift.dev/origin": "other", "gatelift.dev/workload-uid": "w-9", "gatelift.dev/epoch": "1"}
    meta = {"name": "x", "namespace": NAMESPACE_NAME, "labels": labels, "finalizers": ["gatelift.dev/report"]}
    stage.create(POD, {"metadata": meta, "spec": POD_SPEC})
    stage.restart()
    stage.pass_seconds(100.0)
    assert stage.peer.inventories[-1] == ()
    assert stage.pod("x")["metadata"]["finalizers"] == ["gatelift.dev/report"]


def test_credits_fall_with_the_api_server() -> None:
    stage = _started()

    def credits_now() -> int:
        session = stage.machine._link._session
        assert session is not None
        return session._credits

    assert credits_now() == 256
    stage.post(events.ApiHealthChanged(reachable=True, latency_seconds=0.5))
    assert credits_now() == 128
    stage.post(events.ApiHealthChanged(reachable=True, latency_seconds=2.0))
    assert credits_now() == 32
    stage.post(events.ApiHealthChanged(reachable=True, latency_seconds=0.0, throttled=True))
    assert credits_now() == 32
    stage.post(events.ApiHealthChanged(reachable=False, latency_seconds=0.0))
    assert credits_now() == 0


def test_a_renewed_certificate_is_asked_for_and_installed() -> None:
    stage = _started()
    stage.post(events.CertificateDue(request=b"request"))
    assert stage.peer.of(m.CertificateRequest)[0].request == b"request"
    stage.send(m.CertificateRenewed(certificate=b"certificate", ca_bundle=b"bundle"))
    assert stage.identity == [commands.InstallCertificate(certificate=b"certificate", ca_bundle=b"bundle")]


def test_more_writes_than_may_be_under_way_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "WRITES_IN_FLIGHT_MAX", 8)
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == POD
    keys = [PlacementKey(f"w-{number}", 1) for number in range(1, 13)]
    for key in keys:
        stage.offer(key, name=key.uid)
        stage.send(*commit_messages(key, name=key.uid))
    assert len(stage.held) == 8
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(1.0)
    assert {stage.state(key) for key in keys} == {"Running"}
