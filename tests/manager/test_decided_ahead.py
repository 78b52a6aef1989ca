"""How far decisions may be ahead of their writes."""

from __future__ import annotations

import pytest

from gatelift.core import machine
from gatelift.core.state.api_requests import UNSENT_SECONDS
from gatelift.core.works import deciding
from gatelift_admission.entries.entry import Phase
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from support.manager.builders import a_pod, a_setting
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
