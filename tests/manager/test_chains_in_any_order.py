"""A chain whatever is lost, late, restarted or out of order (KEP-77): one record, and one charge (SL-12, SL-14, SL-40).

A write that lands late is kept back, and carried out once another leader has gone on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift.core.conclusions import inventories
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_SIZE
from gatelift_wire.values.messages import Stop
from support.manager.api import ApiError
from support.manager.builders import Doc
from support.manager.slice_world import (
    THE_JOB,
    a_running_chain,
    a_slice_world,
    all_slices,
    an_elastic_job,
    charged,
    finished,
    ref_of,
    resize,
    seen,
    the_attempt,
    used,
)
from support.manager.world import World

GROWN = [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]


@dataclass
class Late:
    """Keeps the first write back that a test looks for: nobody hears of it before it lands."""

    world: World
    what: bytes
    kept: list[Patch] = field(default_factory=list)

    def __call__(self, command: Create | Patch | Delete) -> WriteError | None:
        is_it = isinstance(command, Patch) and command.ref.resource == WORKLOAD and self.what in command.body
        if self.kept or not is_it or not isinstance(command, Patch):
            return None
        self.kept.append(command)
        return WriteError.NOT_DONE

    def lands(self) -> bool:
        """Let it land; False where the API server refuses it."""
        self.world.fail = None
        try:
            self.world.api.carry_out(self.kept[0])
        except ApiError:
            return False
        return True


def late(world: World, what: bytes) -> Late:
    world.fail = found = Late(world, what)
    return found


ADMISSION = b'"type":"Admitted","status":"True"'
REPLACED = b'"reason":"WorkloadSliceReplaced"'


def settle_at_each_step(world: World) -> set[int]:
    """Let everything happen; return what was charged at any moment at which something may be decided."""
    moments: set[int] = set()
    while world.step():
        core = world.machine.core
        if core.rebuilt:
            moments.add(used(world))
            assert sum(each.live for each in core.attempts.values()) == 1
    return moments


def test_sl_12_with_the_finish_of_the_old_one_lost_and_another_leader_the_charge_is_one() -> None:
    world = a_running_chain()
    lost = late(world, REPLACED)
    resize(world, 5)
    while not lost.kept:
        world.step()
    assert [charged(one) for one in all_slices(world)] == [3, 5]
    world.fail = None
    world.restart()
    moments = settle_at_each_step(world)
    world.advance(30.0)
    assert moments == {5}
    assert (seen(world), used(world), list(world.running)) == (GROWN, 5, world.runs)
    assert len(world.runs) == 1
    assert not world.messages(Stop)


def test_sl_12_a_finish_that_is_seen_before_what_took_its_place_stops_nothing_and_frees_nothing() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    final = {ref_of(one): one for one in all_slices(world)}
    other = a_running_chain()
    resize(other, 5)
    _only_made(other)
    old, new = (ref_of(one) for one in all_slices(other))
    for at in (old, new):
        other.api.objects[at] = final[at]
        other.api.changes.append(("seen", at, final[at]))
        assert settle_at_each_step(other) <= {3, 5}
    other.advance(10.0)
    assert (used(other), list(other.running)) == (5, other.runs)
    assert not other.messages(Stop)


def _only_made(world: World) -> None:
    """Let the next slice be made, and nothing be written of its admission."""
    world.fail = lambda command: WriteError.NOT_DONE if b"admission" in getattr(command, "body", b"") else None
    while len(all_slices(world)) < 2 or world.api.changes:
        world.step()
    world.fail = None


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_sl_12_a_restart_at_any_step_of_a_growth_and_of_a_shrink_comes_to_the_same(steps: int) -> None:
    world = a_running_chain()
    resize(world, 5)
    for _ in range(steps):
        world.step()
    world.restart()
    assert settle_at_each_step(world) <= {3, 5}
    world.advance(30.0)
    assert (seen(world), used(world), len(world.runs)) == (GROWN, 5, 1)
    resize(world, 1)
    for _ in range(steps):
        world.step()
    world.restart()
    world.advance(30.0)
    assert (seen(world)[-1], used(world), len(world.runs)) == ((3, 1, 5, ""), 5, 1)
    assert not world.messages(Stop)


def test_sl_13_a_record_that_moves_while_an_inventory_is_compared_is_found_on_its_new_slice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_running_chain(cpu=4)
    resize(world, 5)
    world.advance(5.0)
    monkeypatch.setattr(inventories, "COMPARED_PER_CALL", 1)
    core, agent = world.machine.core, world.agents["a"]
    listed = PlacementsInventoried(
        cluster="a",
        session=agent.session,
        record_revision=core.record_revision,
        applied=agent.applied,
        entries=agent.inventory(),
    )
    queue = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
    flavors = world.api.objects[queue]["spec"]["resourceGroups"]
    flavors[0]["flavors"][0]["resources"][0]["nominalQuota"] = "8"
    world.api.edit(queue, lambda one: one["spec"].update(resourceGroups=flavors))
    while charged(all_slices(world)[1]) is None:
        assert world.step()
    comparison = inventories.Comparison(core, listed)
    assert not comparison.step(core)
    world.advance(5.0)
    assert the_attempt(world).uid == all_slices(world)[1]["metadata"]["uid"], "the record has moved"
    while not comparison.step(core):
        pass
    world.advance(30.0)
    assert (seen(world), list(world.running)) == (GROWN, world.runs)
    assert not world.messages(Stop)


def test_a_growth_waits_for_a_cluster_that_is_lost_and_goes_on_with_it() -> None:
    world = a_running_chain()
    world.cut("a", lost=True)
    world.advance(5.0)
    resize(world, 5)
    world.advance(30.0)
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 5, None, "")], 3)
    world.connect("a")
    world.advance(30.0)
    assert (seen(world), used(world), len(world.runs)) == (GROWN, 5, 1)


def test_sl_40_a_late_admission_conflicts_once_its_record_was_lowered_by_another_leader() -> None:
    """SL-40, Size 1: the user asks for more, then for less; without the touch there were two records of size 2."""
    world = a_running_chain()
    slow = late(world, ADMISSION)
    resize(world, 5)
    while not slow.kept:
        world.step()
    world.fail = None
    resize(world, 1)
    world.restart()
    world.advance(30.0)
    assert not slow.lands()
    world.advance(30.0)
    assert [one for one in seen(world) if one[2] is not None] == [(3, 1, 3, "")]
    assert (used(world), len(world.runs)) == (3, 1)


def an_ended_attempt() -> tuple[World, Late]:
    """Return a world in which a leader's admission of the next slice is late, and the next leader has ended the run."""
    world = a_running_chain(cpu=8)
    slow = late(world, ADMISSION)
    resize(world, 5)
    while not slow.kept:
        world.step()
    world.fail = None
    queue = ObjectRef(CLUSTER_QUEUE, ObjectKey("", "shared"))
    world.api.edit(queue, lambda one: one["spec"].update(stopPolicy="HoldAndDrain"))
    world.restart()
    world.advance(30.0)
    assert (used(world), list(world.running)) == (0, [])
    return world, slow


def test_sl_40_a_late_admission_conflicts_once_the_attempt_has_ended() -> None:
    world, slow = an_ended_attempt()
    assert not slow.lands()
    world.advance(10.0)
    assert (used(world), list(world.running), [charged(one) for one in all_slices(world)]) == (0, [], [None, None])


def test_sl_40_what_is_admitted_in_an_epoch_that_has_ended_is_finished_and_never_followed() -> None:
    """The wall behind the touch: a reservation of an earlier epoch than a slice below it has."""
    world, slow = an_ended_attempt()
    write = slow.kept[0]
    target = world.api.edit(write.ref, lambda one: one["metadata"]["annotations"].update({"gatelift.dev/epoch": "1"}))
    version = target["metadata"]["resourceVersion"].encode()
    world.api.carry_out(replace(write, body=write.body.replace(_version(write.body), version)))
    world.restart()
    world.advance(30.0)
    assert finished(world, world.api.objects[write.ref]) == "OutOfSync"
    assert (used(world), list(world.running)) == (0, [])


def _version(body: bytes) -> bytes:
    return body.split(b'"resourceVersion":"')[1].split(b'"')[0]


def test_sl_14_ej_021_ten_wishes_in_one_second_and_two_leaders_end_in_one_record() -> None:
    world = a_running_chain(cpu=20)
    for at, wanted in enumerate((5, 2, 8, 4, 9, 1, 7, 6, 12, 10)):
        resize(world, wanted)
        for _ in range(4):
            world.step()
            assert used(world) <= 20
            assert sum(not finished(world, one) and charged(one) is not None for one in all_slices(world)) <= 2
            assert sum(not finished(world, one) for one in all_slices(world)) <= 2
        if at == 5:
            world.restart()
    world.advance(60.0)
    alive = [one for one in all_slices(world) if not finished(world, one)]
    assert [(one["spec"]["podSets"][0]["count"], charged(one)) for one in alive] in ([(10, 10)], [(10, 12)])
    assert (used(world), len(world.runs)) == (charged(alive[0]), 1)
    assert not world.messages(Stop)


def test_sl_14_ws_046_ws_056_ws_061_of_slices_that_nothing_links_one_goes_on_and_the_others_end() -> None:
    """SL-14: three of them, made in one second, of which one has quota."""
    world = a_slice_world()
    world.api.apply(an_elastic_job())
    world.advance(5.0)
    (first,) = all_slices(world)
    for name in ("x", "y"):
        world.api.apply(_copied(first, name))
    world.advance(30.0)
    ended = {one["metadata"]["name"]: finished(world, one) for one in all_slices(world)}
    assert ended == {first["metadata"]["name"]: "", "x": "OutOfSync", "y": "OutOfSync"}
    assert (used(world), len(world.runs)) == (3, 1)


def test_ws_047_an_end_that_cannot_be_written_is_written_later() -> None:
    world = a_running_chain()
    refused = late(world, b'"reason":"OutOfSync"')
    (first,) = all_slices(world)
    world.api.apply(_copied(first, "x"))
    world.advance(30.0)
    assert refused.kept
    assert sorted(finished(world, one) for one in all_slices(world)) == ["", "OutOfSync"]


def test_ws_049_ws_057_of_two_chains_that_show_quota_one_is_left_and_nothing_runs_twice() -> None:
    """SL-14: as nobody of us writes it; a new leader finds both."""
    world = a_running_chain()
    (first,) = all_slices(world)
    world.machine.core.stand_still()
    world.api.apply({**_copied(first, "x"), "status": first["status"]})
    world.restart()
    world.advance(60.0)
    (left,) = (one for one in all_slices(world) if not finished(world, one))
    assert (charged(left), used(world), len(world.running)) == (3, 3, 1)


def _copied(document: Doc, name: str, **annotations: str) -> Doc:
    meta = document["metadata"]
    kept = {key: value for key, value in meta["annotations"].items() if key != ANNOTATION_CHAIN}
    metadata = {
        "name": name,
        "namespace": meta["namespace"],
        "annotations": {**kept, **annotations},
        "ownerReferences": meta["ownerReferences"],
        "labels": meta.get("labels", {}),
        "finalizers": list(meta["finalizers"]),
    }
    return {**{key: document[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def test_sl_49_a_slice_of_another_job_that_names_this_chain_changes_nothing_and_is_told() -> None:
    world = a_running_chain(cpu=20)
    world.api.apply(an_elastic_job("other", parallelism=1))
    world.advance(5.0)
    mine, other = _of(world, "work"), _of(world, "other")
    marks = {
        ANNOTATION_CHAIN: mine["metadata"]["uid"],
        ANNOTATION_SIZE: "9",
        "kueue.x-k8s.io/workload-slice-replacement-for": f"team/{mine['metadata']['name']}",
    }
    world.api.apply(_copied(other, "forged", **marks))
    world.advance(30.0)
    forged = next(one for one in all_slices(world) if one["metadata"]["name"] == "forged")
    assert (finished(world, forged), charged(forged)) == ("OutOfSync", None)
    assert "SliceNotBelieved" in {one.reason for one in world.emitted if one.ref.key.name == "forged"}
    assert (used(world), len(world.runs)) == (4, 2)
    resize(world, 5)
    world.advance(10.0)
    assert (used(world), len(world.runs)) == (6, 2)
    assert not world.messages(Stop)


def _of(world: World, job: str) -> Doc:
    return next(one for one in all_slices(world) if one["metadata"]["ownerReferences"][0]["name"] == job)


def test_a_number_that_nobody_can_read_holds_the_chain_charged_and_running() -> None:
    world = a_running_chain()

    def spoil(workload: Doc) -> None:
        workload["metadata"]["annotations"][ANNOTATION_SIZE] = "many"

    world.api.edit(ref_of(all_slices_raw(world)[0]), spoil)
    world.advance(5.0)
    resize(world, 5)
    world.advance(30.0)
    assert len(world.all("Workload")) == 1
    assert (used(world), len(world.runs), list(world.running)) == (3, 1, world.runs)


def all_slices_raw(world: World) -> list[Doc]:
    return world.all("Workload")


def test_sl_43_a_number_is_never_given_twice_in_a_chain() -> None:
    """SL-43, Size 4."""
    world = a_running_chain(cpu=6)
    given: dict[int, str] = {}
    for wanted in (9, 2, 8, 5, 1, 6, 3):
        resize(world, wanted)
        world.advance(3.0)
    for _, ref, body in world.api.writes:
        said = body.get("metadata", {}).get("annotations", {}) if isinstance(body, dict) else {}
        if ref.resource == WORKLOAD and ANNOTATION_SIZE in said:
            number = int(said[ANNOTATION_SIZE])
            assert number not in given, f"{number} of {given.get(number)} and of {ref.key.name}"
            given[number] = ref.key.name
    assert len(given) >= 7
    assert len(world.runs) == 1


def test_sl_59_a_job_that_goes_while_a_growth_is_on_its_way_leaves_nothing() -> None:
    world = a_running_chain()
    slow = late(world, ADMISSION)
    resize(world, 5)
    while not slow.kept:
        world.step()
    world.api.delete(THE_JOB)
    world.advance(60.0)
    slow.lands()
    world.advance(60.0)
    assert (world.all("Workload"), used(world), list(world.running)) == ([], 0, [])
