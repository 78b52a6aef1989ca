"""IS-47: the user's own object says where it runs and why it waits, by events and an annotation that costs no write."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kinds.shared.placed_on import ANNOTATIONS_BYTES_MAX, PLACED_ON
from gatelift_kube.deciding.writes import Patch
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world


def told(world: World, kind: str = "Pod") -> list[tuple[str, str]]:
    return [(one.reason, one.message) for one in world.emitted if one.ref.resource.kind == kind]


def annotated(world: World) -> list[Patch]:
    """Return the writes to users' objects that name the annotation."""
    patches = [one for one in world.history if isinstance(one, Patch) and one.ref.resource.kind in {"Pod", "Job"}]
    return [one for one in patches if PLACED_ON.encode() in one.body]


def test_is_47_a_pod_says_why_it_waits_and_where_it_went() -> None:
    world = a_world(a_setting(cpu=1))
    world.api.apply(a_pod("first").document())
    world.settle()
    world.api.apply(a_pod("second").document())
    world.settle()
    world.advance(20.0)
    waits = [one for one in world.emitted if one.reason == "WaitingForQuota"]
    assert sorted((one.ref.resource.kind, one.ref.key.name) for one in waits if "second" in one.ref.key.name) == [
        ("Pod", "second"),
        ("Workload", next(one.ref.key.name for one in waits if one.ref.resource.kind == "Workload")),
    ], "each is told once, in the same words"
    assert len({one.message for one in waits}) == 1
    assert ("Dispatched", 'Dispatched to cluster "a"') in told(world)


def test_is_47_a_pod_says_that_its_cluster_is_not_heard_of() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    world.cut("a", lost=True)
    world.advance(60.0)
    text = 'Cluster "a" is unreachable; the work there may be running and its quota stays charged'
    assert told(world).count(("ClusterUnreachable", text)) == 1
    assert told(world, "Workload").count(("ClusterUnreachable", text)) == 1


def test_is_47_where_a_pod_is_placed_goes_along_with_the_first_status_that_is_shown() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(5.0)
    assert world.find("Pod")["metadata"]["annotations"][PLACED_ON] == "a"
    (write,) = annotated(world)
    assert write.subresource == "status", "no write of its own"
    agent.show(agent.commits[0], {**RUNNING, "message": "still"})
    world.advance(5.0)
    assert len(annotated(world)) == 1, "said once"


def test_is_47_what_is_placed_nowhere_any_more_does_not_say_so() -> None:
    world = a_world(a_setting())
    world.api.apply(a_job())
    world.settle()
    assert world.find("Job")["metadata"]["annotations"][PLACED_ON] == "a"
    assert [msgspec.json.decode(one.body)["spec"]["suspend"] for one in annotated(world)] == [False]
    ref = next(ref for ref in world.api.objects if ref.resource.kind == "Workload")
    world.api.edit(ref, lambda one: one["spec"].update(active=False))
    world.advance(5.0)
    assert PLACED_ON not in world.find("Job")["metadata"]["annotations"]
    assert [msgspec.json.decode(one.body)["spec"]["suspend"] for one in annotated(world)] == [False, True]


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_is_47_a_full_list_of_annotations_keeps_nothing_from_being_shown(kind: str) -> None:
    """The API server takes 256 KiB of annotations: who has used them up goes without this one."""
    world = a_world(a_setting())
    document = a_pod().document() if kind == "Pod" else a_job()
    document["metadata"]["annotations"] = {"example.com/x": "y" * ANNOTATIONS_BYTES_MAX}
    world.api.apply(document)
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING if kind == "Pod" else {"active": 2, "ready": 2})
    world.advance(5.0)
    assert annotated(world) == []
    shown = world.find(kind)["status"]
    assert shown.get("phase") == "Running" or shown.get("active") == 2


def test_is_47_nothing_believes_what_the_annotation_says() -> None:
    world = a_world(a_setting())
    document = a_pod().document()
    document["metadata"]["annotations"] = {PLACED_ON: "elsewhere"}
    world.api.apply(document)
    world.settle()
    assert world.find("Workload")["status"]["clusterName"] == "a"
