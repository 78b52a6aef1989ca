"""Users' objects and Workloads are joined by works: one object and its Workload, several objects, several Workloads.

The kinds with several are the tests' own (`support.toys`): shown is the index, and which Workload is too many.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

import msgspec
import pytest

from gatelift.core.api.user_objects import Name, names_of
from gatelift.core.records import record, work
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.records.work import NOBODYS, Owner, SeveralObjectsError, Work
from gatelift.core.works import owners
from gatelift_kinds.registry import JOB_KIND, POD_KIND, Registry
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, said_of
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload, WorkloadSpec
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.resources import POD, ObjectKey
from gatelift_wire.values import messages as m
from support.manager import api
from support.manager.builders import NAMESPACE, Doc, a_setting
from support.manager.world import World, a_world
from support.toys.grouped_pod.kind import GROUP, GroupedPodKind, work_id
from support.toys.training.kind import REPLACES, TrainingKind
from support.toys.training.objects import TRAINING, a_group

KINDS = Registry(GroupedPodKind(), POD_KIND)
ID = work_id(NAMESPACE, "g")


class One(NamedTuple):
    """A user's pod or a Workload that comes, in a version, and what of it counts here."""

    name: str
    of: str = ""
    """Of a pod its group; of a Workload whose it says it is, in one word."""
    names: tuple[str, ...] = ()
    """Of a Workload the UIDs of its owner references."""
    version: int = 1


def a_pod(one: One) -> Owner:
    """Return a user's pod; its UID is its name, and the later in the alphabet the older it is."""
    age = f"2026-01-01T00:00:{ord('z') - ord(one.name[0]):02d}Z"
    labels = {GROUP: one.of} if one.of else {}
    meta = ObjectMeta(
        name=one.name,
        namespace=NAMESPACE,
        uid=one.name,
        resource_version=str(one.version),
        creation_timestamp=age,
        labels=labels,
    )
    pod = Pod(metadata=meta)
    kind = KINDS.of(POD_KIND.resource, pod)
    assert kind is not None
    return Owner(kind, pod, b"")


def a_workload(one: One) -> Workload:
    """Return a Workload; its UID is not its name."""
    group = one.of.rpartition("/")[2]
    said = {ANNOTATION_OWNER: said_of(OwnerReference("v1", "Pod", group, one.of))} if one.of else {}
    meta = ObjectMeta(
        name=one.name,
        namespace=NAMESPACE,
        uid=f"{one.name}-{one.version}",
        resource_version=str(one.version),
        annotations=said,
        owner_references=tuple(OwnerReference("v1", "Pod", each, each) for each in one.names),
    )
    return Workload(metadata=meta, spec=WorkloadSpec())


def take(knowledge: Knowledge, one: One) -> None:
    """Take a Workload, which is written in capitals, or a pod."""
    if one.name.isupper():
        seen = a_workload(one)
        knowledge.put_workload(seen, (POD_KIND, record.read(seen, travels=True)), names_of(KINDS, seen))
    else:
        knowledge.put_owner(a_pod(one))


def a_knowledge(*these: One) -> Knowledge:
    knowledge = Knowledge()
    for one in these:
        take(knowledge, one)
    return knowledge


def name_of(uid: str) -> Name:
    """Return all that names a pod of the tests, or, by its id, the work of a group."""
    return POD, NAMESPACE, uid.rpartition("/")[2], uid


def the_work(knowledge: Knowledge, uid: str) -> Work:
    found = knowledge.works.of_object(name_of(uid))
    assert found is not None
    return found


def objects(found: Work) -> list[str]:
    return [each.object.metadata.name for each in found.objects]


def workloads(found: Work) -> list[str]:
    return sorted(each.name for each in found.workloads)


# --- one object -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [*permutations([One("a"), One("W", names=("a",))])])
def test_an_object_is_a_work_of_its_own_with_the_workload_that_names_it(order: tuple[One, ...]) -> None:
    knowledge = a_knowledge(*order, One("b"))
    found = the_work(knowledge, "a")
    assert (found.id, objects(found), workloads(found)) == (name_of("a"), ["a"], ["W"])
    assert found is knowledge.work_of(a_workload(One("W", names=("a",))))
    assert found.only_object is knowledge.owners[a_pod(One("a")).ref]
    assert workloads(the_work(knowledge, "b")) == []


def test_kinds_that_say_nothing_have_works_of_one_object() -> None:
    for kind in (POD_KIND, JOB_KIND):
        obj = msgspec.convert({"metadata": {"uid": "u"}}, kind.struct)
        assert kind.work_of(obj) == "u"


def test_a_workload_of_two_objects_is_of_the_first_that_it_names_and_of_no_second_one() -> None:
    """Which of them is known, and when, makes no difference: it changes hands with no going or coming (HD-316)."""
    both = One("W", names=("a", "b"))
    knowledge = a_knowledge(both, One("b"))
    assert objects(knowledge.work_of(a_workload(both))) == []
    take(knowledge, One("a"))
    assert objects(knowledge.work_of(a_workload(both))) == ["a"]
    gone(knowledge, One("a"))
    assert objects(knowledge.work_of(a_workload(both))) == []


def test_a_workload_that_names_nobody_is_of_no_work() -> None:
    knowledge = a_knowledge(One("W"))
    found = knowledge.work_of(a_workload(One("W")))
    assert found is NOBODYS
    assert (found.only_object, list(found.workloads)) == (None, [])


def test_a_workload_whose_object_is_not_known_is_of_a_work_without_objects() -> None:
    knowledge = a_knowledge(One("W", names=("a",)))
    found = knowledge.work_of(a_workload(One("W", names=("a",))))
    assert (found.id, found.only_object, workloads(found)) == (name_of("a"), None, ["W"])
    assert not knowledge.works.knows(name_of("a"))


def test_hd_315_that_an_object_is_gone_says_nothing_of_a_workload_nor_of_another_object_with_its_uid() -> None:
    knowledge = a_knowledge()
    seen = a_workload(One("W"))
    knowledge.object_has_gone((POD, "elsewhere", "nope", seen.metadata.uid))
    assert not knowledge.saw_go(seen.metadata.uid)
    assert not knowledge.saw_object_go((POD, NAMESPACE, "nope", seen.metadata.uid))
    assert knowledge.put_workload(seen, (None, record.read(seen, travels=False)))


# --- several objects --------------------------------------------------------------------------------------------------

GROUP_OF_THREE = (One("a", of="g"), One("b", of="g"), One("c", of="g"))
SAYINGS = {
    "by each of their UIDs": One("W", names=("a", "b", "c")),
    "by the id of their work": One("W", of=ID),
    "by one of them": One("W", names=("b",)),
}


@pytest.mark.parametrize("workload", SAYINGS.values(), ids=SAYINGS)
def test_several_objects_are_one_work_with_one_workload_in_whatever_order_they_come(workload: One) -> None:
    for order in permutations([*GROUP_OF_THREE, workload]):
        knowledge = a_knowledge(*order)
        found = knowledge.work_of(a_workload(workload))
        assert (found.id, objects(found), workloads(found)) == (name_of(ID), ["c", "b", "a"], ["W"]), "the oldest first"
        assert {id(the_work(knowledge, each)) for each in "abc"} == {id(found)}


def test_an_object_that_goes_leaves_the_others_their_workload() -> None:
    knowledge = a_knowledge(*GROUP_OF_THREE, One("W", names=("a", "b")))
    knowledge.drop_owner(a_pod(One("a", of="g")).ref, "a")
    assert (objects(the_work(knowledge, "b")), workloads(the_work(knowledge, "b"))) == (["c", "b"], ["W"])
    assert not knowledge.works.knows(name_of("a"))
    knowledge.drop_owner(a_pod(One("b", of="g")).ref, "b")
    assert (objects(the_work(knowledge, "c")), workloads(the_work(knowledge, "c"))) == (["c"], [])


def test_who_can_do_with_one_object_is_not_handed_one_of_several() -> None:
    knowledge = a_knowledge(*GROUP_OF_THREE)
    with pytest.raises(SeveralObjectsError, match="3 objects"):
        the_work(knowledge, "a").only_object  # noqa: B018
    for uid in "ab":
        knowledge.drop_owner(a_pod(One(uid, of="g")).ref, uid)
    only = the_work(knowledge, "c").only_object
    assert only is not None
    assert only.object.metadata.name == "c"


def test_an_object_of_another_group_by_its_next_version_changes_its_work() -> None:
    knowledge = a_knowledge(*GROUP_OF_THREE, One("W", names=("a", "b")))
    take(knowledge, One("a", of="other", version=2))
    assert objects(the_work(knowledge, "b")) == ["c", "b"]
    assert (objects(the_work(knowledge, "a")), workloads(the_work(knowledge, "a"))) == (["a"], ["W"])


# --- always the same as counted anew, and cheap -----------------------------------------------------------------------


def counted_anew(there: Iterable[One]) -> dict[str, tuple[list[str], list[str]]]:
    """Return objects and Workloads of each work, by its id, from all that is there."""
    pods = sorted((one for one in there if not one.name.isupper()), key=lambda one: one.name, reverse=True)
    ids = {one.name: work_id(NAMESPACE, one.of) if one.of else one.name for one in pods}
    named = {one.name: {one.of} if one.of else set(one.names) for one in there if one.name.isupper()}
    works: dict[str, tuple[list[str], set[str]]] = {}
    for name, at in ids.items():
        works.setdefault(at, ([], set()))[0].append(name)
    for name, names in named.items():
        for each in names:
            works.setdefault(ids.get(each, each), ([], set()))[1].add(name)
    return {at: (found, sorted(of)) for at, (found, of) in works.items()}


@pytest.mark.parametrize("seed", range(20))
def test_the_index_is_what_counting_anew_would_find(seed: int) -> None:
    dice, knowledge = random.Random(seed), Knowledge()  # noqa: S311
    there: dict[str, One] = {}
    pods, groups, ids = "abcdef", ("", "g", "h"), ("", work_id(NAMESPACE, "g"), work_id(NAMESPACE, "h"))
    for version in range(1, 200):
        name = dice.choice(pods + "XYZ")
        if name in there and dice.random() < 0.4:
            gone(knowledge, there.pop(name))
        elif name.isupper():
            names = tuple(dice.choices(pods, k=dice.randrange(4)))
            there[name] = One(name, dice.choice(ids), names, version)
        else:
            there[name] = One(name, dice.choice(groups), (), version)
        for _ in range(dice.randrange(1, 3)):  # what raised half-way is taken again
            if name in there:
                take(knowledge, there[name])
        expected = counted_anew(there.values())
        asked = map(knowledge.works.of_object, map(name_of, [*pods, *expected]))
        found = {each.id[-1]: each for each in asked if each is not None}
        assert {at: (objects(each), workloads(each)) for at, each in found.items()} == expected
        assert [each for each in pods if knowledge.works.knows(name_of(each))] == sorted(set(pods) & there.keys())
    for one in there.values():
        gone(knowledge, one)
    assert all(knowledge.works.of_object(name_of(each)) is None for each in (*pods, *ids)), "nothing is kept"


def gone(knowledge: Knowledge, one: One) -> None:
    if one.name.isupper():
        knowledge.drop_workload(ObjectKey(NAMESPACE, one.name))
    else:
        knowledge.drop_owner(a_pod(one).ref, one.name)


def test_one_of_many_objects_comes_and_goes_without_a_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [One(f"a{number}", of="g") for number in range(4096)]
    knowledge = a_knowledge(*many, One("W", of=ID))
    looked: list[Owner] = []
    place = work._place

    def noted(owner: Owner) -> tuple[str, str, str]:
        looked.append(owner)
        return place(owner)

    monkeypatch.setattr(work, "_place", noted)
    take(knowledge, many[7]._replace(version=2))
    gone(knowledge, many[7])
    take(knowledge, many[7])
    assert 0 < len(looked) < 100, "as many as halving takes"
    looked.clear()
    take(knowledge, One("W", of=ID, version=2))
    gone(knowledge, One("W"))
    assert not looked


# --- several Workloads ------------------------------------------------------------------------------------------------


def a_training(monkeypatch: pytest.MonkeyPatch, cpu: int = 8) -> World:
    """Return a world in which a training is placed; it needs 3 CPUs."""
    monkeypatch.setitem(api.ALL, f"{TRAINING.api_version}/{TRAINING.kind}", TRAINING)
    world = a_world(a_setting(cpu=cpu), kinds=Registry(TrainingKind()))
    spec = {"leader": a_group(cpu="2"), "workers": a_group(cpu="1", replicas=1)}
    metadata = {"name": "train", "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "main"}}
    world.api.apply(
        {
            "apiVersion": TRAINING.api_version,
            "kind": TRAINING.kind,
            "metadata": {**metadata, "annotations": {}},
            "spec": spec,
        }
    )
    world.advance(5.0)
    return world


def another(world: World, own: Doc, name: str, *, created: str, replaces: str = "") -> None:
    """Make a second Workload of the same object."""
    meta = {key: own["metadata"][key] for key in ("namespace", "labels", "ownerReferences", "finalizers")}
    meta |= {"name": name, "creationTimestamp": created, "annotations": {REPLACES: replaces} if replaces else {}}
    copied = json.loads(json.dumps({key: own[key] for key in ("apiVersion", "kind", "spec")}))
    world.api.apply({**copied, "metadata": meta})


def names(world: World) -> list[str]:
    return sorted(each["metadata"]["name"] for each in world.all("Workload"))


def test_of_several_workloads_one_is_current_one_its_target_and_the_others_go(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_training(monkeypatch)
    own = world.find("Workload")
    current = own["metadata"]["name"]
    another(world, own, "a-copy", created="2030-01-01T00:00:00Z")
    another(world, own, "next", created="2030-01-01T00:00:01Z", replaces=current)
    another(world, own, "before-next", created="2030-01-01T00:00:00Z", replaces=current)
    another(world, own, "of-another", created="2030-01-01T00:00:02Z", replaces="another")
    world.advance(60.0)
    assert names(world) == sorted([current, "next"])
    assert [one.name for _, one in world.links.log if isinstance(one, m.Commit)] == ["train"], "it is placed once"
    (target,) = (each for each in world.all("Workload") if each["metadata"]["name"] == "next")
    assert [each["reason"] for each in target["status"]["conditions"]] == ["PredecessorNotStopped"], (
        "held by its current"
    )


def test_of_several_that_wait_the_one_of_the_right_name_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_training(monkeypatch, cpu=1)
    own = world.find("Workload")
    for name in ("a-copy", "z-copy"):
        another(world, own, name, created="2020-01-01T00:00:00Z")
    world.advance(60.0)
    assert names(world) == [own["metadata"]["name"]]


def test_one_with_a_winner_beside_the_one_of_the_right_name_is_stopped_and_goes_round_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was placed before that came, and somebody's finalizer keeps it: passes of both do not go round."""
    world = a_training(monkeypatch)
    own = world.find("Workload")
    meta = {key: own["metadata"][key] for key in ("namespace", "labels", "ownerReferences", "annotations")}
    meta |= {"name": "a-second", "finalizers": ["example.com/keep"], "creationTimestamp": "2020-01-01T00:00:00Z"}
    copied = json.loads(json.dumps({key: own[key] for key in ("apiVersion", "kind", "spec", "status")}))
    world.api.apply({**copied, "metadata": meta})
    world.advance(60.0)
    (second,) = [each for each in world.all("Workload") if each["metadata"]["name"] == "a-second"]
    assert "deletionTimestamp" in second["metadata"]
    assert [one.key.uid for _, one in world.links.log if isinstance(one, m.Stop)] == [second["metadata"]["uid"]]
    assert own["metadata"]["name"] in names(world)
    looks: list[object] = []
    monkeypatch.setattr(owners, "put_mark_back", lambda *_: looks.append(1))
    world.advance(5.0)
    assert len(looks) < 10
