"""How attempts end: deletion, eviction, refusal, loss, a person's word; and how the work goes on."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit, Evicted, Forget, Offer, Stop, Stopped
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting, a_workload
from support.manager.world import SUCCEEDED, THE_POD, a_running_pod, a_world, workload_ref

THE_QUEUE = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
THE_LOCAL_QUEUE = ObjectRef(LOCAL_QUEUE, ObjectKey(NAMESPACE, "main"))


def stop_policy(policy: str | None) -> Any:
    return lambda queue: queue["spec"].update(stopPolicy=policy)


def test_a_deleted_pod_is_stopped_first_and_then_let_go() -> None:
    world, agent = a_running_pod()
    agent.silent = True
    world.api.delete(THE_POD)
    world.settle()
    assert len(world.messages(Stop)) == 1
    assert world.find("Pod")["metadata"]["finalizers"], "it is let go only when nothing of it runs"
    agent.silent = False
    agent.receive(agent.session, agent.applied + 1, world.messages(Stop)[0][1])
    world.settle()
    assert not world.all("Pod")
    assert not world.all("Workload")
    assert [cluster for cluster, _ in world.messages(Forget)] == ["a"]


def test_a_deletion_while_the_cluster_is_away_is_done_on_its_return() -> None:
    world, agent = a_running_pod()
    world.cut("a", lost=True)
    world.api.delete(THE_POD)
    world.advance(3600.0)
    assert world.find("Pod")["metadata"]["deletionTimestamp"]
    assert world.machine.core.ledger.engine.charged(agent.commits[0].uid), "it stays charged: it may be running"
    world.connect("a")
    world.settle()
    assert not world.all("Pod")
    assert not world.all("Workload")
    assert not world.running


def test_hd_330_a_deleted_workload_stops_the_run_and_then_its_pod_ends() -> None:
    world, agent = a_running_pod()
    first = agent.commits[0]
    world.api.delete(workload_ref(world))
    world.settle()
    assert not [key for one in world.agents.values() for key in one.commits if key != first]
    assert [run[0] for run in world.runs] == [first.uid]
    assert not world.all("Pod")
    assert not world.all("Workload")


def test_a_pod_deleted_before_quota_leaves_nothing() -> None:
    world = a_world(a_setting(cpu=0))
    world.api.apply(a_pod().document())
    world.settle()
    world.api.delete(THE_POD)
    world.settle()
    assert not world.all("Pod")
    assert not world.all("Workload")


def test_a_pod_deleted_while_bids_are_out_withdraws_its_holds() -> None:
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod().document())
    world.settle()
    assert len(world.messages(Offer)) == 2
    world.api.delete(THE_POD)
    world.settle()
    assert not world.all("Workload")
    assert not world.messages(Commit)
    placements = world.machine.core.placements
    assert not any(placements.unapplied(each) for each in placements.clusters())


def test_deactivation_evicts_with_kueues_words_and_frees_the_quota_after_the_stop() -> None:
    world, agent = a_running_pod()
    agent.silent = True
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    workload = world.find("Workload")
    evicted = world.condition(workload, "Evicted")
    assert (evicted["reason"], evicted["message"]) == ("Deactivated", "The workload is deactivated")
    assert workload["status"]["clusterName"] == "a", "the record names the winner until it has stopped"
    assert world.machine.core.ledger.engine.charged(agent.commits[0].uid)
    agent.silent = False
    agent.receive(agent.session, agent.applied + 1, world.messages(Stop)[0][1])
    world.settle()
    workload = world.find("Workload")
    assert world.condition(workload, "QuotaReserved")["status"] == "False"
    assert world.condition(workload, "Admitted")["reason"] == "NoReservation"
    assert world.condition(workload, "Requeued")["status"] == "False"
    check = workload["status"]["admissionChecks"][0]
    assert (check["state"], check["message"]) == ("Pending", "Reset to Pending after eviction. Previously: Ready")
    assert "clusterName" not in workload["status"]
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"
    assert not world.machine.core.ledger.engine.charged(agent.commits[0].uid)
    assert world.find("Pod")["status"]["phase"] == "Pending", "the user's pod shows that it waits again"


def test_a_reactivated_workload_runs_again_under_the_next_epoch() -> None:
    world, agent = a_running_pod()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=True))
    world.settle()
    assert world.condition(world.find("Workload"), "Requeued")["reason"] == "Reactivated"
    assert [key.epoch for key in agent.commits] == [1, 2]


def test_a_drained_cluster_queue_evicts_and_its_restart_brings_the_work_back() -> None:
    world, agent = a_running_pod()
    world.api.edit(THE_QUEUE, stop_policy("HoldAndDrain"))
    world.settle()
    workload = world.find("Workload")
    assert world.condition(workload, "Evicted")["reason"] == "ClusterQueueStopped"
    assert not world.running
    world.advance(60.0)
    assert len(agent.commits) == 1
    world.api.edit(THE_QUEUE, stop_policy(None))
    world.settle()
    assert world.condition(world.find("Workload"), "Requeued")["reason"] == "ClusterQueueRestarted"
    assert [key.epoch for key in agent.commits] == [1, 2]


def test_a_drained_local_queue_evicts_and_its_restart_brings_the_work_back() -> None:
    world, agent = a_running_pod()
    world.api.edit(THE_LOCAL_QUEUE, stop_policy("HoldAndDrain"))
    world.settle()
    assert world.condition(world.find("Workload"), "Evicted")["reason"] == "LocalQueueStopped"
    world.api.edit(THE_LOCAL_QUEUE, stop_policy("None"))
    world.settle()
    assert world.condition(world.find("Workload"), "Requeued")["reason"] == "LocalQueueRestarted"
    assert [key.epoch for key in agent.commits] == [1, 2]


def test_a_held_queue_lets_running_work_run() -> None:
    world, agent = a_running_pod()
    world.api.edit(THE_QUEUE, stop_policy("Hold"))
    world.settle()
    assert not world.messages(Stop)
    agent.finish(agent.commits[0], SUCCEEDED)
    world.settle()
    assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded"


def test_a_held_queue_takes_back_a_reservation_that_is_not_yet_admitted() -> None:
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.bid = None
        agent.silent = True
    world.api.apply(a_pod().document())
    world.advance(2.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
    world.api.edit(THE_QUEUE, stop_policy("Hold"))
    world.settle()
    reserved = world.condition(world.find("Workload"), "QuotaReserved")
    assert (reserved["status"], reserved["reason"]) == ("False", "Suspended")
    assert reserved["message"] == "ClusterQueue shared is inactive"
    told = [
        condition["message"]
        for _, _, body in world.api.writes
        if isinstance(body, dict)
        for condition in body.get("status", {}).get("conditions", [])
    ]
    assert "ClusterQueue shared is stopped" in told, "said first, by the write that took the reservation back"


def test_a_refused_commit_is_tried_elsewhere_under_a_higher_epoch() -> None:
    world = a_world(a_setting())
    world.agents["a"].refuse_commit = Refusal.NAME_CONFLICT
    world.api.apply(a_pod().document())
    world.settle()
    workload = world.find("Workload")
    evicted = world.condition(workload, "Evicted")
    assert evicted["reason"] == "AdmissionCheck"
    assert 'Cluster "a" refused the placement: NameConflict: as told' in evicted["message"]
    assert workload["status"]["admissionChecks"][0]["retryCount"] == 1
    assert workload["status"]["requeueState"]["count"] == 0, "that counts time-outs of PodsReady"
    world.advance(3.0)
    assert world.condition(world.find("Workload"), "Requeued")["reason"] == "BackoffFinished"
    assert world.find("Workload")["status"]["clusterName"] == "b"
    assert [(key.epoch) for key in world.agents["b"].commits] == [2]


def test_work_that_its_cluster_evicted_is_dispatched_anew() -> None:
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.stopped(key, "a")
    agent.placements.pop(key)
    agent.say(Evicted(key=key, reason="Preempted", message="by somebody"))
    world.advance(5.0)
    workload = world.find("Workload")
    assert world.condition(workload, "Evicted")["status"] == "False"
    assert 'evicted on cluster "a": Preempted: by somebody' in world.condition(workload, "Evicted")["message"]
    assert [run[1] for run in world.runs] == [1, 2]


def test_a_placement_that_stopped_unasked_is_dispatched_anew() -> None:
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.stopped(key, "a")
    agent.say(Stopped(key=key, reason="Fenced"))
    world.advance(5.0)
    assert [run[1] for run in world.runs] == [1, 2]


def test_a_lost_cluster_keeps_its_work_and_its_charge() -> None:
    world, agent = a_running_pod()
    world.cut("a", lost=True)
    world.advance(7200.0)
    assert len(world.runs) == 1
    assert world.machine.core.ledger.engine.charged(agent.commits[0].uid)
    told = [(event.ref.resource.kind, event.reason) for event in world.emitted if event.warning]
    assert told == [("Workload", "ClusterUnreachable"), ("Pod", "ClusterUnreachable")]
    world.connect("a")
    agent.finish(agent.commits[0], SUCCEEDED)
    world.settle()
    assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded"


def test_work_on_a_cluster_that_a_person_declared_fenced_runs_elsewhere_under_a_higher_epoch() -> None:
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.cut("a", lost=True)
    world.stopped(key, "a")
    world.fence("a")
    world.advance(5.0)
    assert [(run[1], run[2]) for run in world.runs] == [(1, "a"), (2, "b")]
    assert 'Cluster "a" was declared fenced by ada' in world.condition(world.find("Workload"), "Evicted")["message"]
    world.connect("a")
    world.settle()
    assert [message.key for cluster, message in world.messages(Stop) if cluster == "a"] == [key]
    assert "RanAfterFenced" in {event.reason for event in world.emitted}


def test_the_log_says_when_a_cluster_opens_a_session_is_lost_and_is_declared_fenced() -> None:
    world, agent = a_running_pod()
    world.notes.clear()
    world.cut("a", lost=True)
    world.fence("a")
    world.connect("a")
    assert [(note.level, note.text) for note in world.notes if note.cluster == "a" and not note.workload] == [
        ("warning", "cluster lost: its lease ran out"),
        ("warning", "a person says that nothing runs there any more"),
        ("info", "session open"),
    ]
    (opened,) = (note for note in world.notes if note.text == "session open")
    assert dict(opened.fields) == {"session": str(agent.session), "resumed": "false"}


def test_finished_written_by_somebody_else_stops_what_runs() -> None:
    world, agent = a_running_pod()
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "by hand",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    world.api.edit(workload_ref(world), lambda workload: workload["status"]["conditions"].append(finished))
    world.settle()
    assert not world.running
    assert not agent.placements


def test_a_bare_workload_is_evicted_and_admitted_again_under_the_next_epoch() -> None:
    world = a_world(a_setting(clusters=()), clusters=())
    world.api.apply(a_workload().document())
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    workload = world.find("Workload")
    assert world.condition(workload, "Evicted")["reason"] == "Deactivated"
    assert world.condition(workload, "QuotaReserved")["status"] == "False"
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=True))
    world.settle()
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"


def test_a_bare_workload_gives_its_quota_back_when_somebody_finishes_or_deletes_it() -> None:
    world = a_world(a_setting(clusters=(), cpu=1), clusters=())
    world.api.apply(a_workload("first").document())
    world.settle()
    world.api.apply(a_workload("second").document())
    world.settle()
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    first = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, "first"))
    world.api.edit(first, lambda workload: workload["status"]["conditions"].append(finished))
    world.settle()
    assert world.condition(world.find("Workload", "second"), "Admitted")["status"] == "True"
    world.api.apply(a_workload("third").document())
    world.settle()
    world.api.delete(ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, "second")))
    world.settle()
    assert world.condition(world.find("Workload", "third"), "Admitted")["status"] == "True"


def test_a_local_pod_that_was_lifted_ends_with_its_eviction() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    world.api.apply(a_pod().document())
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    assert not world.all("Pod"), "a pod cannot be gated again, so it is deleted"
    assert not world.all("Workload")
    assert not world.running


def test_a_local_job_runs_again_under_the_next_epoch() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    document = a_job()
    del document["spec"]["managedBy"]
    world.api.apply(document)
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=True))
    world.settle()
    assert [key.epoch for key in world.agents["local"].commits] == [1, 2]


def test_hd_101_what_is_held_back_at_home_and_not_listed_is_named_before_it_is_stopped() -> None:
    """It carries no label of ours before it is let go, and the lift of an earlier leader may land late (R7)."""
    world = a_world(a_setting(clusters=()), clusters=("local",))
    local = world.agents["local"]
    local.auto = False
    world.api.apply(a_pod().document())
    world.settle()
    world.cut("local")
    local.placements.clear()
    local.silent = True
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.settle()
    before = len(world.links.log)
    world.connect("local")
    world.settle()
    assert [type(message) for _, message in world.links.log[before:]] == [Commit, Stop]
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"
