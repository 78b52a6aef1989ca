"""HD-139: a pod that waits and is taken out of its queue stays gated, and says so."""

from __future__ import annotations

from dataclasses import replace

from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

QUEUE = "kueue.x-k8s.io/queue-name"


def told(world: World) -> list[str]:
    return [each.message for each in world.emitted if each.reason == "NoQueue"]


def label(world: World, queue: str | None) -> None:
    meta = world.find("Pod")["metadata"]
    ref = ObjectRef(POD, ObjectKey(meta["namespace"], meta["name"]))

    def change(pod: dict) -> None:  # type: ignore[type-arg]  # a document as the store has it
        pod["metadata"]["labels"].pop(QUEUE, None)
        if queue is not None:
            pod["metadata"]["labels"][QUEUE] = queue

    world.api.edit(ref, change)
    world.advance(5.0)


def test_hd_139_a_waiting_pod_that_leaves_its_queue_says_that_it_stays_gated_and_how_to_go_on() -> None:
    world = a_world(a_setting())
    world.api.apply(replace(a_pod(), cpu="1000").document())
    world.advance(3.0)
    queue = world.find("Pod")["metadata"]["labels"][QUEUE]
    assert not told(world)
    label(world, None)
    assert told(world)
    assert "give it the label again, or delete the pod" in told(world)[0]
    assert world.find("Pod")["spec"]["schedulingGates"], "as in Kueue"
    label(world, queue)
    assert len(told(world)) == 1
    assert world.find("Workload")["spec"]["queueName"] == queue
