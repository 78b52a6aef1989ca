"""HD-505: a Workload that the API server does not take is told of at the object that waits for it."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.world import World, a_world

REASON = "ErrWorkloadCompose"


def refusing(error: WriteError) -> World:
    world = a_world(a_setting())

    def refuse(command: Create | Patch | Delete) -> WriteError | None:
        return error if isinstance(command, Create) and command.ref.resource == WORKLOAD else None

    world.fail = refuse
    return world


def told(world: World) -> list[tuple[str, str, bool]]:
    return [(one.ref.resource.kind, one.message, one.warning) for one in world.emitted if one.reason == REASON]


@pytest.mark.parametrize(
    "error",
    [WriteError.DENIED, WriteError.QUOTA, WriteError.FORBIDDEN, WriteError.INVALID, WriteError.TOO_LARGE],
    ids=lambda one: one.name,
)
@pytest.mark.parametrize("document", [a_pod().document(), a_job()], ids=["Pod", "Job"])
def test_hd_505_who_waits_for_a_workload_that_is_refused_is_told_why(
    error: WriteError, document: dict[str, object]
) -> None:
    world = refusing(error)
    world.api.apply(document)
    world.settle()
    found = told(world)
    assert len(found) == 1
    ((kind, message, warning),) = found
    assert (kind, warning) == (document["kind"], True)
    assert message.startswith("Its Workload cannot be made, which is tried again: ")
    world.fail = None
    world.advance(60.0)
    assert world.all("Workload"), "it is tried again"


@pytest.mark.parametrize(
    "error", [WriteError.NOT_SENT, WriteError.NOT_DONE, WriteError.CONFLICT], ids=lambda one: one.name
)
def test_hd_505_what_is_of_a_moment_is_told_to_nobody(error: WriteError) -> None:
    world = refusing(error)
    world.api.apply(a_pod().document())
    world.settle()
    assert told(world) == []
