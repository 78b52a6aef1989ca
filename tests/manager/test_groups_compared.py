"""Who joins a group that has quota asks for what that was given for, whatever its role hash says (BG-16, PG-20)."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.pod_group import asked
from gatelift_kinds.pod_group.shapes import difference
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Commit, ObjectReport, Stopped
from support.manager.agents import ScriptedAgent
from support.manager.api import Doc
from support.manager.builders import a_setting, a_workload
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
    warnings,
)
from support.manager.world import World, a_world

MISMATCH = "GroupShapeMismatch"
ONE_ROLE = {f"{K}role-hash": "same"}
FAST = {**ONE_ROLE, f"{K}pod-group-fast-admission": "true"}


def a_pod_of(name: str, at: int, *, total: int = 3, cpu: str = "1", fast: bool = True, **spec: Any) -> Doc:
    """Return a pod whose user wrote its role."""
    document = a_member(name, total=total, at=at, cpu=cpu, notes=FAST if fast else ONE_ROLE)
    document["spec"].update(spec)
    return document


def at_a_worker(*members: Doc) -> tuple[World, ScriptedAgent]:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
    agent = world.connect("a", version=VERSION_OF_CHANGE)
    join(world, *members, seconds=5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    return world, agent


def at_home(*members: Doc) -> World:
    world = a_world_with_groups()
    world.connect("local", version=VERSION_OF_CHANGE)
    join(world, *members, seconds=5.0)
    return world


def told_of(world: World) -> set[str]:
    """Return the names of all pods that a cluster was told of."""
    committed = {one.name for _, commit in world.messages(Commit) for one in commit.objects}
    return committed | {one.name for _, change in world.messages(Change) for one in change.join}


OTHERS: dict[str, tuple[Doc, str]] = {
    "requests": ({"cpu": "2"}, "spec.requests.cpu: 2, declared 1"),
    "a selector": ({"nodeSelector": {"zone": "x"}}, "spec.nodeSelector"),
    "a toleration": ({"tolerations": [{"key": "gpu", "operator": "Exists"}]}, "spec.tolerations"),
    "a runtime class": ({"runtimeClassName": "sandboxed"}, "spec.runtimeClassName: sandboxed, declared none"),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("home", [True, False], ids=["at home", "at a worker"])
def test_bg_16_a_later_pod_of_another_shape_is_never_let_go_and_told_and_one_like_the_first_takes_the_place(
    case: str, *, home: bool
) -> None:
    other, text = OTHERS[case]
    first, later, like = a_pod_of("a", 1), a_pod_of("b", 2, **other), a_pod_of("c", 3)
    world = at_home(first) if home else at_a_worker(first)[0]
    if home:
        lift(world, "a")
    join(world, later, seconds=5.0)
    ((name, said),) = warnings(world, MISMATCH)
    assert (name, said.startswith(text)) == ("b", True), said
    assert "the group has quota for pods of another shape: make it like those" in said
    join(world, like, seconds=10.0)
    assert told_of(world) == {"a", "c"}
    assert names(world) == ["a", "b", "c"], "it is not deleted"
    assert owners_of(world.find("Workload", GROUP)) == ["a", "c"]
    world.advance(600.0)
    assert (len(warnings(world, MISMATCH)), told_of(world), contained(world)) == (1, {"a", "c"}, [])


TOLERATED: dict[str, list[Doc]] = {
    "a taint": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "a value": [{"key": "pool", "value": "a"}, {"key": "pool", "operator": "Equal", "value": "b"}],
    "what is empty, for a while": [{"key": "x", "operator": "Exists", "value": "", "tolerationSeconds": 30}],
}


@pytest.mark.parametrize("case", TOLERATED)
@pytest.mark.parametrize("home", [True, False], ids=["at home", "at a worker"])
def test_hd_650_pods_that_tolerate_something_are_let_go_and_a_replacement_like_them_is(
    case: str, *, home: bool
) -> None:
    """HD-650. What there is quota for is compared with the pods that it was given for: nothing differs."""
    asks: Doc = {"tolerations": TOLERATED[case], "nodeSelector": {"pool": "a"}}
    pods = [a_pod_of(name, at, total=2, fast=False, **asks) for at, name in enumerate("ab")]
    world = at_home(*pods) if home else at_a_worker(*pods)[0]
    assert (told_of(world), warnings(world, MISMATCH)) == ({"a", "b"}, [])
    if home:
        lift(world, "a", "b")
        over(world, "a", phase="Failed")
        join(world, a_pod_of("c", 3, total=2, fast=False, **asks), seconds=5.0)
        assert (told_of(world), warnings(world, MISMATCH)) == ({"a", "b", "c"}, [])


def test_bg_16_so_is_one_of_another_role() -> None:
    world = at_home(a_member("a", at=1, notes={f"{K}pod-group-fast-admission": "true"}))
    join(world, a_member("b", at=2, cpu="2", notes={f"{K}pod-group-fast-admission": "true"}), seconds=10.0)
    ((name, said),) = warnings(world, MISMATCH)
    assert (name, "its role is none of those that the group was admitted with" in said) == ("b", True)
    assert (told_of(world), names(world)) == ({"a"}, ["a", "b"])


def test_hd_378_bg_16_so_is_a_replacement_at_a_worker_that_calls_itself_of_the_role() -> None:
    """The worker's agent would let it go as what it is, and the group is charged for less."""
    world, agent = at_a_worker(*(a_pod_of(name, at, total=2, fast=False) for at, name in enumerate("ab")))
    gone = next(one["metadata"]["uid"] for one in world.all("Pod") if one["metadata"]["name"] == "b")
    world.api.delete(pod_ref("b"))
    world.advance(3.0)
    agent.say(
        ObjectReport(key=agent.commits[-1], kind="PodGroup", name="b", uid="w", status=b"{}", owner_uid=gone, gone=True)
    )
    world.advance(3.0)
    join(world, a_pod_of("c", 5, total=2, cpu="8", fast=False), seconds=10.0)
    assert told_of(world) == {"a", "b"}
    assert [name for name, _ in warnings(world, MISMATCH)] == ["c"]
    join(world, a_pod_of("d", 6, total=2, fast=False), seconds=10.0)
    assert told_of(world) == {"a", "b", "d"}
    assert contained(world) == []


def test_bg_16_who_leads_next_comes_to_the_same() -> None:
    world, _ = at_a_worker(a_pod_of("a", 1))
    join(world, a_pod_of("b", 2, cpu="2"), seconds=5.0)
    world.restart()
    world.connect("a", version=VERSION_OF_CHANGE)
    join(world, a_pod_of("c", 3), a_pod_of("d", 4, cpu="3"), seconds=30.0)
    assert told_of(world) >= {"a", "c"}
    assert not told_of(world) & {"b", "d"}
    assert contained(world) == []


def test_bg_16_one_that_comes_while_the_group_waits_keeps_it_from_its_turn_and_is_told() -> None:
    world = at_home(a_workload("big").asking(cpu="4").document())
    join(world, a_pod_of("a", 1, total=2), a_pod_of("b", 2, total=2, cpu="3"), seconds=5.0)
    big = ObjectRef(WORKLOAD, ObjectKey("team", "big"))
    world.api.edit(big, lambda document: document["metadata"].pop("finalizers", None))
    world.api.delete(big)
    world.advance(30.0)
    assert (told_of(world), [one["metadata"]["name"] for one in world.all("Workload")]) == (set(), [GROUP])
    assert "ask for different things" in warnings(world, "ErrWorkloadCompose")[-1][1]
    world.api.delete(pod_ref("b"))
    world.advance(10.0)
    assert (told_of(world), contained(world)) == ({"a"}, [])


def test_a_group_that_waits_again_is_made_of_those_who_are_there() -> None:
    """Who was of another shape than was admitted counts again once nothing is admitted any more."""
    world = at_home(a_pod_of("a", 1, total=1))
    lift(world, "a")
    agent = world.agents["local"]
    agent.silent = True
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=False))
    world.advance(2.0)
    leave(world, "a")
    join(world, a_pod_of("b", 2, total=1, cpu="2"), seconds=5.0)
    assert [name for name, _ in warnings(world, MISMATCH)] == ["b"]
    over(world, "a", "Failed", seconds=0.0)
    agent.silent = False
    world.stopped(agent.commits[-1], "local")
    agent.say(Stopped(key=agent.commits[-1]))
    world.advance(5.0)
    world.api.edit(THEIRS, lambda document: document["spec"].update(active=True))
    world.advance(10.0)
    (pod_set,) = world.find("Workload", GROUP)["spec"]["podSets"]
    assert pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert (told_of(world), contained(world)) == ({"a", "b"}, [])


@pytest.mark.parametrize("home", [True, False], ids=["at home", "at a worker"])
def test_hd_485_who_was_of_another_shape_makes_a_group_once_the_workload_of_that_one_has_gone(*, home: bool) -> None:
    """It was compared with what there had been quota for, for as long as its leader led."""
    first = a_pod_of("a", 1, total=1, fast=False)
    world = at_home(first) if home else at_a_worker(first)[0]
    join(world, a_pod_of("b", 2, total=1, cpu="2", fast=False), seconds=5.0)
    assert [name for name, _ in warnings(world, MISMATCH)] == ["b"]
    for ref in (pod_ref("a"), THEIRS):
        world.api.edit(ref, lambda document: document["metadata"].pop("finalizers", None))
        world.api.delete(ref)
    world.advance(30.0)
    (pod_set,) = world.find("Workload", GROUP)["spec"]["podSets"]
    assert pod_set["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert (owners_of(world.find("Workload", GROUP)), contained(world)) == (["b"], [])


def test_pods_alike_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """PF-2: a thousand equal pods cost one comparison."""
    counted: list[str] = []

    def counting(*args: Any, **more: Any) -> str:
        counted.append("")
        return difference(*args, **more)

    monkeypatch.setattr(asked, "difference", counting)
    world = at_home(*(a_pod_of(f"p{at}", at, total=4, fast=False) for at in range(4)))
    assert told_of(world) == {f"p{at}" for at in range(4)}
    assert len(counted) == 1
