"""A group that has quota is committed to `local` as one, and ends as one by its pods (the manager's side of PG-1)."""

from __future__ import annotations

import pytest

from gatelift_wire.values.messages import Commit, Stop
from support.manager.builders import a_cluster_queue
from support.manager.group_world import (
    K,
    a_member,
    a_world_at_home,
    a_world_with_groups,
    contained,
    join,
    lift,
    over,
    pod_ref,
    pod_sets_of,
    warnings,
)
from support.manager.world import World

GATED = [{"name": f"{K}admission"}]


def commits(world: World) -> list[Commit]:
    return [message for _, message in world.messages(Commit)]


def finished(world: World) -> tuple[str, str]:
    said = world.condition(world.find("Workload"), "Finished")
    return said.get("reason", ""), said.get("message", "")


def test_pg_1_a_group_is_committed_as_one_each_pod_by_its_uid_and_in_its_role() -> None:
    members = [a_member("a", at=1), a_member("b", at=2, cpu="2"), a_member("c", at=3)]
    world = a_world_at_home(*members)
    (commit,) = commits(world)
    uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in world.all("Pod")}
    assert {one.name: one.template for one in commit.objects} == uids
    roles = {one.name: one.pod_set for one in commit.objects}
    assert roles["a"] == roles["c"] != roles["b"]
    assert {one.name: one.count for one in commit.pod_sets} == {roles["a"]: 2, roles["b"]: 1}
    assert commit.release == "OnTerminating"


def test_a_group_for_which_there_is_no_quota_is_committed_nowhere() -> None:
    world = a_world_at_home(*(a_member(name, at=at, cpu="3") for at, name in enumerate("abc")))
    assert commits(world) == []
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "False"
    world.api.edit(
        next(ref for ref in world.api.objects if ref.resource.kind == "ClusterQueue"),
        lambda document: document.update(spec=a_cluster_queue(cpu=9)["spec"]),
    )
    world.advance(5.0)
    assert [len(one.objects) for one in commits(world)] == [3]


def test_a_member_that_goes_while_the_group_waits_keeps_it_from_quota_until_there_is_another() -> None:
    world = a_world_with_groups()
    join(world, *(a_member(name, at=at) for at, name in enumerate("abc")))
    world.api.delete(pod_ref("c"))
    world.advance(2.0)
    world.connect("local")
    world.advance(5.0)
    before = world.find("Workload")["metadata"]["uid"]
    assert pod_sets_of(world.find("Workload")) == [3]
    join(world, a_member("d", at=9), seconds=10.0)
    assert world.find("Workload")["metadata"]["uid"] == before
    assert [{one.name for one in each.objects} for each in commits(world)][-1] == {"a", "b", "d"}


def test_pg_11_a_group_has_succeeded_once_all_its_pods_have_and_lets_them_go() -> None:
    """PC-039."""
    world = a_world_at_home(*(a_member(name, at=at) for at, name in enumerate("abc")))
    lift(world, *"abc")
    over(world, "a", "Succeeded")
    over(world, "b", "Succeeded")
    assert finished(world) == ("", "")
    assert world.messages(Stop) == []
    over(world, "c", "Succeeded")
    assert finished(world) == ("Succeeded", "Pods succeeded: 3/3")
    assert contained(world) == []
    assert [one["metadata"]["finalizers"] for one in world.all("Pod")] == [[], [], []]


@pytest.mark.parametrize("when", ["PG-12 from the start", "PG-13 given later"])
def test_pg_14_a_group_of_which_a_pod_failed_for_good_is_failed_once_nobody_runs(when: str) -> None:
    """PC-056, with the honest result."""
    notes = {f"{K}retriable-in-group": "false"}
    given = notes if when.startswith("PG-12") else None
    world = a_world_at_home(*(a_member(name, at=at, notes=given) for at, name in enumerate("abc")))
    lift(world, *"abc")
    over(world, "a", "Succeeded")
    over(world, "b", "Failed")
    assert finished(world) == ("", "")
    over(world, "c", "Failed")
    if given is None:
        assert finished(world) == ("", "")
        world.api.edit(pod_ref("c"), lambda document: document["metadata"]["annotations"].update(notes))
        world.advance(5.0)
    assert (finished(world), contained(world)) == (("Failed", "Pods succeeded: 1/3, failed: 2"), [])
    assert [one["metadata"]["finalizers"] for one in world.all("Pod")] == [[], [], []]


def test_pg_21_a_serving_group_does_not_finish() -> None:
    notes = {f"{K}pod-group-serving": "true"}
    world = a_world_at_home(*(a_member(name, at=at, notes=notes) for at, name in enumerate("abc")))
    lift(world, *"abc")
    for name in "abc":
        over(world, name, "Succeeded")
    assert finished(world) == ("", "")


def test_pg_6_who_is_too_many_for_a_role_that_was_admitted_is_deleted() -> None:
    """PC-061."""
    world = a_world_at_home(a_member("a", at=1, total=2), a_member("b", at=2, cpu="2", total=2))
    lift(world, "a", "b")
    join(world, a_member("c", at=3, total=2), a_member("d", at=4, cpu="5", total=2))
    assert sorted(one["metadata"]["name"] for one in world.all("Pod")) == ["a", "b"]
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["c", "d"]


def test_pg_31_a_manager_killed_at_each_step_from_quota_to_the_end_comes_to_the_same_end() -> None:
    def life(stop: int | None) -> tuple[World, int]:
        world = a_world_with_groups()
        world.connect("local")
        world.advance(1.0)
        begun = world.steps
        world.stop_after = begun + stop if stop is not None else None
        join(world, *(a_member(name, at=at) for at, name in enumerate("abc")), seconds=5.0)
        if stop is not None:
            world.stop_after = None
            world.restart()
            world.advance(10.0)
        steps = world.steps - begun
        lift(world, *"abc")
        for name in "abc":
            over(world, name, "Succeeded")
        return world, steps

    _, steps = life(None)
    for stop in range(steps + 1):
        world, _ = life(stop)
        assert finished(world) == ("Succeeded", "Pods succeeded: 3/3"), stop
        assert {len(each.objects) for each in commits(world)} <= {3}, stop
        assert [one["metadata"]["finalizers"] for one in world.all("Pod")] == [[], [], []], stop
