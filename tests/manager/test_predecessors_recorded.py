"""HD-155: what a worker lists and no Workload explains is remembered in words that its WorkerCluster's CRD takes."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from gatelift.core.clusters import cluster_status
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.foreign_runs import ANY
from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift_kube.objects.gatelift import Predecessor, WorkerCluster, WorkerClusterStatus
from gatelift_kube.objects.gatelift_bounds import PREDECESSORS_MAX
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from support.agent.hostile_words import hostile
from support.manager.builders import a_setting
from support.manager.worker_cluster_api import refusal
from support.manager.world import World, a_world

RUNS = InventoryEntry(key=PlacementKey("uid-of-nobody", 1), namespace="team", name="one", state="RUNNING", lifted=True)
BEYOND_THE_WIRE = [
    replace(RUNS, namespace="n" * 253),
    replace(RUNS, name="n" * 1000),
    replace(RUNS, namespace="\x1b[2J" * 20, name="\u202e" * 300),
    *(replace(RUNS, key=PlacementKey(uid, 1)) for uid in ("\x1b[2J", "u" * 65, "a b", "\u00e9", "*")),
]
"""Were the wire's own bounds ever wider than the record's, the record holds what it can hold."""


def listed(*entries: InventoryEntry) -> World:
    """Return a world in which cluster a has listed these."""
    world = a_world(a_setting())
    view = world.machine.core.view("a")
    assert view is not None
    revision = world.machine.core.record_revision
    world.upcall(
        PlacementsInventoried(cluster="a", session=view.session, record_revision=revision, applied=0, entries=entries)
    )
    world.advance(1.0)
    return world


def written(remembered: tuple[Predecessor, ...], before: tuple[Predecessor, ...] = ()) -> dict[str, object]:
    """Return the status that is written of what is remembered, as the API server gets it."""
    found = WorkerCluster(metadata=ObjectMeta(name="a"), status=WorkerClusterStatus(predecessors=before))
    status = cluster_status.document(found, Facts(predecessors=remembered), "2026-01-01T00:00:00Z")
    told: dict[str, object] = msgspec.json.decode(msgspec.json.encode(status))
    return {name: value for name, value in told.items() if value is not None}


@pytest.mark.parametrize("entry", [*hostile(RUNS), *BEYOND_THE_WIRE], ids=lambda entry: repr(entry)[:80])
def test_hd_155_no_entry_of_an_inventory_makes_a_status_that_is_refused(entry: InventoryEntry) -> None:
    world = listed(entry)
    remembered = world.links.predecessors.get("a", ())
    assert refusal(written(remembered)) is None
    for one in remembered:
        for text in (one.kind, one.namespace, one.name, one.workload_uid):
            assert plain(text) == text


@pytest.mark.parametrize("entry", BEYOND_THE_WIRE, ids=lambda entry: repr(entry)[:80])
def test_hd_155_what_cannot_be_recorded_as_said_is_remembered_all_the_same_and_told(
    entry: InventoryEntry,
) -> None:
    world = listed(entry)
    (one,) = world.links.predecessors["a"]
    assert one.workload_uid in {entry.key.uid, ANY.name}
    told = [note.text for note in world.notes if "cannot be recorded" in note.text]
    assert len(told) == 1
    assert plain(told[0]) == told[0]
    assert entry.key in world.machine.core.caution.recovery.unexplained["a"], "it is left alone by its own key"


def test_hd_155_a_key_that_no_workload_can_have_stands_for_all_objects() -> None:
    """Whose place it takes is not known: so long, whatever may go to that cluster waits."""
    world = listed(replace(RUNS, key=PlacementKey("\x1b[2J", 1)))
    (one,) = world.links.predecessors["a"]
    assert (one.kind, one.namespace, one.name) == ANY


def test_hd_155_what_earlier_leaders_remembered_and_what_this_one_does_have_room_together() -> None:
    def some(who: str) -> tuple[Predecessor, ...]:
        return tuple(
            Predecessor(kind="Job", namespace="team", name=f"{who}-{number}", workload_uid=f"{who}-{number}", epoch=1)
            for number in range(PREDECESSORS_MAX - 1)
        )

    status = written(some("now"), some("before"))
    assert refusal(status) is None
    remembered = msgspec.convert(status["predecessors"], tuple[Predecessor, ...])
    assert remembered[-1].name == ANY.name, "what finds no room is remembered as one that stands for all objects"
    again = written(some("now"), remembered)
    assert again["predecessors"] == status["predecessors"], "what is written stays as it is"
