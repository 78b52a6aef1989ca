"""A world whose manager serves groups, with pods of one: `World` as ever, on `local`."""

from __future__ import annotations

from typing import Any

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from support.manager.api import Doc
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.world import World, a_world

K = "kueue.x-k8s.io/"
GROUP = "crew"
THEIRS = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, GROUP))
"""Where the group's Workload belongs."""


def a_world_with_groups(**settings: Any) -> World:
    """Return a world with one queue for `local`, whose manager serves groups."""
    return a_world(a_setting(clusters=()), clusters=(), kinds=WITH_GROUPS, **settings)


def a_member(
    name: str, *, total: int | str = 3, cpu: str = "1", at: int = 0, labels: Doc | None = None, notes: Doc | None = None
) -> Doc:
    """Return a pod of the group as the webhook leaves it, made in second `at`."""
    document = a_pod(name).asking(cpu=cpu).document()
    meta = document["metadata"]
    meta["labels"] |= {f"{K}pod-group-name": GROUP, **(labels or {})}
    meta["annotations"] = {f"{K}pod-group-total-count": str(total), **(notes or {})}
    meta["creationTimestamp"] = f"2026-11-21T00:00:{at:02}Z"
    return document


def pod_ref(name: str) -> ObjectRef:
    """Return what names a pod."""
    return ObjectRef(POD, ObjectKey(NAMESPACE, name))


def join(world: World, *members: Doc, seconds: float = 2.0) -> None:
    """Make pods, oldest first, and let what follows happen."""
    for each in members:
        world.api.apply(each)
    world.advance(seconds)


def warnings(world: World, reason: str) -> list[tuple[str, str]]:
    """Return at whom events of a reason were told, and what."""
    return [(one.ref.key.name, one.message) for one in world.emitted if one.reason == reason]


def owners_of(workload: Doc) -> list[str]:
    """Return the names of a Workload's owners, none of which controls it."""
    references = workload["metadata"]["ownerReferences"]
    assert not any(one.get("controller") for one in references)
    return [one["name"] for one in references]


def pod_sets_of(workload: Doc) -> list[int]:
    """Return how many pods each pod set has."""
    return [each["count"] for each in workload["spec"]["podSets"]]


def a_world_at_home(*members: Doc, **settings: Any) -> World:
    """Return a world whose `local` takes what is committed, with a group of these pods."""
    world = a_world_with_groups(**settings)
    world.connect("local")
    join(world, *members, seconds=5.0)
    return world


def lift(world: World, *names: str) -> None:
    """Let pods go as the agent of `local` does."""
    for name in names:
        world.api.edit(pod_ref(name), lambda document: document["spec"].update(schedulingGates=[], nodeName="n"))
    world.advance(2.0)


def over(world: World, name: str, phase: str, *, seconds: float = 5.0) -> None:
    """Have a pod come to its end."""
    world.api.edit(pod_ref(name), lambda document: document["status"].update(phase=phase))
    world.advance(seconds)


def leave(world: World, name: str, reason: str = "WorkloadEvictedDueToDeactivated") -> None:
    """Have a pod be told and deleted as the agent of `local` does; it runs on."""
    said = {"type": "TerminationTarget", "status": "True", "reason": reason}
    world.api.edit(pod_ref(name), lambda document: document["status"].update(conditions=[said]))
    world.api.delete(pod_ref(name))
    world.settle()


def contained(world: World) -> list[str]:
    """Return what a pass or an answer that raised left in the log."""
    return [one.text for one in world.notes if "it is left as it is" in one.text]


def names(world: World) -> list[str]:
    """Return the pods that are there."""
    return sorted(one["metadata"]["name"] for one in world.all("Pod"))


def says(world: World, condition: str) -> tuple[str, str]:
    """Return status and reason of a condition of the group's Workload."""
    said = world.condition(world.find("Workload", GROUP), condition)
    return said.get("status", ""), said.get("reason", "")
