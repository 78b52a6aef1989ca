"""A Workload that its user makes for a group becomes the group's, or stays as it is and is told of (PG-22, BG-18)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gatelift_kube.deciding.writes import Patch, WriteError
from support.manager.api import Doc
from support.manager.builders import a_workload
from support.manager.group_world import (
    GROUP,
    THEIRS,
    K,
    a_member,
    a_world_at_home,
    a_world_with_groups,
    contained,
    join,
    lift,
    over,
    owners_of,
    pod_ref,
    pod_sets_of,
    warnings,
)
from support.manager.world import World

NAMES_IT = {f"{K}prebuilt-workload-name": GROUP}


def members(*names: str, total: int = 2, cpu: str = "1") -> list[Doc]:
    """Return pods that name the Workload of their group as prebuilt."""
    return [a_member(name, total=total, cpu=cpu, at=at, labels=NAMES_IT) for at, name in enumerate(names)]


def as_composed(*pods: Doc) -> Doc:
    """Return what Gatelift would make of these pods, as a user may have made it: without owners and marks."""
    world = a_world_with_groups()
    plain = copy.deepcopy(list(pods))
    for each in plain:
        for key in NAMES_IT:
            each["metadata"]["labels"].pop(key)
    join(world, *plain)
    made = world.find("Workload", GROUP)
    document = a_workload(GROUP).document()
    document["spec"] = {**made["spec"]}
    return document


def prebuilt(**spec: Any) -> Doc:
    """Return a Workload for the pods a and b."""
    document = as_composed(*members("a", "b"))
    document["spec"].update(spec)
    return document


def is_adopted(world: World) -> bool:
    return "ownerReferences" in world.find("Workload", GROUP)["metadata"]


@pytest.mark.parametrize("first", [True, False], ids=["before its pods, inactive", "after its pods"])
def test_pg_22_a_prebuilt_workload_becomes_the_groups_by_one_write_and_is_let_go_as_any(first: bool) -> None:
    """PC-098: all pods are its owners, none controls it. PI-026: there is no other Workload."""
    world = a_world_at_home()
    if first:
        world.api.apply(prebuilt(active=False))
        join(world, *members("a", "b"))
    else:
        join(world, *members("a", "b"))
        assert world.all("Workload") == []
        join(world, prebuilt())
    uid = world.find("Workload", GROUP)["metadata"]["uid"]
    assert owners_of(world.find("Workload", GROUP)) == ["a", "b"]
    assert world.find("Workload", GROUP)["metadata"]["annotations"][f"{K}is-group-workload"] == "true"
    assert f"{K}resource-in-use" in world.find("Workload", GROUP)["metadata"]["finalizers"]
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=True))
    world.advance(5.0)
    assert world.condition(world.find("Workload", GROUP), "Admitted")["status"] == "True"
    lift(world, "a", "b")
    over(world, "a", "Succeeded")
    over(world, "b", "Succeeded")
    world.advance(10.0)
    assert world.condition(world.find("Workload", GROUP), "Finished")["reason"] == "Succeeded"
    assert [each["metadata"]["uid"] for each in world.all("Workload")] == [uid]
    assert contained(world) == []


def test_pg_22_a_pod_that_replaces_another_one_becomes_an_owner_as_well() -> None:
    """PC-099."""
    world = a_world_at_home(*members("a", "b"))
    join(world, prebuilt())
    lift(world, "a", "b")
    over(world, "a", "Failed")
    join(world, *members("c"), seconds=5.0)
    assert set(owners_of(world.find("Workload", GROUP))) >= {"b", "c"}
    assert contained(world) == []


def test_pg_22_a_user_who_deletes_it_ends_the_group_as_with_any_other_of_its_workloads() -> None:
    world = a_world_at_home(*members("a", "b"))
    join(world, prebuilt())
    world.api.delete(THEIRS)
    world.advance(10.0)
    assert (world.all("Pod"), contained(world)) == ([], [])


def a_problem(kind: str) -> Doc | None:
    document = prebuilt()
    meta, pod_sets = document["metadata"], document["spec"]["podSets"]
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-x"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "uid-j", "controller": True}
    match kind:
        case "missing":
            return None
        case "a pod owns it":
            meta["ownerReferences"] = [pod]
        case "a controller owns it":
            meta["ownerReferences"] = [job]
        case "another name":
            pod_sets[0]["name"] = "main"
        case "another count":
            pod_sets[0]["count"] = 3
        case "more pod sets":
            pod_sets.append({**pod_sets[0], "name": "others"})
        case "asks for less":
            pod_sets[0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
        case "partial admission":
            pod_sets[0]["minCount"] = 1
        case "finished":
            said = {"type": "Finished", "status": "True", "reason": "x", "message": "", "lastTransitionTime": META_TIME}
            document["status"] = {"conditions": [said]}
    return document


META_TIME = "2026-11-21T00:00:00Z"
PROBLEMS = {
    "missing": "is not there: make it, or leave the name out",
    "a pod owns it": "is owned by something else",
    "a controller owns it": "is owned by something else",
    "another name": "2 pods of main, the group has 2 of",
    "another count": "3 pods of",
    "more pod sets": "2 pod sets, the group has 1 roles",
    "asks for less": "ask for something else than its template",
    "partial admission": "a group is admitted whole",
    "finished": "has finished, or is being deleted",
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_bg_18_a_prebuilt_workload_that_the_group_cannot_use_is_told_and_left_as_it_is(kind: str) -> None:
    """PC-100: Kueue marks one with other pod sets as finished, OutOfSync."""
    world = a_world_with_groups()
    there = a_problem(kind)
    join(world, *members("a", "b"))
    if there is not None:
        world.api.apply(there)
    world.advance(60.0)
    told = warnings(world, "ErrWorkloadCompose")
    assert (told[-1][0], PROBLEMS[kind] in told[-1][1]) == ("a", True), told
    if there is not None:
        now = world.find("Workload", GROUP)
        assert now["spec"] == there["spec"]
        assert now["metadata"].get("ownerReferences") == there["metadata"].get("ownerReferences")
        assert f"{K}is-group-workload" not in now["metadata"].get("annotations", {})
    assert not [verb for verb, _, _ in world.api.writes if verb == "delete"]
    assert [each["spec"]["schedulingGates"] for each in world.all("Pod")] == [[{"name": f"{K}admission"}]] * 2
    assert contained(world) == []


def test_pg_22_one_that_holds_quota_is_not_adopted_and_it_is_told_how_it_could_be() -> None:
    world = a_world_with_groups()
    join(world, prebuilt())
    assert world.condition(world.find("Workload", GROUP), "QuotaReserved")["status"] == "True"
    join(world, *members("a", "b"), seconds=10.0)
    assert not is_adopted(world)
    told = warnings(world, "ErrWorkloadCompose")
    assert len(told) == 1
    text = told[0][1]
    assert "holds quota already, and is adopted before that: make it with spec.active: false" in text
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(10.0)
    assert is_adopted(world)
    assert contained(world) == []


def test_pg_22_one_that_waits_for_its_pods_has_no_turn_until_it_is_theirs_or_they_are_gone() -> None:
    world = a_world_with_groups()
    join(world, *members("a"))
    join(world, prebuilt(), seconds=10.0)
    assert world.condition(world.find("Workload", GROUP), "QuotaReserved").get("status") != "True"
    world.api.delete(pod_ref("a"))
    world.advance(10.0)
    assert world.all("Pod") == []
    assert world.condition(world.find("Workload", GROUP), "QuotaReserved")["status"] == "True"
    assert not is_adopted(world)


def test_pg_22_what_gets_quota_or_an_owner_in_between_is_not_adopted() -> None:
    """The write is for the version that was seen."""
    world = a_world_with_groups()
    join(world, *members("a", "b"))
    bodies: list[bytes] = []

    def refused(command: object) -> WriteError | None:
        if isinstance(command, Patch) and command.ref == THEIRS and b"ownerReferences" in command.body:
            bodies.append(command.body)
            return WriteError.PRECONDITION
        return None

    world.fail = refused
    join(world, prebuilt(), seconds=5.0)
    assert not is_adopted(world)
    assert bodies
    assert all(b'"path":"/metadata/resourceVersion"' in body and b'"path":"/metadata/uid"' in body for body in bodies)
    world.fail = lambda _command: None
    world.advance(60.0)
    assert is_adopted(world)


def test_pg_22_an_adopted_one_stays_as_its_user_made_it_when_its_pods_ask_for_something_else() -> None:
    world = a_world_with_groups()
    join(world, *members("a", "b"))
    join(world, prebuilt(active=False))
    before = world.find("Workload", GROUP)["spec"]["podSets"]
    world.api.delete(pod_ref("b"))
    world.advance(5.0)
    join(world, *members("c", cpu="2"), seconds=10.0)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=True))
    world.advance(10.0)
    now = world.find("Workload", GROUP)
    assert now["spec"]["podSets"] == before
    assert world.condition(now, "QuotaReserved").get("status") != "True"
    assert "which the pods name as prebuilt, differs" in warnings(world, "ErrWorkloadCompose")[-1][1]


def test_pi_021_with_fast_admission_it_is_adopted_with_the_first_pod() -> None:
    fast = {f"{K}pod-group-fast-admission": "true"}
    pods = [a_member(name, total=2, at=at, labels=NAMES_IT, notes=fast) for at, name in enumerate("ab")]
    world = a_world_at_home(pods[0])
    join(world, prebuilt(), seconds=5.0)
    assert owners_of(world.find("Workload", GROUP)) == ["a"]
    lift(world, "a")
    join(world, pods[1], seconds=5.0)
    assert owners_of(world.find("Workload", GROUP)) == ["a", "b"]
    assert (pod_sets_of(world.find("Workload", GROUP)), contained(world)) == ([2], [])


def test_pg_31_a_manager_killed_at_each_step_of_adopting_comes_to_the_same_workload() -> None:
    def life(stop: int | None) -> tuple[World, int]:
        world = a_world_with_groups()
        begun = world.steps
        world.stop_after = begun + stop if stop is not None else None
        join(world, *members("a", "b"))
        join(world, prebuilt())
        if stop is not None:
            world.stop_after = None
            world.restart()
            world.advance(10.0)
        return world, world.steps - begun

    _, steps = life(None)
    for stop in range(steps + 1):
        world, _ = life(stop)
        assert owners_of(world.find("Workload", GROUP)) == ["a", "b"], stop
        assert len(world.all("Workload")) == 1, stop
        assert contained(world) == [], stop


def test_pg_22_one_whose_quota_is_decided_and_not_written_yet_is_not_adopted() -> None:
    world = a_world_with_groups()

    def no_status(command: object) -> WriteError | None:
        is_status = isinstance(command, Patch) and command.ref == THEIRS and command.subresource == "status"
        return WriteError.NOT_DONE if is_status else None

    world.fail = no_status
    join(world, prebuilt())
    join(world, *members("a", "b"), seconds=10.0)
    assert not is_adopted(world)
    world.fail = lambda _command: None
    world.advance(60.0)
    assert world.condition(world.find("Workload", GROUP), "QuotaReserved")["status"] == "True"
    assert not is_adopted(world)
    assert "holds quota already" in warnings(world, "ErrWorkloadCompose")[-1][1]
    assert contained(world) == []
