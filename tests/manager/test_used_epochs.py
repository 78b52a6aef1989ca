"""An epoch whose reservation was given back is never charged again, whoever leads then (also on `local`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.records.epochs import EPOCH_USED
from gatelift_kube.deciding.writes import ApiWrite, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import a_job, a_setting, a_workload
from support.manager.world import World, a_world


def a_local_job(world: World) -> None:
    document = a_job()
    del document["spec"]["managedBy"]
    world.api.apply(document)


def a_workload_without_owner(world: World) -> None:
    world.api.apply(a_workload().document())


def the_workload(world: World) -> ObjectRef:
    meta = world.find("Workload")["metadata"]
    return ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))


def set_active(world: World, *, active: bool) -> None:
    world.api.edit(the_workload(world), lambda workload: workload["spec"].update(active=active))
    world.settle()


def epoch_of(workload: dict[str, Any]) -> str:
    return str(workload["metadata"].get("annotations", {}).get("gatelift.dev/epoch", "1"))


def no_epoch_is_raised(command: ApiWrite) -> WriteError | None:
    """Let the leader die between the release and the raise: that write never lands."""
    if not isinstance(command, Patch) or command.ref.resource != WORKLOAD or command.subresource:
        return None
    return WriteError.FORBIDDEN if b"gatelift.dev/epoch" in command.body else None


@pytest.mark.parametrize("make", [a_local_job, a_workload_without_owner])
def test_a_new_leader_raises_the_epoch_that_the_old_one_released_before_it_reserves(
    make: Callable[[World], None],
) -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    make(world)
    world.settle()
    world.fail = no_epoch_is_raised
    set_active(world, active=False)
    released = world.find("Workload")
    assert world.condition(released, "QuotaReserved")["status"] == "False"
    assert (epoch_of(released), world.condition(released, EPOCH_USED)["message"]) == ("1", "1")

    world.fail = None
    world.restart()
    world.settle()
    set_active(world, active=True)
    admitted = world.find("Workload")
    assert world.condition(admitted, "Admitted")["status"] == "True"
    assert epoch_of(admitted) == "2"
    assert world.condition(admitted, EPOCH_USED)["message"] == "2", "the epoch of what holds quota is written with it"


def test_the_mark_costs_no_write() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    a_local_job(world)
    world.settle()
    before = len(world.writes("Workload"))
    set_active(world, active=False)
    evict_release_raise = ["replace status", "replace status", "patch"]
    assert world.writes("Workload")[before:] == [*evict_release_raise, "replace status"], "the last says why it waits"
