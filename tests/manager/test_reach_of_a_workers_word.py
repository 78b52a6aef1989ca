"""HD-111: what one worker says is there holds others' work only as far as it could be true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.api.user_objects import UserObject
from gatelift.core.clusters.foreign_runs import ANNOTATION_IGNORED, awaited, condition, read
from gatelift.core.clusters.link_values import ClusterChanged
from gatelift.core.records.gone import Evidence
from gatelift.core.rules.successors import own_runs
from gatelift.core.state.predecessors import REMEMBERED_MAX, Memory, left_alone
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, ForeignRunStatus, WorkerCluster
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import MULTIKUEUE_CONFIG, ObjectKey, ObjectRef
from gatelift_wire.values import inventory
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from support.manager.builders import NAMESPACE, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

COUNTED = ForeignRunStatus(origin="elsewhere", count=1000)
NAMED = ForeignRunStatus(origin="elsewhere", kind="Pod", namespace=NAMESPACE, name="one", count=1)
HOME = "at-home"
ONLY_B = "only-b"
HOMES = "stays-here"
"""A namespace of which nothing goes to a worker."""


def setting() -> list[dict[str, Any]]:
    """Return queues that lead to a and b, to b alone, and nowhere."""
    objects = a_setting()
    plain = {**objects[1], "metadata": {"name": HOME}, "spec": {**objects[1]["spec"], "admissionChecksStrategy": None}}
    checks = {"admissionChecks": [{"name": ONLY_B}]}
    narrow = {
        **objects[1],
        "metadata": {"name": ONLY_B},
        "spec": {**objects[1]["spec"], "admissionChecksStrategy": checks},
    }
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": ONLY_B}
    controller = "kueue.x-k8s.io/multikueue"
    return [
        *objects,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOMES}},
        plain,
        narrow,
        kueue_object("AdmissionCheck", ONLY_B, {"controllerName": controller, "parameters": parameters}),
        kueue_object("MultiKueueConfig", ONLY_B, {"clusters": ["b"]}),
        kueue_object("LocalQueue", HOME, {"clusterQueue": HOME}, namespace=NAMESPACE),
        kueue_object("LocalQueue", ONLY_B, {"clusterQueue": ONLY_B}, namespace=NAMESPACE),
        kueue_object("LocalQueue", HOME, {"clusterQueue": HOME}, namespace=HOMES),
    ]


def a_world_in_which(*runs: ForeignRunStatus, **view: Any) -> World:
    """Return a world in which cluster a says that these are there."""
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    says(world, *runs, **view)
    return world


def says(world: World, *runs: ForeignRunStatus, **view: Any) -> None:
    world.links.views["a"] = replace(world.links.views["a"], foreign=runs, **view)
    world.upcall(ClusterChanged(cluster="a"))
    world.settle()


def waits(world: World, queue: str, *, namespace: str = NAMESPACE, name: str = "one", only: str = "") -> bool:
    """Queue a pod and look whether it has to wait for what a says."""
    pod = a_pod(name).document()
    pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    pod["metadata"]["namespace"] = namespace
    if only:
        pod["metadata"]["annotations"]["gatelift.dev/cluster"] = only
    world.api.apply(pod)
    world.settle()
    world.advance(5.0)
    return is_waiting(world)


def is_waiting(world: World) -> bool:
    (workload,) = world.all("Workload")
    conditions = workload.get("status", {}).get("conditions", [])
    waiting = any(each["reason"].startswith("Predecessor") for each in conditions)
    assert waiting != ("admission" in workload.get("status", {})), "it waits for that, or it is admitted"
    return waiting


@pytest.mark.parametrize(
    ("queue", "namespace", "only", "held"),
    [
        ("main", NAMESPACE, "", True),
        ("main", NAMESPACE, "a", True),
        ("main", NAMESPACE, "b", False),
        (ONLY_B, NAMESPACE, "", False),
        (HOME, NAMESPACE, "", False),
        (HOME, HOMES, "", False),
    ],
    ids=["may go there", "asks for it", "asks for another", "another worker's", "at home", "nothing travels"],
)
def test_hd_111_a_count_holds_work_that_may_go_to_that_very_worker(
    queue: str, namespace: str, only: str, *, held: bool
) -> None:
    assert waits(a_world_in_which(COUNTED), queue, namespace=namespace, only=only) is held


@pytest.mark.parametrize(
    ("queue", "namespace", "held"),
    [("main", NAMESPACE, True), (ONLY_B, NAMESPACE, True), (HOME, NAMESPACE, True), (HOME, HOMES, False)],
    ids=["may go there", "its queue was another then", "its queue was another then, at home", "nothing travels"],
)
def test_hd_111_a_name_holds_that_object_where_work_of_its_namespace_travels(
    queue: str, namespace: str, *, held: bool
) -> None:
    assert waits(a_world_in_which(replace_namespace(NAMED, namespace)), queue, namespace=namespace) is held


def replace_namespace(run: ForeignRunStatus, namespace: str) -> ForeignRunStatus:
    return ForeignRunStatus(origin=run.origin, kind=run.kind, namespace=namespace, name=run.name, count=run.count)


def test_hd_111_a_name_holds_nothing_else() -> None:
    assert not waits(a_world_in_which(NAMED), "main", name="two")


@pytest.mark.parametrize("run", [NAMED, COUNTED], ids=["named", "counted"])
def test_hd_111_no_word_reaches_a_namespace_that_a_person_keeps_from_that_worker(run: ForeignRunStatus) -> None:
    assert not waits(a_world_in_which(run, allowed_namespaces=("others",)), "main")


@pytest.mark.parametrize("run", [NAMED, COUNTED], ids=["named", "counted"])
def test_hd_111_who_waits_goes_on_when_a_person_keeps_its_namespace_from_that_worker(run: ForeignRunStatus) -> None:
    world = a_world_in_which(run)
    assert waits(world, "main")
    says(world, run, allowed_namespaces=("others",))
    world.advance(30.0)
    assert not is_waiting(world)


def test_hd_111_who_waits_goes_on_when_its_queue_leads_there_no_more() -> None:
    world = a_world_in_which(COUNTED)
    assert waits(world, "main")
    ref = ObjectRef(MULTIKUEUE_CONFIG, ObjectKey("", "all"))
    world.api.edit(ref, lambda document: document["spec"].update(clusters=["b"]))
    world.settle()
    world.advance(30.0)
    assert not is_waiting(world)


@pytest.mark.parametrize(
    ("queue", "namespace", "held"),
    [("main", NAMESPACE, True), (ONLY_B, NAMESPACE, False), (HOME, NAMESPACE, False), (HOME, HOMES, False)],
    ids=["may go there", "another worker's", "at home", "nothing travels"],
)
def test_hd_111_more_unexplained_runs_than_are_remembered_hold_work_that_may_go_there(
    queue: str, namespace: str, *, held: bool
) -> None:
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    for each in range(REMEMBERED_MAX + 1):
        world.machine.core.predecessors.put("a", listed(f"forged-{each}", f"forged-{each}"))
    assert waits(world, queue, namespace=namespace) is held


@pytest.mark.parametrize(("queue", "namespace", "held"), [("main", NAMESPACE, True), (HOME, HOMES, False)])
def test_hd_111_an_unexplained_run_holds_its_place_where_work_of_its_namespace_travels(
    queue: str, namespace: str, *, held: bool
) -> None:
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    world.machine.core.predecessors.put("a", listed("forged", "one", namespace))
    assert waits(world, queue, namespace=namespace) is held


def test_hd_111_what_the_own_record_knows_of_a_place_holds_it_whatever_its_queue_is_now() -> None:
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    place = UserObject("Pod", NAMESPACE, "one")
    world.machine.core.predecessors.put("a", Memory(place, PlacementKey("w", 1), 1, Evidence(written_revision=1)))
    assert waits(world, HOME)


def listed(uid: str, name: str, namespace: str = NAMESPACE) -> Memory:
    """Return what is remembered of an inventory's entry that no Workload explains."""
    return Memory(UserObject("*", namespace, name), PlacementKey(uid, 1), 1, Evidence(written_revision=1))


@pytest.mark.parametrize(
    "change", [{}, {"name": "two"}, {"given": "0" * 32}, {"key": PlacementKey("w", 2)}, {"given": ""}]
)
def test_hd_140_only_our_own_mark_on_that_very_run_reaches_where_settings_do_not(change: dict[str, Any]) -> None:
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    world.links.seal_key = b"key"
    mark = world.links.given("a", PlacementKey("w", 1), HOMES, "one")
    listed_there = InventoryEntry(
        key=PlacementKey("w", 1), namespace=HOMES, name="one", state="RUNNING", lifted=True, given=mark
    )
    core = world.machine.core
    left_alone(core, "a", replace(listed_there, **change))
    assert waits(world, HOME, namespace=HOMES) is (change == {})


@pytest.mark.parametrize(("queue", "uid", "held"), [("main", "", True), ("", "", False), ("main", "another", False)])
def test_hd_188_a_run_that_was_charged_holds_its_own_workload_whatever_its_queue_is_now(
    queue: str, uid: str, *, held: bool
) -> None:
    world = a_world(setting(), clusters=("a", "b", LOCAL_CLUSTER))
    assert not waits(world, HOME, namespace=HOMES)
    (known,) = world.machine.core.knowledge.workloads.values()
    key = PlacementKey(uid or known.metadata.uid, 9)
    world.machine.core.predecessors.put("a", replace(listed(key.uid, "one", HOMES), key=key, queue=queue))
    assert any(own_runs(world.machine.core, known)) is held


# --- a person's word, and what is no run ----------------------------------------------------------------------------


def a_cluster(ignored: str = "") -> WorkerCluster:
    return WorkerCluster(metadata=ObjectMeta(name="a", annotations={ANNOTATION_IGNORED: ignored}))


def test_hd_111_one_word_covers_all_that_a_worker_says_of_others_now_and_later() -> None:
    assert awaited(a_cluster("elsewhere"), (COUNTED,)) == ()
    assert awaited(a_cluster("elsewhere"), (ForeignRunStatus(origin="elsewhere2", count=1),)) != ()
    assert awaited(a_cluster("*"), (COUNTED, ForeignRunStatus(origin="elsewhere2", count=1))) == ()


def test_hd_111_the_condition_names_a_few_origins_and_both_words() -> None:
    found = condition(a_cluster(), tuple(ForeignRunStatus(origin=f"o{number:03}", count=1) for number in range(256)))
    assert found is not None
    assert "o007, ..." in found.message
    assert "o008" not in found.message
    assert "--ignore;" in found.message
    assert found.message.endswith("--ignore-all")


@pytest.mark.parametrize(
    "changes",
    [{"name": "A_b"}, {"namespace": "x y"}, {"kind": "\x1b[2J"}, {"origin": "\u202e"}, {"name": "a\n"}],
    ids=repr,
)
def test_hd_111_what_no_api_server_can_have_is_no_run(changes: dict[str, Any]) -> None:
    said = inventory.ForeignRun(origin="elsewhere", kind="Pod", namespace="team", name="one", count=1)
    assert len(read((said,))) == 1
    assert read((replace(said, **changes),)) == ()
