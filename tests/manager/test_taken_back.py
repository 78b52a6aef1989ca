"""A reservation whose write waits for its turn when its holder has to leave: it is not written at all."""

from __future__ import annotations

from gatelift_kube.resources import CLUSTER_QUEUE, ObjectKey, ObjectRef
from gatelift_kube.writes import Create, Delete, Patch, TakeBack
from gatelift_wire.messages import Offer
from support.builders_manager import Doc, a_pod, a_setting
from support.manager_world import SUCCEEDED, World, a_world

THE_QUEUE = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
HIGH = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def reserves(command: Create | Patch | Delete) -> bool:
    return isinstance(command, Patch) and b'"clusterName":"' in command.body


def preempts(queue: Doc) -> None:
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}


def low_waits() -> World:
    """Return a world whose quota is used up by a pod of low priority, of which nothing is written yet."""
    world = a_world(a_setting(cpu=1))
    world.api.apply(HIGH)
    world.api.edit(THE_QUEUE, preempts)
    world.settle()
    world.waits = reserves
    world.api.apply(a_pod("low").document())
    world.settle()
    assert len(world.waiting) == 1
    return world


def workload_of(world: World, pod: str) -> Doc:
    return next(one for one in world.all("Workload") if one["metadata"]["name"].startswith(f"pod-{pod}-"))


def taken_back(world: World) -> list[int]:
    return [command.write_id for command in world.history if isinstance(command, TakeBack)]


def test_who_is_preempted_before_anything_is_written_goes_back_to_its_queue_without_a_trace() -> None:
    world = low_waits()
    (write,) = world.waiting
    world.api.apply(a_pod("high").of_class("high").document())
    world.settle()
    assert taken_back(world) == [write]
    assert write not in world.waiting
    world.let_go()
    world.settle()
    high, low = workload_of(world, "high"), workload_of(world, "low")
    assert [key.uid for agent in world.agents.values() for key in agent.commits] == [high["metadata"]["uid"]]
    assert world.condition(high, "Admitted")["status"] == "True"
    assert not world.condition(low, "Evicted"), "nobody has seen it admitted"
    assert world.condition(low, "QuotaReserved")["status"] == "False"


def test_it_is_admitted_as_ever_once_there_is_room_again() -> None:
    world = low_waits()
    world.api.apply(a_pod("high").of_class("high").document())
    world.settle()
    world.let_go()
    world.settle()
    agent = next(each for each in world.agents.values() if each.commits)
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(5.0)
    low = workload_of(world, "low")["metadata"]["uid"]
    assert [key.uid for each in world.agents.values() for key in each.commits].count(low) == 1
    assert world.machine.core.ledger.usage(low)


def test_one_that_had_its_turn_is_evicted_as_ever() -> None:
    world = low_waits()
    (write,) = world.waiting
    on_its_way = world.waiting.pop(write)
    world.api.apply(a_pod("high").of_class("high").document())
    world.settle()
    assert taken_back(world) == [write]
    world.waits = None
    world._write(on_its_way)
    world.settle()
    evicted = world.condition(workload_of(world, "low"), "Evicted")
    assert (evicted["status"], evicted["reason"]) == ("True", "Preempted")
    assert world.condition(workload_of(world, "high"), "Admitted")["status"] == "True"


def test_a_queue_that_is_stopped_takes_back_the_cluster_of_one_that_has_quota() -> None:
    world = a_world(a_setting(cpu=1))
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod("low").document())
    world.advance(1.5)
    assert world.condition(workload_of(world, "low"), "QuotaReserved")["status"] == "True", "nobody waits unseen"
    world.waits = reserves
    for cluster, offer in world.messages(Offer):
        agent = world.agents[cluster]
        agent.silent = False
        agent.receive(agent.session, agent.applied + 1, offer)
    world.settle()
    (write,) = world.waiting
    world.api.edit(THE_QUEUE, lambda queue: queue["spec"].update(stopPolicy="Hold"))
    world.settle()
    assert taken_back(world) == [write]
    world.let_go()
    world.advance(10.0)
    assert world.condition(workload_of(world, "low"), "QuotaReserved")["status"] == "False"
    assert not [key for agent in world.agents.values() for key in agent.commits]


def test_it_is_asked_for_once() -> None:
    world = low_waits()
    (write,) = world.waiting
    world.waiting.clear()  # under way for long: no answer comes
    world.api.apply(a_pod("high").of_class("high").document())
    world.advance(3.0)
    world.api.edit(THE_QUEUE, lambda queue: queue["spec"].update(stopPolicy="HoldAndDrain"))
    world.advance(3.0)
    assert taken_back(world) == [write]
