"""Pods of one group get one Workload, once they are all there and agree; who is too many goes (KEP-976)."""

from __future__ import annotations

import pytest

from gatelift.core.records.work import SeveralObjectsError
from gatelift_kube.deciding.writes import Create, WriteError
from gatelift_kube.values.resources import WORKLOAD
from support.calls import calls_of
from support.manager.builders import a_pod, a_workload, kueue_object
from support.manager.group_world import (
    GROUP,
    THEIRS,
    K,
    a_member,
    a_world_with_groups,
    contained,
    join,
    owners_of,
    pod_ref,
    pod_sets_of,
    warnings,
)
from support.manager.world import World


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [({"1": 1}, [1]), ({"1": 1, "2": 2}, [1, 2]), ({"1": 100}, [100])],
    ids=["PG-3 of one pod", "PG-3 of two roles", "PG-3 of a hundred"],
)
def test_pg_3_a_group_gets_one_workload_with_a_pod_set_for_each_role(sizes: dict[str, int], counts: list[int]) -> None:
    """PC-028."""
    world = a_world_with_groups()
    total = sum(sizes.values())
    members = [
        a_member(f"{cpu}-{number}", total=total, cpu=cpu, at=number % 60)
        for cpu, size in sizes.items()
        for number in range(size)
    ]
    join(world, *members)
    workload = world.find("Workload", GROUP)
    assert sorted(pod_sets_of(workload)) == counts
    assert sorted(owners_of(workload)) == sorted(each["metadata"]["name"] for each in members)
    assert workload["metadata"]["annotations"][f"{K}is-group-workload"] == "true"
    assert world.writes("Workload").count("create") == 1
    assert (warnings(world, "ErrWorkloadCompose"), contained(world)) == ([], [])


def test_pg_4_an_incomplete_group_says_at_its_oldest_pod_how_many_lack_and_has_no_workload_until_it_is_complete() -> (
    None
):
    world = a_world_with_groups()
    join(world, a_member("b", at=2), a_member("a", at=1))
    assert warnings(world, "ErrWorkloadCompose") == [("a", "1 of 3 pods of the group is not there yet")]
    assert world.all("Workload") == []
    world.advance(600.0)
    assert len(warnings(world, "ErrWorkloadCompose")) == 1
    join(world, a_member("c", at=3))
    assert pod_sets_of(world.find("Workload")) == [3]
    assert (len(warnings(world, "ErrWorkloadCompose")), contained(world)) == (1, [])


def test_pg_4_what_lacks_is_told_when_it_lasts_and_not_for_each_pod_that_comes() -> None:
    world = a_world_with_groups()
    for number in range(50):
        join(world, a_member(f"p{number}", total=51, at=number), seconds=0.01)
    assert warnings(world, "ErrWorkloadCompose") == []
    world.advance(2.0)
    assert [text for _, text in warnings(world, "ErrWorkloadCompose")] == ["1 of 51 pods of the group is not there yet"]


def test_pg_5_who_is_too_many_before_there_is_a_workload_is_deleted_the_youngest_first_and_it_is_told() -> None:
    """PC-059."""
    world = a_world_with_groups()
    for number in (3, 1, 2):
        world.api.apply(a_member(f"p{number}", total=2, at=number))
    world.restart()  # who leads now finds all of them at once
    world.advance(2.0)
    assert sorted(one["metadata"]["name"] for one in world.all("Pod")) == ["p1", "p2"]
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["p3"]
    assert owners_of(world.find("Workload")) == ["p1", "p2"]


def test_pg_5_who_is_too_many_for_a_workload_that_waits_is_deleted() -> None:
    """PC-060."""
    world = a_world_with_groups()
    join(world, *(a_member(f"p{number}", total=2, at=number) for number in (1, 2)))
    join(world, a_member("p3", total=2, at=3), a_member("p4", total=2, cpu="2", at=4))
    assert sorted(one["metadata"]["name"] for one in world.all("Pod")) == ["p1", "p2"]
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["p3", "p4"]
    assert owners_of(world.find("Workload")) == ["p1", "p2"]


DISAGREE = {
    "BG-11 size": ({"total": 4}, "the group's size"),
    "BG-12 queue": ({"labels": {f"{K}queue-name": "other"}}, "the queue"),
}


@pytest.mark.parametrize("case", DISAGREE)
def test_pg_11_members_that_disagree_have_no_workload_and_it_is_told_who_says_what(case: str) -> None:
    """PC-043."""
    other, subject = DISAGREE[case]
    world = a_world_with_groups()
    join(world, a_member("a", at=1), a_member("b", at=2), a_member("c", at=3, **other))  # type: ignore[arg-type]
    assert world.all("Workload") == []
    ((name, text),) = warnings(world, "ErrWorkloadCompose")
    assert name == "a"
    assert f"differ in {subject}" in text
    assert "(a, b)" in text
    assert "(c)" in text


@pytest.mark.parametrize("case", DISAGREE)
def test_pg_11_once_they_agree_the_workload_is_made(case: str) -> None:
    world = a_world_with_groups()
    join(world, a_member("a", at=1), a_member("b", at=2), a_member("c", at=3, **DISAGREE[case][0]))  # type: ignore[arg-type]
    world.api.delete(pod_ref("c"))
    world.advance(2.0)
    assert [one["metadata"]["name"] for one in world.all("Pod")] == ["a", "b"]
    join(world, a_member("d", at=4))
    assert owners_of(world.find("Workload")) == ["a", "b", "d"]


def test_pg_20_fast_admission_makes_the_workload_with_the_first_pod_and_later_ones_become_owners() -> None:
    """PC-030."""
    fast = {f"{K}pod-group-fast-admission": "true"}
    world = a_world_with_groups()
    join(world, a_member("a", at=1, notes=fast))
    workload = world.find("Workload")
    assert (pod_sets_of(workload), owners_of(workload)) == ([3], ["a"])
    join(world, a_member("b", at=2, notes=fast), a_member("c", at=3, notes=fast))
    assert owners_of(world.find("Workload")) == ["a", "b", "c"]
    added = [one.message for one in world.emitted if one.reason == "OwnerReferencesAdded"]
    assert added[-1] == "Added owner references: the Workload names 3 pods now"
    join(world, a_member("d", at=4, notes=fast))
    assert [name for name, _ in warnings(world, "ExcessPodDeleted")] == ["d"]
    assert owners_of(world.find("Workload")) == ["a", "b", "c"]
    assert contained(world) == []


def a_foreign_one(kind: str) -> dict[str, object]:
    """Return a Workload of the group's name that is not the group's."""
    document = a_workload(GROUP).document()
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}
    if kind == "names a pod without the mark":
        document["metadata"]["ownerReferences"] = [pod]
    elif kind == "has the mark and a controller":
        document["metadata"] |= {"annotations": {f"{K}is-group-workload": "true"}}
        document["metadata"]["ownerReferences"] = [pod | {"controller": True}]
    return document


FOREIGN = ("of nobody", "names a pod without the mark", "has the mark and a controller")


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("first", [True, False], ids=["there before", "not there before"])
def test_pg_23_a_workload_of_the_groups_name_that_is_not_its_own_is_told_of_and_never_touched(
    kind: str, first: bool
) -> None:
    """HD-350 (PI-023): with owner references to its pods a stranger's Workload stands in the group's place.

    PC-034, PC-118, PC-119, PI-022.
    """
    world = a_world_with_groups()
    members = [a_member(name, total=2, at=at) for at, name in enumerate("ab")]
    members[0]["metadata"]["uid"] = "uid-a"
    if first:
        world.api.apply(a_foreign_one(kind))
        join(world, *members)
    else:
        join(world, members[0])
        world.api.apply(a_foreign_one(kind))
        join(world, members[1])
    world.advance(60.0)
    told = warnings(world, "WorkloadNameConflict")
    assert [name for name, _ in told] == ["a"]
    assert f"Workload {GROUP}" in told[0][1]
    assert THEIRS in world.api.objects
    there = world.find("Workload", GROUP)
    assert there["metadata"].get("ownerReferences") == a_foreign_one(kind)["metadata"].get("ownerReferences")  # type: ignore[attr-defined]
    assert "deletionTimestamp" not in there["metadata"]
    if kind != "of nobody":  # that one is a Workload of its own, with quota of its own
        assert not [verb for verb, ref, _ in world.api.writes if ref == THEIRS and verb != "create"]
    world.api.delete(THEIRS)
    if THEIRS in world.api.objects:
        world.api.edit(THEIRS, lambda document: document["metadata"].pop("finalizers", None))
    world.advance(2.0)
    assert owners_of(world.find("Workload", GROUP)) == ["a", "b"]
    assert contained(world) == []


def test_a_group_is_not_a_single_pod_however_few_are_known_of_it() -> None:
    world = a_world_with_groups()
    join(world, a_member("a", at=1), a_pod("alone").document())
    knowledge = world.machine.core.knowledge
    work = knowledge.works.of_object(knowledge.owners[pod_ref("a")].name)
    assert work is not None
    with pytest.raises(SeveralObjectsError):
        work.only_object  # noqa: B018
    assert [one["metadata"]["name"][:9] for one in world.all("Workload")] == ["pod-alone"]


def test_pg_30_a_waiting_group_that_is_deleted_whole_leaves_nothing_behind() -> None:
    """PC-070."""
    world = a_world_with_groups()
    join(world, *(a_member(f"p{number}", total=100, at=number % 60) for number in range(100)))
    for number in range(100):
        world.api.delete(pod_ref(f"p{number}"))
    world.advance(5.0)
    assert (world.all("Pod"), world.all("Workload"), contained(world)) == ([], [], [])
    core = world.machine.core
    assert core.knowledge.works.gathered_at(THEIRS.key) is None


def test_a_workload_that_asks_for_less_than_its_pods_do_is_put_right_before_it_has_a_turn() -> None:
    world = a_world_with_groups()
    join(world, *(a_member(name, total=2, at=at) for at, name in enumerate("ab")))
    requests = {"requests": {"cpu": "1m"}}

    def less(document: dict) -> None:  # type: ignore[type-arg]
        for each in document["spec"]["podSets"]:
            each["template"]["spec"]["containers"][0]["resources"] = requests

    world.api.edit(THEIRS, less)
    world.advance(2.0)
    (pod_set,) = world.find("Workload")["spec"]["podSets"]
    assert pod_set["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.parametrize(
    ("labels", "notes", "said"),
    [
        ({f"{K}pod-group-role": "worker"}, {}, "no pod of the group declares its sets"),
        ({}, {f"{K}pod-group-sets": "[]"}, "must be a list of sets"),
        ({f"{K}prebuilt-workload-name": GROUP}, {}, "is not there: make it"),
    ],
    ids=["BG-27 a role that nobody declares", "BG-22 sets that are none", "BG-18 a prebuilt Workload that is missing"],
)
def test_what_no_workload_is_made_of_is_told(labels: dict[str, str], notes: dict[str, str], said: str) -> None:
    world = a_world_with_groups()
    join(world, a_member("a", total=1, labels=labels, notes=notes))
    ((_, text),) = warnings(world, "ErrWorkloadCompose")
    assert said in text
    assert world.all("Workload") == []


def test_pg_31_a_manager_killed_at_each_step_of_composing_comes_to_the_same_workload() -> None:
    def life(stop: int | None) -> tuple[World, int]:
        world = a_world_with_groups()
        begun = world.steps
        world.stop_after = begun + stop if stop is not None else None
        join(world, *(a_member(f"p{number}", total=3, at=number) for number in (4, 1, 2, 3)))
        if stop is not None:
            world.stop_after = None
            world.restart()
            world.advance(3.0)
        return world, world.steps - begun

    _, steps = life(None)
    for stop in range(steps + 1):
        world, _ = life(stop)
        assert sorted(one["metadata"]["name"] for one in world.all("Pod")) == ["p1", "p2", "p3"], stop
        assert set(owners_of(world.find("Workload"))) >= {"p1", "p2", "p3"}, stop
        assert pod_sets_of(world.find("Workload")) == [3], stop
        assert contained(world) == [], stop


@pytest.mark.parametrize("error", [WriteError.UNKNOWN, WriteError.NOT_DONE], ids=["not known", "refused"])
def test_a_create_that_fails_is_looked_at_again(error: WriteError) -> None:
    world = a_world_with_groups()
    failed: list[int] = []

    def once(command: object) -> WriteError | None:
        first = isinstance(command, Create) and command.ref.resource == WORKLOAD and not failed
        if first:
            failed.append(1)
        return error if first else None

    world.fail = once
    join(world, *(a_member(name, total=2, at=at) for at, name in enumerate("ab")), seconds=60.0)
    assert (owners_of(world.find("Workload")), failed) == (["a", "b"], [1])


def test_hd_351_that_no_pod_of_a_group_is_known_is_asked_of_the_pods_and_not_of_the_groups_name() -> None:
    """No pod has the group's name: a read of that would find nothing while each of them is there."""
    world = a_world_with_groups()
    join(world, *(a_member(name, total=2, at=at) for at, name in enumerate("ab")))
    world.hidden = {pod_ref("a"), pod_ref("b")}
    world.restart()
    world.advance(60.0)
    assert owners_of(world.find("Workload")) == ["a", "b"]
    assert "deletionTimestamp" not in world.find("Workload")["metadata"]


def test_no_event_of_one_pod_goes_through_all_pods() -> None:
    """Counted in calls of functions: a pod of 400 costs what one of 100 does, but for halving."""

    def calls(size: int) -> int:
        world = a_world_with_groups()
        join(world, *(a_member(f"p{number}", total=size, at=number % 60) for number in range(size)))
        world.advance(60.0)
        world.api.edit(pod_ref("p0"), lambda document: document["metadata"]["annotations"].update(x="1"))
        return calls_of(world.settle)[0]

    assert calls(400) <= calls(100) + 100


def labelled(world: World, **labels: str) -> None:
    """Have a user change labels of all pods, one after the other."""
    for name in "abc":
        world.api.edit(pod_ref(name), lambda document: document["metadata"]["labels"].update(labels_of(labels)))
        world.settle()
    world.advance(10.0)


def labels_of(labels: dict[str, str]) -> dict[str, str]:
    return {f"{K}{name.replace('_', '-')}": value for name, value in labels.items()}


def test_pg_29_a_group_that_waits_follows_its_pods_to_another_queue_class_and_execution_limit() -> None:
    """PC-020, PC-032: in place, so that it keeps its turn."""
    world = a_world_with_groups()
    world.api.apply(kueue_object("LocalQueue", "other", {"clusterQueue": "shared"}, namespace="team"))
    world.api.apply(kueue_object("WorkloadPriorityClass", "high", {}) | {"value": 7})
    join(world, *(a_member(name, at=at, cpu="3") for at, name in enumerate("abc")))
    uid = world.find("Workload")["metadata"]["uid"]
    labelled(world, queue_name="other")
    assert world.find("Workload")["spec"]["queueName"] == "other"
    labelled(world, priority_class="high")
    spec = world.find("Workload")["spec"]
    assert (spec["priority"], spec["priorityClassRef"]["name"]) == (7, "high")
    labelled(world, max_exec_time_seconds="60")
    assert world.find("Workload")["spec"]["maximumExecutionTimeSeconds"] == 60
    assert (world.find("Workload")["metadata"]["uid"], contained(world)) == (uid, [])
    assert pod_sets_of(world.find("Workload")) == [3]


def test_pg_29_while_its_pods_name_two_queues_a_group_stays_as_it_is_and_says_so() -> None:
    world = a_world_with_groups()
    join(world, *(a_member(name, at=at, cpu="3") for at, name in enumerate("abc")))
    world.api.edit(pod_ref("b"), lambda document: document["metadata"]["labels"].update(labels_of({"queue_name": "x"})))
    world.advance(10.0)
    assert world.find("Workload")["spec"]["queueName"] == "main"
    [(name, text)] = warnings(world, "ErrWorkloadCompose")
    assert (name, "differ in the queue" in text) == ("a", True)
