"""A group ends with its Workload, which a person deletes, or by itself; then nothing is made of it anew."""

from __future__ import annotations

import pytest

from gatelift_wire.values.messages import Applied, Stop
from support.manager.group_world import (
    GROUP,
    THEIRS,
    K,
    a_member,
    a_world_at_home,
    a_world_with_groups,
    contained,
    join,
    leave,
    lift,
    names,
    over,
    pod_ref,
    says,
)
from support.manager.world import World

THREE = [a_member(name, at=at) for at, name in enumerate("abc")]


def there(world: World) -> bool:
    return any(one["metadata"]["name"] == GROUP for one in world.all("Workload"))


def test_pg_15_the_workload_of_a_group_that_waits_is_deleted_and_its_pods_go_with_it() -> None:
    world = a_world_with_groups()
    join(world, *THREE)
    world.api.delete(THEIRS)
    world.advance(5.0)
    assert (names(world), there(world), contained(world)) == ([], False, [])
    world.advance(60.0)
    assert world.writes("Workload").count("create") == 1


def test_pg_15_nothing_goes_before_what_runs_has_stopped_and_the_workload_waits_for_nobody_elses_finalizer() -> None:
    world = a_world_at_home(*THREE)
    lift(world, "a", "b")
    over(world, "b", "Succeeded")
    agent = world.agents["local"]
    agent.silent = True
    world.api.delete(THEIRS)
    world.advance(5.0)
    assert [message.reason for _, message in world.messages(Stop)] == ["WorkloadDeleted"]
    assert names(world) == ["a", "b", "c"]
    leave(world, "a", "WorkloadDeleted")
    over(world, "a", "Failed")
    assert (there(world), names(world)) == (True, ["b", "c"]), "what has ended goes at once"
    for name in "bc":
        world.api.edit(pod_ref(name), lambda document: document["metadata"]["finalizers"].append("example.com/kept"))
    agent.silent = False
    world.restart()
    world.connect("local")
    world.advance(10.0)
    assert (there(world), names(world)) == (False, ["b", "c"]), "somebody else keeps them (HD-642)"
    assert all(one["metadata"]["deletionTimestamp"] for one in world.all("Pod"))
    assert all(one["metadata"]["finalizers"] == ["example.com/kept"] for one in world.all("Pod"))
    for name in "bc":
        world.api.edit(pod_ref(name), lambda document: document["metadata"].update(finalizers=[]))
    world.advance(5.0)
    assert (there(world), names(world), contained(world)) == (False, [], [])
    assert world.writes("Workload").count("create") == 1


def test_pg_15_what_was_evicted_and_waits_to_be_replaced_goes_with_the_workload() -> None:
    world = a_world_at_home(*THREE)
    lift(world, *"abc")
    for name in "abc":
        leave(world, name)
    for name in "abc":
        over(world, name, "Failed", seconds=0.0)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(5.0)
    assert says(world, "QuotaReserved")[0] == "False"
    assert names(world) == ["a", "b", "c"]
    world.api.delete(THEIRS)
    world.advance(5.0)
    assert (there(world), names(world)) == (False, [])


def test_pg_15_a_pod_that_came_since_goes_on_where_its_workload_did_not_name_it_yet() -> None:
    """The garbage collector deletes a Workload none of whose owners is left: by that nobody wants an end."""
    world = a_world_with_groups()
    join(world, *THREE)
    world.api.edit(THEIRS, lambda document: document["metadata"]["finalizers"].append("example.com/kept"))
    world.api.delete(THEIRS)
    for name in "abc":
        world.api.delete(pod_ref(name))
    join(world, *(a_member(name, at=10 + at) for at, name in enumerate("def")))
    world.api.edit(THEIRS, lambda document: document["metadata"].update(finalizers=[]))
    world.advance(5.0)
    assert (names(world), there(world)) == (["d", "e", "f"], True)
    assert world.find("Workload")["metadata"].get("deletionTimestamp") is None


@pytest.mark.parametrize("result", ["Succeeded", "Failed"])
def test_pg_15_of_a_finished_group_whose_workload_goes_the_pods_stay_and_nothing_is_made_anew(result: str) -> None:
    """PC-053: whichever of both is seen first, the end or the deletion. PC-053."""
    notes = {f"{K}retriable-in-group": "false"} if result == "Failed" else {}
    world = a_world_at_home(*(a_member(name, at=at, notes=notes) for at, name in enumerate("abc")))
    lift(world, *"abc")
    for name in "abc":
        over(world, name, result, seconds=0.0)
    world.advance(5.0)
    assert says(world, "Finished")[1] == result
    for name in "abc":  # as if their finalizers had not gone yet
        world.api.edit(pod_ref(name), lambda document: document["metadata"].update(finalizers=[f"{K}managed"]))
    world.api.delete(THEIRS)
    world.advance(10.0)
    assert (names(world), there(world)) == (["a", "b", "c"], False)
    assert [one["metadata"]["finalizers"] for one in world.all("Pod")] == [[], [], []]
    assert world.writes("Workload").count("create") == 1


def test_pg_15_a_group_that_has_come_to_its_end_stays_though_its_workload_goes_before_that_says_so() -> None:
    world = a_world_at_home(*THREE)
    lift(world, *"abc")
    over(world, "a", "Succeeded", seconds=0.0)
    over(world, "b", "Succeeded", seconds=0.0)
    world.api.edit(pod_ref("c"), lambda document: document["status"].update(phase="Succeeded"))
    world.api.delete(THEIRS)
    world.advance(10.0)
    assert (names(world), there(world)) == (["a", "b", "c"], False)


def test_a_member_that_failed_is_let_go_where_its_group_has_no_workload() -> None:
    """PC-055: there is no place to keep for who replaces it. PC-055."""
    world = a_world_with_groups()
    join(world, a_member("a", at=1), a_member("b", at=2))
    over(world, "a", "Failed")
    pods = {one["metadata"]["name"]: one["metadata"]["finalizers"] for one in world.all("Pod")}
    assert pods == {"a": [], "b": [f"{K}managed"]}


def test_pc_054_a_group_whose_workload_is_gone_at_once_gets_another_one_for_who_waits_and_who_succeeded() -> None:
    world = a_world_at_home(*THREE)
    lift(world, "a")
    over(world, "a", "Succeeded")
    world.api.edit(THEIRS, lambda document: document["metadata"].update(finalizers=[]))
    world.api.delete(THEIRS)
    world.advance(5.0)
    assert (names(world), there(world)) == (["a", "b", "c"], True)


def test_a_report_that_crosses_the_end_of_a_group_ends_none_of_its_pods() -> None:
    world = a_world_at_home(*THREE)
    lift(world, *"abc")
    for name in "abc":
        over(world, name, "Succeeded", seconds=0.0)
    world.advance(5.0)
    assert says(world, "Finished")[0] == "True"
    world.restart()
    world.connect("local")
    agent = world.agents["local"]
    agent.say(Applied(key=agent.commits[-1]))
    world.advance(5.0)
    assert {message.reason for _, message in world.messages(Stop)} == {"OverAtHome"}


def test_pg_21_a_serving_group_that_is_over_and_loses_its_workload_gets_no_other() -> None:
    notes = {f"{K}pod-group-serving": "true"}
    world = a_world_at_home(*(a_member(name, at=at, notes=notes) for at, name in enumerate("abc")))
    lift(world, *"abc")
    for name in "abc":
        over(world, name, "Succeeded")
    assert says(world, "Finished")[0] == ""
    world.api.edit(THEIRS, lambda document: document["metadata"].update(finalizers=[]))
    world.api.delete(THEIRS)
    world.advance(5.0)
    assert (there(world), [one["metadata"]["finalizers"] for one in world.all("Pod")]) == (False, [[], [], []])
