"""A world whose manager serves elastic Jobs (KEP-77), with one that runs, and what can be seen of its slices."""

from __future__ import annotations

from typing import Any

from gatelift.core.records.attempts import Attempt
from gatelift_kinds.registry import WITH_SLICES
from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_SIZE, VERSION_OF_SIZES
from gatelift_wire.values.sizes import Resize
from support.manager.builders import NAMESPACE, Doc, a_job, a_setting
from support.manager.world import World, a_world

THE_JOB = ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))
QUEUE = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))


def an_elastic_job(name: str = "work", *, parallelism: int = 3, at_home: bool = False) -> Doc:
    """Return an opted-in Job as the webhook leaves it."""
    job = a_job(name, parallelism=parallelism, completions=100)
    job["metadata"]["annotations"][markers.ELASTIC_JOB] = "true"
    if at_home:
        del job["spec"]["managedBy"]
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": markers.ELASTIC_JOB}]
    return job


def a_slice_world(*, cpu: int = 10, clusters: tuple[str, ...] = ("a", "b"), **settings: Any) -> World:
    """Return a world in which elastic Jobs are served."""
    world = a_world(a_setting(cpu=cpu, clusters=clusters), clusters=(), kinds=WITH_SLICES, **settings)
    for name in clusters or ("local",):
        world.connect(name, version=VERSION_OF_SIZES)
    world.advance(3.0)
    return world


def a_running_chain(*, parallelism: int = 3, clusters: tuple[str, ...] = ("a", "b"), **of_world: Any) -> World:
    """Return a world in which an elastic Job of that size is placed and let go; no `clusters`: at home."""
    world = a_slice_world(clusters=clusters, **of_world)
    world.api.apply(an_elastic_job(parallelism=parallelism, at_home=not clusters))
    world.advance(5.0)
    return world


def resize(world: World, parallelism: int, ref: ObjectRef = THE_JOB) -> None:
    """Let the user change the size of his Job; nothing is settled."""

    def change(job: Doc) -> None:
        job["spec"]["parallelism"] = parallelism
        job["metadata"]["generation"] += 1

    world.api.edit(ref, change)


def all_slices(world: World) -> list[Doc]:
    """Return all slices by their number, then in the order in which they were made."""
    return sorted(world.all("Workload"), key=lambda one: (number(one), int(one["metadata"]["uid"].split("-")[-1])))


def number(document: Doc) -> int:
    return int(document["metadata"]["annotations"].get(ANNOTATION_SIZE, "1"))


def count(document: Doc) -> int:
    asked: int = document["spec"]["podSets"][0]["count"]
    return asked


def charged(document: Doc) -> int | None:
    """Return the pods for which a slice has quota, by its status; None without."""
    admission = document.get("status", {}).get("admission")
    return admission["podSetAssignments"][0]["count"] if admission else None


def finished(world: World, document: Doc) -> str:
    """Return the reason of Finished, "" where a slice is not."""
    return str(world.condition(document, "Finished").get("reason", ""))


def seen(world: World) -> list[tuple[int, int, int | None, str]]:
    """Return number, count, charged count and end of each slice."""
    return [(number(one), count(one), charged(one), finished(world, one)) for one in all_slices(world)]


def used(world: World) -> int:
    """Return what the engine has charged to the queue, in whole CPUs; 0 before it knows the queue."""
    queue = world.machine.core.ledger.engine.state.ledger.queues.get("shared")
    return sum(queue.reserved_usage.values()) // 1000 if queue is not None else 0


def ref_of(document: Doc) -> ObjectRef:
    """Return where a Workload is."""
    return ObjectRef(WORKLOAD, ObjectKey(document["metadata"]["namespace"], document["metadata"]["name"]))


def chain_of(document: Doc) -> str:
    """Return the UID of the first slice of its chain, as a slice says it."""
    return str(document["metadata"]["annotations"].get(ANNOTATION_CHAIN, document["metadata"]["uid"]))


def the_attempt(world: World) -> Attempt:
    """Return what is placed."""
    (found,) = [each for each in world.machine.core.attempts.values() if each.live]
    return found


def hold_queue(world: World, policy: str) -> None:
    """Let an administrator stop the queue, or let it go on."""
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy=policy))
    world.advance(20.0)


def resizes(world: World) -> list[tuple[int, int]]:
    """Return number and count of each Resize that was said."""
    return [(one.number, one.pod_sets[0].count) for _, one in world.messages(Resize)]


def waits_for(world: World) -> str:
    """Return why the slice that waits has no quota."""
    return str(world.condition(all_slices(world)[-1], "QuotaReserved").get("message", ""))


def an_answering_chain(**of: Any) -> World:
    """Return a chain whose cluster answers each size at once."""
    world = a_running_chain(**of)
    for agent in world.agents.values():
        agent.answers = True
        for key, held in agent.placements.items():
            if held.size:
                agent.answer_size(key)
    world.settle()
    return world
