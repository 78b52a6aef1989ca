"""An installation that knew no groups is upgraded under work that runs: the manager, then one agent after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB, POD
from support.e2e import older_code
from support.e2e import world as e2e_world
from support.e2e.admission import runs
from support.e2e.groups import AT_HOME, AWAY, FOR_EVER, Group
from support.e2e.world import MODULE_SECONDS, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

BEFORE_GROUPS = "29a71950f504eac202978b3802144c7fe50b07e4"
"""Serves single pods and Jobs, and speaks version 1 of the protocol."""


@pytest_asyncio.fixture(loop_scope="session")
async def older(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Make a world all of whose daemons are of that commit."""
    folder = Path(tmp_path_factory.mktemp("upgrade"))
    environment = older_code.environment_of(BEFORE_GROUPS, folder / "older")
    made = await e2e_world.make("local", folder, environment=environment)
    try:
        yield made
    finally:
        await e2e_world.end(made)


async def upgrade(world: World, *names: str) -> None:
    """Start daemons again, with the code of now."""
    world.installation.environment = {}
    for name in names:
        await world.installation.restart(world.installation.daemons[name])
    await world.installation.wait_connected(*WORKERS)


async def begun(world: World, name: str, queue: str = AWAY, cpu: str = "500m") -> str:
    """Let a pod run for ever."""
    await world.create(world.pod(name, queue=queue, cpu=cpu, does=FOR_EVER))
    await world.phase(name, "Running")
    return name


async def test_work_that_runs_goes_on_while_manager_and_agents_are_upgraded_one_by_one(older: World) -> None:
    world = older
    jobs = [world.name("job")]
    pods = [await begun(world, world.name("travels")), await begun(world, world.name("stays"), AT_HOME)]
    await world.create(world.job(jobs[0], pods=3, does=FOR_EVER))
    await world.condition(jobs[0], "Admitted", kind="Job")
    before = world.installation.daemons["manager"].command

    await upgrade(world, "webhooks", "manager")
    assert world.installation.daemons["manager"].command == before
    pods.append(await begun(world, world.name("by-older-agents")))
    at_home = Group(world, "at-home", total=2)
    await at_home.make("ab")
    await at_home.run("ab")

    await upgrade(world, "agent-w1")
    pods += [await begun(world, world.name("beside"), cpu="4500m") for _ in range(2)]  # either worker has room for one
    assert {run.cluster for pod in pods for run in runs(world, pod)} == {"mgmt", *WORKERS}

    await upgrade(world, "agent-w2")
    travels = Group(world, "travels", AWAY, total=2)
    await travels.make("ab")
    await travels.run("ab")

    for pod in pods:
        [run] = runs(world, pod)
        assert run.stopped is None, f"{pod} was never touched"
    ran = runs(world, jobs[0])
    assert len(ran) == 3
    assert all(run.stopped is None for run in ran)
    await at_home.remove()
    await travels.remove()
    await world.remove(POD, *pods)
    await world.remove(JOB, *jobs)
    assert world.overlaps() == []
