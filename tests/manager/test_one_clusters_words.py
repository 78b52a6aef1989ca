"""HD-157: what one cluster says costs a few lines of the log, and keeps no room and no turn from what others say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.api import events
from gatelift.core.api.commands import Command, ReadAll
from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift.core.conclusions import strays
from gatelift.core.conclusions.epoch_texts import LABELS_NOT_BELIEVED
from gatelift.core.state import doubts as limits
from gatelift.core.state.doubts import Doubts
from gatelift.core.state.few_lines import LINES_MAX, FewLines
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Forget, Stopped
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world

ENTRIES = 3000
WORN = InventoryEntry(key=PlacementKey("-", 1), namespace="team", name="tenants", state="RUNNING", lifted=True)


def lists(world: World, cluster: str, entries: tuple[InventoryEntry, ...]) -> None:
    view = world.machine.core.view(cluster)
    assert view is not None
    revision = world.machine.core.record_revision
    said = PlacementsInventoried(
        cluster=cluster, session=view.session, record_revision=revision, applied=0, entries=entries
    )
    world.upcall(said)
    world.advance(1.0)


def with_pods(number: int) -> tuple[World, list[str]]:
    """Return a world with pods, and the UIDs of their Workloads."""
    world = a_world(a_setting(cpu=8))
    for each in range(number):
        world.api.apply(a_pod(name=f"p{each}").document())
    world.settle()
    return world, [one["metadata"]["uid"] for one in world.all("Workload")]


def test_hd_157_thousands_of_epochs_of_one_workload_are_one_line_and_one_event() -> None:
    world, (uid,) = with_pods(1)
    for _ in range(2):
        world.notes.clear()
        world.emitted.clear()
        lists(world, "b", tuple(replace(WORN, key=PlacementKey(uid, epoch)) for epoch in range(1, ENTRIES)))
        assert len([note for note in world.notes if "carries Gatelift's labels" in note.text]) == 1
        assert len([one for one in world.emitted if one.reason == LABELS_NOT_BELIEVED]) <= 1
    assert not world.machine.core.caution.holds(uid)


def test_hd_157_of_many_workloads_the_first_few_are_told_and_the_others_counted() -> None:
    world, uids = with_pods(LINES_MAX + 7)
    world.notes.clear()
    lists(world, "b", tuple(replace(WORN, key=PlacementKey(uid, 5)) for uid in uids))
    assert len([note for note in world.notes if "carries Gatelift's labels" in note.text]) == LINES_MAX
    assert [note.text for note in world.notes if "left out" in note.text] == [
        "7 further lines about what it says are left out"
    ]


def test_hd_157_each_cluster_has_lines_of_its_own_anew_with_each_inventory() -> None:
    lines = FewLines()
    assert [lines.may("a") for _ in range(LINES_MAX + 2)] == [True] * LINES_MAX + [False] * 2
    assert lines.may("b")
    assert (lines.rest("a"), lines.rest("a"), lines.rest("b")) == (2, 0, 0)
    lines.begin("a")
    assert lines.may("a")


# --- what waits for a list ----------------------------------------------------------------------------------------


def keys(number: int) -> list[PlacementKey]:
    return [PlacementKey(f"uid-of-nobody-{each}", 1) for each in range(number)]


def test_hd_157_however_much_one_cluster_tells_what_another_tells_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "DOUBTS_MAX", 3)
    doubts, other = Doubts(), PlacementKey("uid-of-another", 1)
    for key in keys(10):
        doubts.doubt("a", key, "", over=False)
        doubts.postpone("a", key, over=False, gated=True)
    doubts.doubt("b", other, "", over=True)
    doubts.postpone("b", other, over=False, gated=True)
    doubts.were_read("")
    assert doubts.take(100) == {**{("a", key): False for key in keys(3)}, ("b", other): True}
    assert len(doubts.resume(100)) == 4
    doubts.doubt("a", keys(1)[0], "", over=False)
    doubts.were_read("")
    assert doubts.take(100), "there is room again once it was answered"


def test_hd_277_what_one_cluster_tells_is_answered_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-277: 10,000 placements that nobody knows were answered in one call of 87 ms."""
    monkeypatch.setattr(strays, "ANSWERED_PER_LOOK", 4)
    world, _ = with_pods(1)
    for key in keys(10):
        world.agents["b"].say(Stopped(key=key))
    world.settle()
    world.advance(20.0)
    told = [command for command in world.history if isinstance(command, ReadAll)]
    assert told
    forgotten = [message.key for cluster, message in world.messages(Forget) if cluster == "b"]
    assert sorted(forgotten) == sorted(keys(10))
    doubts = Doubts()
    for key in keys(10):
        doubts.doubt("b", key, "", over=True)
    doubts.were_read("")
    assert [len(doubts.take(4)) for _ in range(4)] == [4, 4, 2, 0]
    assert not doubts.answerable


def test_hd_157_what_could_not_be_listed_by_itself_waits_with_all_others_and_keeps_nobodys_place() -> None:
    doubts, (first, second) = Doubts(), keys(2)
    doubts.doubt("a", first, "bad", over=False)
    doubts.doubt("a", first, "", over=True)
    doubts.doubt("a", second, "bad", over=False)
    doubts.failed("bad", 0.0)
    assert doubts.unasked() == [""]
    doubts.were_read("")
    assert doubts.take(100) == {("a", first): True, ("a", second): False}
    doubts.failed("bad", 0.0)
    assert doubts.unasked() == []


def test_hd_157_a_namespace_that_cannot_be_listed_delays_what_others_wait_for_by_one_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = a_world(a_setting())
    core = world.machine.core
    asked: list[str] = []

    def answer(command: ReadAll) -> None:
        asked.append(command.namespace)
        if command.namespace == "bad":
            world.put(events.ReadFailed(read_id=command.read_id, message="no such namespace"))
        else:
            world.put(events.ReadAllDone(read_id=command.read_id, objects=()))

    carry_out = world._carry_out

    def carry_out_or_answer(command: Command) -> None:
        if isinstance(command, ReadAll):
            answer(command)
        else:
            carry_out(command)

    monkeypatch.setattr(world, "_carry_out", carry_out_or_answer)
    core.ask_all("a", keys(1)[0], "bad", over=False)
    core.ask_all("b", PlacementKey("uid-of-another", 1), "team", over=False)
    world.give(events.Ticked())
    world.advance(3 * limits.LISTS_APART_SECONDS_MAX)
    assert sorted(asked) == ["", "bad", "team"]
    assert not core.doubts.waiting
