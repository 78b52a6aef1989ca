"""Sizes per pod set (KEP-77): some grow while others shrink, and neither pays for the other (WS-040, WS-042)."""

from __future__ import annotations

import pytest

from gatelift.core.works import following, growing
from gatelift_kinds.registry import BARE_KIND, POD_KIND, Registry
from gatelift_kinds.shared import markers
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import VERSION_OF_SIZES
from support.manager import api
from support.manager.builders import NAMESPACE, Doc, a_setting
from support.manager.slice_world import all_slices, finished, number, ref_of, used
from support.manager.world import World, a_world
from support.toys.elastic_training.kind import ElasticTrainingKind
from support.toys.training.objects import TRAINING, a_group

THE_TRAINING = ObjectRef(TRAINING, ObjectKey(NAMESPACE, "train"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world in which a training of one leader and three workers runs."""
    monkeypatch.setitem(api.ALL, f"{TRAINING.api_version}/{TRAINING.kind}", TRAINING)
    found = a_world(a_setting(cpu=12), clusters=(), kinds=Registry(POD_KIND, ElasticTrainingKind(), BARE_KIND))
    for name in ("a", "b"):
        found.connect(name, version=VERSION_OF_SIZES)
    found.advance(3.0)
    found.api.apply(
        {
            "apiVersion": TRAINING.api_version,
            "kind": TRAINING.kind,
            "metadata": {
                "name": "train",
                "namespace": NAMESPACE,
                "labels": {markers.QUEUE_NAME: "main"},
                "annotations": {markers.ELASTIC_JOB: "true"},
            },
            "spec": {"leader": a_group(cpu="2"), "workers": a_group(replicas=3)},
        }
    )
    found.advance(5.0)
    assert sizes(found) == [(1, (1, 3), (1, 3), "")]
    return found


def resize(world: World, leader: int, workers: int) -> None:
    def change(training: Doc) -> None:
        training["spec"]["leader"]["replicas"] = leader
        training["spec"]["workers"]["replicas"] = workers
        training["metadata"]["generation"] += 1

    world.api.edit(THE_TRAINING, change)
    world.advance(5.0)


def sizes(world: World) -> list[tuple[int, tuple[int, ...], tuple[int, ...], str]]:
    """Return number, counts, charged counts and end of each slice; leader first."""
    return [
        (
            number(one),
            tuple(each["count"] for each in one["spec"]["podSets"]),
            tuple(each["count"] for each in one.get("status", {}).get("admission", {}).get("podSetAssignments", ())),
            finished(world, one),
        )
        for one in all_slices(world)
    ]


def test_ws_040_both_are_two_changes_and_what_shrinks_pays_for_nothing(world: World) -> None:
    """WS-040: Kueue makes one slice of both, and lets what shrinks pay for what grows."""
    resize(world, 3, 1)
    assert sizes(world)[-1] == (3, (3, 1), (3, 3), "")
    assert [one[3] for one in sizes(world)] == ["WorkloadSliceReplaced", ""]
    assert (used(world), len(world.runs)) == (9, 1)


def test_ws_040_the_record_is_lowered_before_what_grows_takes_its_place(world: World) -> None:
    begun = len(world.api.writes)
    resize(world, 3, 1)
    written = [
        (verb, [each["count"] for each in body.get("spec", {}).get("podSets", ())])
        for verb, ref, body in world.api.writes[begun:]
        if ref.resource.kind == "Workload" and isinstance(body, dict)
    ]
    assert written == [
        ("create", [3, 1]),
        ("patch", [1, 1]),
        ("replace status", []),
        ("replace status", []),
    ]


def test_sl_40_a_growth_waits_while_the_record_cannot_be_lowered(world: World) -> None:
    """It would be the record with more than is wanted of the other pod set than it asks for itself."""

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        lowers = isinstance(command, Patch) and b'"gatelift.dev/size":"2"' in command.body
        return WriteError.NOT_DONE if lowers else None

    world.fail = fail
    resize(world, 3, 1)
    world.advance(10.0)
    assert sizes(world) == [(1, (1, 3), (1, 3), ""), (3, (3, 1), (), "")]
    core = world.machine.core
    target = core.knowledge.workloads[ref_of(all_slices(world)[1]).key]
    assert growing.has_no_turn(following.case_of(core, target, world.now)), "also while that write rests"
    world.fail = None
    world.advance(60.0)
    assert (sizes(world)[-1], used(world)) == ((3, (3, 1), (3, 3), ""), 9)


def test_ws_042_one_that_shrinks_is_lowered_in_place(world: World) -> None:
    resize(world, 1, 1)
    assert sizes(world) == [(2, (1, 1), (1, 3), "")]
    assert (used(world), len(world.runs)) == (5, 1)


def test_what_waits_is_never_below_the_record(world: World) -> None:
    resize(world, 9, 3)
    resize(world, 9, 2)
    resize(world, 8, 4)
    resize(world, 9, 1)
    for one in sizes(world):
        if not one[3]:
            assert all(count <= wanted for count, wanted in zip(one[1], (9, 1), strict=True))
    record, target = (one for one in sizes(world) if not one[3])
    assert (record[1], record[2], target[1]) == ((1, 1), (1, 3), (9, 1))
    assert record[0] < target[0]
    assert (used(world), len(world.runs)) == (5, 1)


def test_numbers_are_never_given_twice_where_the_record_is_lowered_below_what_waits(world: World) -> None:
    """SL-40, SL-43: the record gets a number that no late write of the slice above it can have."""
    given: list[int] = []
    for leader, workers in ((9, 3), (9, 2), (8, 2), (8, 1), (7, 3), (9, 1)):
        resize(world, leader, workers)
    for _, _, body in world.api.writes:
        said = body.get("metadata", {}).get("annotations", {}) if isinstance(body, dict) else {}
        if "gatelift.dev/size" in said:
            given.append(int(said["gatelift.dev/size"]))
    assert len(given) >= 6
    assert len(set(given)) == len(given)
