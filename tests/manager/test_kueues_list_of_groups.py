"""Kueue's own scenarios of its controller for groups of pods, PC-n and PI-n by the reference's list, at home.

Those that are shown elsewhere bear their ids there; those that end otherwise are in `docs/keps.md` with the reason.
"""

from __future__ import annotations

import pytest

from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Commit, Stopped
from support.manager.api import Doc
from support.manager.builders import a_pod, a_workload, kueue_object
from support.manager.group_world import (
    GROUP,
    THEIRS,
    K,
    a_member,
    a_world_with_groups,
    contained,
    join,
    leave,
    lift,
    names,
    over,
    owners_of,
    pod_ref,
    pod_sets_of,
    says,
    warnings,
)
from support.manager.world import World

WAITING = "WaitingForReplacementPods"
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}


def at_home(*members: Doc) -> World:
    world = a_world_with_groups()
    world.connect("local", version=VERSION_OF_CHANGE)
    join(world, *members, seconds=5.0)
    return world


def members(*found: str, total: int) -> list[Doc]:
    return [a_member(name, total=total, at=at) for at, name in enumerate(found)]


def told_of(world: World) -> set[str]:
    """Return the pods that the agent of `local` was told to let go."""
    committed = {one.name for _, commit in world.messages(Commit) for one in commit.objects}
    return committed | {one.name for _, change in world.messages(Change) for one in change.join}


def held(world: World) -> list[str]:
    """Return the pods that bear our finalizer."""
    return sorted(one["metadata"]["name"] for one in world.all("Pod") if one["metadata"].get("finalizers"))


def theirs(world: World) -> Doc:
    return world.find("Workload", GROUP)


def uid(world: World) -> str:
    found: str = theirs(world)["metadata"]["uid"]
    return found


def reclaimed(world: World) -> list[int]:
    return [each["count"] for each in theirs(world).get("status", {}).get("reclaimablePods", [])]


def test_pc_033_of_a_group_and_a_workload_that_are_alike_nothing_changes() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    world.advance(30.0)
    before = len(world.api.writes)
    world.advance(3600.0)
    assert len([one for one in world.api.writes[before:] if one[1] in {THEIRS, pod_ref("a"), pod_ref("b")}]) == 0


@pytest.mark.parametrize("mark", ["label", "annotation"])
def test_pc_029_pi_024_pi_025_a_group_is_named_by_label_or_annotation(mark: str) -> None:
    found = members("a", "b", total=2)
    for each in found if mark == "annotation" else ():
        name = each["metadata"]["labels"].pop(f"{K}pod-group-name")
        each["metadata"]["annotations"][f"{K}pod-group-name"] = name
    world = at_home(*found)
    assert (owners_of(theirs(world)), told_of(world)) == (["a", "b"], {"a", "b"})


def test_pc_031_a_groups_workload_has_its_execution_limit() -> None:
    limited = [
        a_member(name, total=2, at=at, labels={f"{K}max-exec-time-seconds": "10"}) for at, name in enumerate("ab")
    ]
    assert theirs(at_home(*limited))["spec"]["maximumExecutionTimeSeconds"] == 10


def test_pc_035_a_pod_that_is_deleted_beside_a_strangers_workload_vanishes_and_that_is_not_touched() -> None:
    world = at_home()
    world.api.apply(a_workload(GROUP).document() | {"spec": a_workload(GROUP).document()["spec"]})
    join(world, *members("a", total=1))
    before = theirs(world)["metadata"].get("ownerReferences")
    world.api.delete(pod_ref("a"))
    world.advance(10.0)
    assert (names(world), theirs(world)["metadata"].get("ownerReferences")) == ([], before)
    assert "deletionTimestamp" not in theirs(world)["metadata"]


def test_pc_068_pi_023_a_job_whose_workload_has_a_groups_name_keeps_it_whatever_that_groups_pods_do() -> None:
    world = at_home()
    victim = a_workload(GROUP).document()
    victim["metadata"] |= {"ownerReferences": [JOB], "finalizers": [f"{K}resource-in-use"]}
    world.api.apply(victim)
    join(world, *members("a", total=1))
    world.api.delete(pod_ref("a"))
    world.advance(60.0)
    assert (names(world), theirs(world)["metadata"]["ownerReferences"]) == ([], [JOB])
    assert theirs(world)["metadata"]["finalizers"] == [f"{K}resource-in-use"]
    assert warnings(world, "WorkloadNameConflict")[0][0] == "a"


def test_pc_040_pc_052_pc_092_a_role_that_has_no_pods_any_more_is_waited_for_and_the_workload_is_kept() -> None:
    world = at_home(a_member("a", at=1, total=2), a_member("b", at=2, cpu="2", total=2))
    lift(world, "a", "b")
    before = uid(world)
    over(world, "b", "Failed")
    assert (uid(world), says(world, WAITING)) == (before, ("True", "PodsFailed"))
    world.advance(600.0)
    assert (uid(world), says(world, WAITING)[0], says(world, "Admitted")[0]) == (before, "True", "True")


def test_pc_042_of_a_group_that_has_finished_whoever_is_left_is_let_go() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    over(world, "a", "Succeeded")
    over(world, "b", "Succeeded")
    world.api.edit(pod_ref("b"), lambda document: document["metadata"].update(finalizers=[f"{K}managed"]))
    world.restart()
    world.advance(10.0)
    assert (says(world, "Finished")[0], held(world)) == ("True", [])


def test_pc_045_pi_014_a_group_of_one_that_fails_twice_is_replaced_twice_under_one_workload() -> None:
    world = at_home(*members("a", total=1))
    lift(world, "a")
    before = uid(world)
    for failed, other in (("a", "b"), ("b", "c")):
        over(world, failed, "Failed")
        assert (says(world, WAITING), failed in held(world)) == (("True", "PodsFailed"), True)
        join(world, *members(other, total=1), seconds=5.0)
        assert (says(world, WAITING), failed in held(world)) == (("False", "PodsReady"), False)
        lift(world, other)
    assert told_of(world) == {"a", "b", "c"}
    over(world, "c", "Succeeded")
    assert (uid(world), says(world, "Finished"), held(world)) == (before, ("True", "Succeeded"), [])


def test_pc_046_pc_072_one_that_failed_is_let_go_for_its_replacement_and_one_that_succeeded_stays() -> None:
    world = at_home(*members("a", "b", "c", total=3))
    lift(world, *"abc")
    over(world, "b", "Failed")
    over(world, "c", "Succeeded")
    join(world, a_member("d", at=9), seconds=5.0)
    assert (held(world), told_of(world) >= {"d"}) == (["a", "c", "d"], True)
    assert set(owners_of(theirs(world))) >= {"a", "c", "d"}
    assert reclaimed(world) == [1]
    assert [one.reason for one in world.emitted].count("OwnerReferencesAdded") == 1


def test_pc_038_of_one_that_succeeded_while_another_runs_the_quota_is_free_and_the_group_goes_on() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    over(world, "a", "Succeeded")
    assert (says(world, "Finished")[0], reclaimed(world), held(world)) == ("", [1], ["a", "b"])


def test_pc_047_as_many_as_it_has_have_succeeded_beside_one_that_failed() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    over(world, "a", "Failed")
    join(world, a_member("c", total=2, at=9), seconds=5.0)
    lift(world, "c")
    over(world, "b", "Succeeded")
    over(world, "c", "Succeeded")
    said = world.condition(theirs(world), "Finished")
    assert (said["reason"], said["message"].startswith("Pods succeeded: 2/2"), held(world)) == ("Succeeded", True, [])


def test_pc_063_one_more_is_deleted_though_it_is_as_old_as_those_that_run() -> None:
    world = at_home(a_member("b", total=2, at=5), a_member("c", total=2, at=5))
    lift(world, "b", "c")
    join(world, a_member("a", total=2, at=5), seconds=5.0)
    assert (names(world), [name for name, _ in warnings(world, "ExcessPodDeleted")]) == (["b", "c"], ["a"])


def test_pc_065_a_group_that_never_was_whole_and_is_deleted_leaves_nothing_behind() -> None:
    world = at_home(*members("a", "b", total=3))
    for name in "ab":
        world.api.delete(pod_ref(name))
    world.advance(10.0)
    assert (world.all("Pod"), world.all("Workload"), contained(world)) == ([], [], [])


def test_pc_071_a_prebuilt_workload_goes_with_its_group() -> None:
    prebuilt = {f"{K}prebuilt-workload-name": GROUP}
    world = at_home(*members("a", "b", total=2))
    spec = theirs(world)["spec"]
    world = at_home(*(a_member(name, total=2, at=at, labels=prebuilt) for at, name in enumerate("ab")))
    join(world, a_workload(GROUP).document() | {"spec": {**spec, "active": False}})
    assert owners_of(theirs(world)) == ["a", "b"]
    for name in "ab":
        world.api.delete(pod_ref(name))
    world.advance(30.0)
    assert (world.all("Pod"), world.all("Workload"), contained(world)) == ([], [], [])


def test_pc_090_one_that_was_never_bound_and_is_deleted_goes_and_its_replacement_is_let_go() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a")
    world.api.delete(pod_ref("b"))
    world.advance(3.0)
    join(world, a_member("c", total=2, at=9), seconds=5.0)
    assert (names(world), told_of(world) >= {"a", "c"}) == (["a", "c"], True)
    assert set(owners_of(theirs(world))) >= {"a", "c"}


def test_pi_015_two_that_fail_and_a_last_one_that_nobody_is_to_replace_end_the_group() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    over(world, "a", "Failed")
    over(world, "b", "Failed")
    assert (says(world, "Finished")[0], held(world)) == ("", ["a", "b"])
    join(world, a_member("c", total=2, at=9, notes={f"{K}retriable-in-group": "false"}), seconds=5.0)
    assert (told_of(world) >= {"c"}, len(held(world))) == (True, 2)
    lift(world, "c")
    over(world, "c", "Failed")
    assert (says(world, "Finished"), held(world)) == (("True", "Failed"), [])


def test_pi_016_one_too_many_before_the_admission_and_again_after_it_is_deleted() -> None:
    world = at_home(*members("a", "b", "c", total=2))
    assert names(world) == ["a", "b"]
    lift(world, "a", "b")
    join(world, a_member("d", total=2, at=9), seconds=5.0)
    assert names(world) == ["a", "b"]
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["c", "d"]


def test_pi_011_two_roles_run_to_their_end() -> None:
    world = at_home(a_member("a", at=1, total=2), a_member("b", at=2, cpu="2", total=2))
    assert (sorted(pod_sets_of(theirs(world))), told_of(world)) == ([1, 1], {"a", "b"})
    lift(world, "a", "b")
    over(world, "a", "Succeeded")
    over(world, "b", "Succeeded")
    assert (says(world, "Finished"), held(world)) == (("True", "Succeeded"), [])


def test_pi_012_of_a_group_that_its_first_pod_admitted_both_are_let_go_and_it_finishes() -> None:
    fast = {f"{K}pod-group-fast-admission": "true"}
    first, second = (a_member(name, total=2, at=at, notes=fast) for at, name in enumerate("ab"))
    world = at_home(first)
    assert (pod_sets_of(theirs(world)), told_of(world)) == ([2], {"a"})
    lift(world, "a")
    join(world, second, seconds=5.0)
    assert told_of(world) == {"a", "b"}
    lift(world, "b")
    over(world, "a", "Succeeded")
    over(world, "b", "Succeeded")
    assert says(world, "Finished") == ("True", "Succeeded")


def test_pi_017_a_group_whose_seven_pods_have_succeeded_and_are_deleted_leaves_none() -> None:
    world = a_world_with_groups()
    world.connect("local", version=VERSION_OF_CHANGE)
    seven = [f"p{number}" for number in range(7)]
    join(world, *(a_member(name, total=7, cpu="100m", at=at) for at, name in enumerate(seven)), seconds=5.0)
    lift(world, *seven)
    for name in seven:
        over(world, name, "Succeeded", seconds=0.5)
    world.advance(5.0)
    for name in seven:
        world.api.delete(pod_ref(name))
    world.advance(10.0)
    assert (world.all("Pod"), contained(world)) == ([], [])


def test_pi_020_one_of_a_serving_group_that_succeeded_frees_nothing() -> None:
    serving = {f"{K}pod-group-serving": "true"}
    world = at_home(*(a_member(name, total=2, at=at, notes=serving) for at, name in enumerate("ab")))
    lift(world, "a", "b")
    over(world, "a", "Succeeded")
    assert (says(world, "Finished")[0], reclaimed(world)) == ("", [])


def test_pc_041_of_a_group_that_waits_and_is_evicted_no_pod_is_written_to() -> None:
    world = a_world_with_groups()
    join(world, *members("a", "b", total=2), seconds=5.0)
    before = len(world.api.writes)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(60.0)
    assert says(world, "Evicted") == ("True", "Deactivated")
    assert not [ref for _, ref, _ in world.api.writes[before:] if ref in {pod_ref("a"), pod_ref("b")}]
    assert names(world) == ["a", "b"]


def test_pc_050_pc_051_a_group_all_of_whose_pods_are_leaving_keeps_its_workload_and_their_finalizers() -> None:
    world = at_home(*members("a", "b", total=2))
    lift(world, "a", "b")
    before = uid(world)
    world.agents["local"].silent = True
    for name in "ab":
        world.api.delete(pod_ref(name))
    world.advance(60.0)
    assert (uid(world), held(world), says(world, "Admitted")[0]) == (before, ["a", "b"], "True")


def test_pi_018_a_group_whose_finalizers_somebody_takes_off_and_whose_pods_go_leaves_no_workload() -> None:
    world = at_home(*members("a", "b", total=2))
    for name in "ab":
        world.api.edit(pod_ref(name), lambda document: document["metadata"].update(finalizers=[]))
        world.api.delete(pod_ref(name))
    world.advance(120.0)
    assert (world.all("Pod"), world.all("Workload"), contained(world)) == ([], [], [])


def test_pc_019_the_workload_of_a_single_pod_that_waits_follows_it_to_another_queue() -> None:
    world = a_world_with_groups()
    world.api.apply(kueue_object("LocalQueue", "other", {"clusterQueue": "shared"}, namespace="team"))
    join(world, a_pod("p").asking(cpu="100").document())
    world.api.edit(pod_ref("p"), lambda document: document["metadata"]["labels"].update({f"{K}queue-name": "other"}))
    world.advance(5.0)
    assert world.find("Workload")["spec"]["queueName"] == "other"


def test_pi_034_a_fast_group_that_was_not_ready_in_time_is_not_admitted_again_before_it_is_replaced() -> None:
    fast = {f"{K}pod-group-fast-admission": "true"}
    readiness = ReadinessSettings(timeout=60.0, backoff_base=30.0)
    world = a_world_with_groups(readiness=readiness)
    agent = world.connect("local", version=VERSION_OF_CHANGE)
    join(world, a_member("a", total=2, at=1, notes=fast), seconds=5.0)
    lift(world, "a")
    agent.silent = True
    world.advance(61.0)
    leave(world, "a", "WorkloadEvictedDueToPodsReadyTimeout")
    over(world, "a", "Failed", seconds=0.0)
    agent.silent = False
    world.stopped(agent.commits[-1], "local")
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(120.0)
    assert (says(world, WAITING), says(world, "Requeued")[0]) == (("True", "PodsReadyTimeout"), "True")
    assert (says(world, "QuotaReserved")[0], told_of(world)) == ("False", {"a"})
    join(world, a_member("b", total=2, at=2, notes=fast), seconds=10.0)
    assert (told_of(world), says(world, WAITING)) == ({"a", "b"}, ("False", "PodsReady"))
