"""How far decisions may be ahead of their writes, and who may keep them from being made (HD-502)."""

from __future__ import annotations

import pytest

from gatelift.core import machine
from gatelift.core.state.api_requests import UNSENT_SECONDS
from gatelift.core.works import deciding
from gatelift_admission.entries.entry import Phase
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

AHEAD = 3
PODS = 8


def no_turn(command: Create | Patch | Delete) -> WriteError | None:
    """Let no write to a Workload that is there find a turn."""
    return WriteError.NOT_SENT if isinstance(command, Patch) and command.ref.resource == WORKLOAD else None


def decided(world: World) -> int:
    """Return how many workloads the engine has decided on, written or not."""
    entries = world.machine.core.ledger.engine.state.entries.values()
    return sum(one.phase is not Phase.PENDING for one in entries)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(machine, "DECIDED_AHEAD", AHEAD)
    monkeypatch.setattr(deciding, "HEADS_PER_CALL", 1)
    made = a_world(a_setting(cpu=PODS))
    made.fail = no_turn
    for number in range(PODS):
        made.api.apply(a_pod(f"pod-{number}").document())
    made.settle()
    return made


def test_no_more_is_decided_while_so_many_writes_wait_and_nobody_asks_when(world: World) -> None:
    assert decided(world) == AHEAD
    due = world.machine.next_deadline()
    assert due is not None
    assert due > world.now, "it waits for an outcome or for the next turn, and does not spin"


def test_the_rest_is_decided_once_writes_have_had_their_turn(world: World) -> None:
    world.fail = None
    world.advance(UNSENT_SECONDS)
    assert decided(world) == PODS
    assert all("clusterName" in one["status"] for one in world.all("Workload"))


# --- what nobody has decided on --------------------------------------------------------------------------------

MANY = "many"


def none_of_many(command: Create | Patch | Delete) -> WriteError | None:
    """Let no write in one namespace find a turn: thousands of its own are before each."""
    return WriteError.NOT_SENT if command.ref.key.namespace == MANY else None


def flooded() -> World:
    """Return a world in which more objects of one namespace wait to be written than decisions may be ahead."""
    made = a_world(
        [*a_setting(cpu=PODS), kueue_object("LocalQueue", "main", {"clusterQueue": "shared"}, namespace=MANY)]
    )
    made.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MANY}})
    made.fail = none_of_many
    for number in range(machine.DECIDED_AHEAD + 1):
        document = a_pod(f"pod-{number}").document()
        document["metadata"]["namespace"] = MANY
        made.api.apply(document)
    made.settle()
    assert len(made.machine.core.unsent) > machine.DECIDED_AHEAD
    return made


def test_hd_502_who_makes_objects_without_end_keeps_nobody_from_being_decided_on() -> None:
    world = flooded()
    world.api.apply(a_pod("one").document())
    world.settle()
    assert decided(world) == 1
    assert "clusterName" in world.find("Workload")["status"]


def test_hd_502_an_object_without_a_turn_waits_for_one_of_each_other_namespace() -> None:
    core = flooded().machine.core
    one = ObjectRef(WORKLOAD, ObjectKey("few", "one"))
    core.unsent.stand(one)
    assert one in core.unsent.next(2)


def test_hd_502_what_is_decided_and_finds_no_turn_counts_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an API server that answers nothing would be asked for all that there is quota for."""
    monkeypatch.setattr(machine, "DECIDED_AHEAD", AHEAD)
    monkeypatch.setattr(machine, "OTHERS_COUNTED", 0)
    monkeypatch.setattr(deciding, "HEADS_PER_CALL", 1)
    world = a_world(a_setting(cpu=PODS))
    world.fail = no_turn
    for number in range(PODS):
        world.api.apply(a_pod(f"pod-{number}").document())
    world.settle()
    assert decided(world) == AHEAD
    world.fail = None
    world.advance(UNSENT_SECONDS)
    assert decided(world) == PODS
    core = world.machine.core
    assert (core.inflight.charging, core.unsent.charging) == (0, 0)


def test_hd_501_an_admission_says_that_quota_is_kept_for_it() -> None:
    world, held = a_world(a_setting()), []

    def note(command: Create | Patch | Delete) -> None:
        if isinstance(command, Patch) and command.holds:
            held.append(command.ref.resource)

    world.fail = note
    world.api.apply(a_pod("one").document())
    world.settle()
    assert held == [WORKLOAD], "its winner; all else waits in the line of its namespace"
