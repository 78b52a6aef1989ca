"""Preemption in the manager: the victim's pods have stopped before the other's are started, and it comes back."""

from __future__ import annotations

from typing import Any

from gatelift_kube.values.resources import CLUSTER_QUEUE, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Stop
from support.manager.agents import ScriptedAgent
from support.manager.builders import a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

THE_QUEUE = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
HIGH = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def preempts(queue: Any) -> None:
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}


def low_runs() -> tuple[World, ScriptedAgent]:
    """Return a world whose quota is used up by a running pod of low priority, in a queue that preempts."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(HIGH)
    world.api.edit(THE_QUEUE, preempts)
    world.api.apply(a_pod("low").document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[-1], RUNNING)
    world.settle()
    return world, agent


def workload_of(world: World, pod: str) -> Any:
    return next(one for one in world.all("Workload") if one["metadata"]["name"].startswith(f"pod-{pod}-"))


def submit_high(world: World) -> None:
    world.api.apply(a_pod("high").of_class("high").document())
    world.settle()


def test_the_victim_has_stopped_before_the_other_is_placed() -> None:
    world, agent = low_runs()
    agent.silent = True
    submit_high(world)
    assert [message.key.uid for _, message in world.messages(Stop)] == [workload_of(world, "low")["metadata"]["uid"]]
    assert len(agent.commits) == 1, "nothing is started while the victim may still run"
    high = world.condition(workload_of(world, "high"), "QuotaReserved")
    assert (high["status"], high["reason"]) == ("False", "WaitingForPreemptedWorkloads")
    assert high["message"].endswith("1 more needed. Pending the preemption of 1 workload(s)")
    agent.silent = False
    agent.receive(agent.session, agent.applied + 1, world.messages(Stop)[0][1])
    world.settle()
    assert [key.uid for key in agent.commits][1:] == [workload_of(world, "high")["metadata"]["uid"]]


def test_the_victim_says_why_and_waits_under_the_next_epoch() -> None:
    world, agent = low_runs()
    submit_high(world)
    low, high = workload_of(world, "low"), workload_of(world, "high")
    evicted, preempted = world.condition(low, "Evicted"), world.condition(low, "Preempted")
    assert (evicted["status"], evicted["reason"]) == ("True", "Preempted")
    assert (preempted["status"], preempted["reason"]) == ("True", "InClusterQueue")
    uid = high["metadata"]["uid"]
    assert evicted["message"] == preempted["message"]
    assert evicted["message"].startswith(f"Preempted to accommodate a workload (UID: {uid}, JobUID: ")
    assert evicted["message"].endswith(
        " due to prioritization in the ClusterQueue; preemptor path: /shared; preemptee path: /shared"
    )
    assert world.condition(low, "Requeued")["status"] == "True"
    assert world.condition(low, "QuotaReserved")["status"] == "False"
    assert world.condition(high, "Admitted")["status"] == "True"
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.settle()
    assert [key.epoch for key in agent.commits if key.uid == low["metadata"]["uid"]] == [1, 2]
    assert world.condition(workload_of(world, "low"), "Preempted")["status"] == "False"


def test_events_name_both_sides_of_a_preemption() -> None:
    world, _ = low_runs()
    submit_high(world)
    told = {(one.ref.key.name, one.reason) for one in world.emitted}
    low, high = workload_of(world, "low"), workload_of(world, "high")
    assert (low["metadata"]["name"], "Preempted") in told
    assert (high["metadata"]["name"], "PreemptedWorkload") in told


def test_is_34_events_of_a_preemption_have_the_names_and_priorities_that_kueues_have() -> None:
    world, _ = low_runs()
    submit_high(world)
    low, high = workload_of(world, "low"), workload_of(world, "high")
    said = {one.reason: one.message for one in world.emitted}
    priorities = [one["spec"]["priority"] for one in (high, low)]
    both = (
        f"; preemptor effective priority: {priorities[0]} (base: {priorities[0]}, boost: 0); "
        f"preemptee effective priority: {priorities[1]} (base: {priorities[1]}, boost: 0)"
    )
    assert said["Preempted"] == world.condition(low, "Preempted")["message"].removeprefix("Previously: ") + both
    meta = low["metadata"]
    assert said["PreemptedWorkload"] == (
        f"Preempted workload {meta['namespace']}/{meta['name']} (UID: {meta['uid']}) in ClusterQueue shared{both}"
    )


def test_a_victim_without_a_placement_gives_its_reservation_back() -> None:
    world = a_world(a_setting(cpu=1))
    world.api.apply(HIGH)
    world.api.edit(THE_QUEUE, preempts)
    for agent in world.agents.values():
        agent.bid = None
        agent.silent = True
    world.api.apply(a_pod("low").document())
    world.advance(2.0)
    assert world.condition(workload_of(world, "low"), "QuotaReserved")["status"] == "True"
    world.api.apply(a_pod("high").of_class("high").document())
    world.advance(2.0)
    low = workload_of(world, "low")
    assert world.condition(low, "QuotaReserved")["status"] == "False"
    assert world.condition(low, "Preempted")["reason"] == "InClusterQueue"
    assert world.condition(workload_of(world, "high"), "QuotaReserved")["status"] == "True"
    assert not world.messages(Stop)


def test_a_leader_that_starts_meanwhile_stops_the_same_victim() -> None:
    world, agent = low_runs()
    agent.silent = True
    submit_high(world)
    world.restart()
    agent.silent = False
    world.advance(3.0)
    low = workload_of(world, "low")["metadata"]["uid"]
    assert {message.key.uid for _, message in world.messages(Stop)} == {low}
    assert [key.uid for key in agent.commits] == [low, workload_of(world, "high")["metadata"]["uid"]]
