"""HD-303: what an inventory lists and cannot be compared: the manager alone, with clusters of which all is scripted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gatelift.core.conclusions import inventories
from gatelift_kube.deciding.contained import PAUSE_SECONDS_MAX, Contained
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from manager.test_claims import KEY, a_full_world, workload
from support.manager.agents import Held
from support.manager.builders import NAMESPACE, a_pod, a_setting
from support.manager.world import RUNNING, World, a_world
from support.on_purpose import Broken


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def _is_listed(world: World, uid: str) -> PlacementKey:
    """Let b list a later epoch of a Workload than any that the record knows, with our own mark."""
    placed = PlacementKey(uid, 7)
    world.links.seal_key = KEY
    world.agents["b"].placements[placed] = Held(state="Running", lifted=True, called="two")
    world.agents["b"].mark = world.links.given("b", placed, NAMESPACE, "two")
    return placed


def _greets_anew(world: World, cluster: str) -> None:
    world.cut(cluster)
    world.connect(cluster)
    world.settle()


def _placed(world: World, name: str) -> str:
    return str(workload(world, name).get("status", {}).get("clusterName", ""))


def test_hd_303_a_later_epoch_that_raises_is_not_run_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world, uid = a_full_world()
    _is_listed(world, uid)
    broken = Broken(monkeypatch, (inventories, "_drop"), lambda _core, _cluster, entry, _now: entry.key.uid == uid)
    _greets_anew(world, "b")
    assert broken.raised == 1
    assert not [each for each in world.links.broken_off if each[0] == "b"], "its session goes on"
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))
    world.advance(PAUSE_SECONDS_MAX / 2)
    assert _placed(world, "pod-two") == "", "it may run there"
    broken.mend()
    _greets_anew(world, "b")
    assert world.machine.core.caution.holds(uid)
    assert not world.machine.core.caution.uncompared
    assert _placed(world, "pod-two") == ""


def test_hd_303_its_cluster_is_asked_anew_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    world, uid = a_full_world()
    _is_listed(world, uid)
    Broken(monkeypatch, (inventories, "_drop"), lambda _core, _cluster, entry, _now: entry.key.uid == uid)
    _greets_anew(world, "b")
    asked: list[float] = []
    for _ in range(12):
        before = len(world.links.broken_off)
        while len(world.links.broken_off) == before:
            world.advance(1.0)
        asked.append(world.now)
        _greets_anew(world, "b")
    pauses = [round(later - at) for at, later in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == PAUSE_SECONDS_MAX


def test_hd_303_it_is_told_at_its_workload_and_its_charge_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world(a_setting(cpu=2, clusters=("a",)), clusters=("a",))
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    Broken(monkeypatch, (inventories, "_compare"), lambda _core, _cluster, one, *_: one == key.uid)
    world.agents["a"].placements.clear()
    _greets_anew(world, "a")
    told = [each for each in world.emitted if each.reason == "InternalError"]
    assert [each.ref.key.name.startswith("pod-one") for each in told] == [True]
    assert world.machine.core.ledger.holds(key.uid)
    world.api.apply(a_pod("two").document())
    world.advance(3.0)
    assert _placed(world, "pod-two") == "a"


@pytest.mark.parametrize("gone", ["the cluster", "the workload"])
def test_hd_303_nothing_is_kept_of_what_is_gone(monkeypatch: pytest.MonkeyPatch, gone: str) -> None:
    world, uid = a_full_world()
    _is_listed(world, uid)
    Broken(monkeypatch, (inventories, "_drop"), lambda _core, _cluster, entry, _now: entry.key.uid == uid)
    _greets_anew(world, "b")
    assert world.machine.core.caution.uncompared
    if gone == "the cluster":
        world.cut("b", lost=True)
        del world.links.views["b"]
    else:
        found = workload(world, "pod-two")["metadata"]
        ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, found["name"]))
        world.api.edit(ref, lambda document: document["metadata"].update(finalizers=[]))
        world.api.delete(ref)
    world.advance(2 * PAUSE_SECONDS_MAX)
    assert not world.machine.core.caution.uncompared
    assert uid not in world.machine.core.caution.set_aside
