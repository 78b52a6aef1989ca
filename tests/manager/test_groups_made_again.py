"""PG-36: who takes the place of a group whose cluster is lost, by its name or by a member's, waits (HD-41)."""

from __future__ import annotations

import pytest

from gatelift_wire.values.messages import Commit
from support.manager.api import Doc
from support.manager.builders import a_cluster_queue, a_pod
from support.manager.group_world import THEIRS, K, a_member, a_world_at_home, contained, join, lift, pod_ref
from support.manager.world import World

THREE = [a_member(name, at=at) for at, name in enumerate("abc")]
WAITS = "PredecessorNotStopped"
"""Links of this world keep their session's number when they are cut."""


def a_lost_group(*, gone: bool) -> World:
    """Return a world whose group ran when `local` was lost; somebody took its pods away by force.

    `gone`: its Workload as well.
    """
    world = a_world_at_home(*THREE)
    queue = next(ref for ref in world.api.objects if ref.resource.kind == "ClusterQueue")
    world.api.edit(queue, lambda document: document.update(spec=a_cluster_queue(cpu=20)["spec"]))
    lift(world, *"abc")
    world.cut("local", lost=True)
    world.settle()
    if gone:
        world.api.edit(THEIRS, lambda document: document["metadata"].update(finalizers=[]))
        world.api.delete(THEIRS)
        world.settle()
    for name in "abc":
        world.api.edit(pod_ref(name), lambda document: document["metadata"].update(finalizers=[]))
        world.api.delete(pod_ref(name))
    world.settle()
    return world


def of_another(name: str, at: int) -> Doc:
    document = a_member(name, at=at)
    document["metadata"]["labels"][f"{K}pod-group-name"] = "other"
    return document


def why(world: World, uid: str = "") -> list[str]:
    """Return why Workloads wait, but for one."""
    others = [one for one in world.all("Workload") if one["metadata"]["uid"] != uid]
    return [world.condition(one, "QuotaReserved").get("reason", "") for one in others]


def commits(world: World) -> int:
    return len(world.messages(Commit))


def test_pg_36_a_group_that_is_made_again_under_its_name_waits_while_the_old_ones_cluster_is_lost() -> None:
    world = a_lost_group(gone=True)
    join(world, *(a_member(name, at=10 + at) for at, name in enumerate("def")), seconds=10.0)
    assert (why(world), commits(world)) == ([WAITS], 1)
    world.fence("local")
    world.advance(5.0)
    world.connect("local")
    world.advance(10.0)
    assert (commits(world), contained(world)) == (2, [])


@pytest.mark.parametrize("gone", [False, True], ids=["its Workload is there", "its Workload is gone, too"])
@pytest.mark.parametrize("kind", ["a single pod", "a member of another group"])
def test_pg_36_who_has_the_name_of_one_of_its_members_waits_as_well(kind: str, *, gone: bool) -> None:
    world = a_lost_group(gone=gone)
    uid = "" if gone else world.find("Workload")["metadata"]["uid"]
    if kind == "a single pod":
        world.api.apply(a_pod("b").asking(cpu=1).document())
        world.advance(10.0)
    else:
        join(world, *(of_another(name, 10 + at) for at, name in enumerate("xyb")), seconds=10.0)
    assert (why(world, uid), commits(world)) == ([WAITS], 1)
    world.fence("local")
    world.advance(5.0)
    world.connect("local")
    world.advance(10.0)
    assert (commits(world), contained(world)) == (2, [])


def test_who_has_the_name_of_a_member_that_went_of_a_group_that_runs_and_is_heard_of_does_not_wait() -> None:
    world = a_world_at_home(*THREE)
    queue = next(ref for ref in world.api.objects if ref.resource.kind == "ClusterQueue")
    world.api.edit(queue, lambda document: document.update(spec=a_cluster_queue(cpu=20)["spec"]))
    lift(world, *"abc")
    world.api.edit(pod_ref("b"), lambda document: document["metadata"].update(finalizers=[]))
    world.api.delete(pod_ref("b"))
    world.api.apply(a_pod("b").asking(cpu=1).document())
    world.advance(10.0)
    assert commits(world) == 2
