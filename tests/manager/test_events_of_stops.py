"""What the user's object is told when its work is stopped or its Workload replaced, in Kueue's words."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Evicted, Offer, Refused
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.world import THE_POD, World, a_running_pod, a_world, workload_ref

THE_JOB = ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))


def told(world: World, reason: str, ref: ObjectRef = THE_POD) -> list[str]:
    return [event.message for event in world.emitted if (event.ref, event.reason) == (ref, reason)]


def test_a_pod_that_is_evicted_is_told_why_it_stops_and_once() -> None:
    world, _ = a_running_pod()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.advance(5.0)
    assert told(world, "Stopped") == ["The workload is deactivated"]


def test_a_pod_whose_workload_is_deleted_is_told_so() -> None:
    world, _ = a_running_pod()
    world.api.delete(workload_ref(world))
    world.settle()
    assert told(world, "Stopped") == ["Workload is deleted"]


def test_a_pod_that_its_user_deletes_is_told_nothing() -> None:
    world, _ = a_running_pod()
    world.api.delete(THE_POD)
    world.settle()
    assert told(world, "Stopped") == []


def test_work_that_its_cluster_ended_is_told_as_stopped() -> None:
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.stopped(key, "a")
    agent.placements.pop(key)
    agent.say(Evicted(key=key, reason="Preempted", message="by somebody"))
    world.advance(5.0)
    (message,) = told(world, "Stopped")
    assert 'evicted on cluster "a": Preempted: by somebody' in message


def test_is_47_work_whose_start_its_cluster_refuses_is_told_so() -> None:
    """Otherwise its object says "Dispatched" again and again, as if it ran."""
    world, agent = a_running_pod()
    key = agent.commits[0]
    world.stopped(key, "a")
    agent.placements.pop(key)
    agent.say(Refused(key=key, refusal=Refusal.POLICY, text="priority class system-node-critical is not allowed"))
    world.advance(5.0)
    assert "system-node-critical" in told(world, "StartRefused")[0]
    assert told(world, "Stopped") == []


def test_what_never_ran_is_not_told_that_it_stops() -> None:
    world = a_world(a_setting())
    world.agents["a"].auto = world.agents["b"].auto = False
    world.api.apply(a_pod().document())
    world.settle()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Evicted")["status"] == "True"
    assert told(world, "Stopped") == []


def test_a_job_that_changes_while_bids_are_out_gets_another_workload() -> None:
    world = a_world(a_setting())
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_job(parallelism=2))
    world.settle()
    first = world.find("Workload")["metadata"]
    assert len(world.messages(Offer)) == 2
    for agent in world.agents.values():
        agent.silent = False
    world.api.edit(THE_JOB, lambda job: job["spec"].update(parallelism=3, completions=3))
    world.advance(20.0)
    second = world.find("Workload")
    assert second["metadata"]["uid"] != first["uid"]
    assert second["spec"]["podSets"][0]["count"] == 3
    assert told(world, "DeletedWorkload", THE_JOB) == [f"Deleted not matching Workload: {NAMESPACE}/{first['name']}"]
    assert second["status"]["clusterName"]


def test_a_second_workload_of_the_same_pod_is_deleted_and_never_runs() -> None:
    world, _ = a_running_pod()
    own = world.find("Workload")
    extra: dict[str, Any] = {
        "apiVersion": own["apiVersion"],
        "kind": "Workload",
        "metadata": {
            "name": "another",
            "namespace": NAMESPACE,
            "ownerReferences": own["metadata"]["ownerReferences"],
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
        },
        "spec": own["spec"],
    }
    world.api.apply(extra)
    world.advance(5.0)
    assert [run[0] for run in world.runs] == [own["metadata"]["uid"]]
    assert world.find("Workload")["metadata"]["uid"] == own["metadata"]["uid"]
    assert told(world, "DeletedWorkload") == [f"Deleted not matching Workload: {NAMESPACE}/another"]
