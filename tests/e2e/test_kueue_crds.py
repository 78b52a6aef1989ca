"""Kueue's own CRDs instead of ours on the management cluster: what they prune must not matter."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e import world as e2e_world
from support.e2e.groups import AWAY, Group
from support.e2e.world import MODULE_SECONDS, PROVIDER_ENVIRONMENT, REQUIRED, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

CRDS = os.environ.get("GATELIFT_KUEUE_CRDS", "")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kueue_world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    if not CRDS and REQUIRED:
        pytest.fail("GATELIFT_KUEUE_CRDS names no folder with Kueue's CRDs: name one, or leave this module out")
    if not CRDS:
        pytest.skip("GATELIFT_KUEUE_CRDS names no folder with Kueue's CRDs")
    folder = Path(tmp_path_factory.mktemp("kueue-crds"))
    made = await e2e_world.make(os.environ.get(PROVIDER_ENVIRONMENT) or "local", folder, crds=Path(CRDS))
    try:
        yield made
    finally:
        await e2e_world.end(made)


async def test_a_pod_travels_ends_and_is_dispatched_again_on_kueues_own_crds(kueue_world: World) -> None:
    world = kueue_world
    name = world.name("kueue")
    await world.create(world.pod(name, does=Behaviour()))
    await world.running_on(name)
    workload = await world.workload_of(name)
    assert workload is not None
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    await world.condition(name, "Evicted")
    await world.nothing_left(name)
    await world.condition(name, "QuotaReserved", status="False")
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": True}})
    await world.running_on(name)
    await world.remove(POD, name)


async def test_a_job_completes_on_kueues_own_crds_and_a_manager_restart_in_between(kueue_world: World) -> None:
    world = kueue_world
    name = world.name("kueue-job")
    await world.create(world.job(name, pods=3, does=Behaviour(run_seconds=6.0)))
    await world.condition(name, "Admitted", kind="Job")
    manager = world.installation.daemons["manager"]
    world.installation.kill(manager)
    await world.installation.restart(manager)
    await world.condition(name, "Finished", kind="Job")
    await world.nothing_left(name)
    assert world.overlaps() == []


async def test_pg_28_a_group_runs_loses_a_member_and_ends_on_kueues_own_crds(kueue_world: World) -> None:
    """PG-28: its Workload keeps owners, marks and counts, and so do its conditions."""
    group = Group(kueue_world, "kueue-group", AWAY)
    await group.make("a", Behaviour(run_seconds=0.5, exit_code=1))
    await group.make("b", Behaviour(run_seconds=3.0))
    await group.make("c")
    await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    found = await group.workload()
    assert found is not None
    assert len(found["metadata"]["ownerReferences"]) == 3
    await group.make("d", Behaviour(run_seconds=3.0))
    await group.says("WaitingForReplacementPods", "False")
    await group.are_shown("bd", "Succeeded")
    await group.patch({"spec": {"active": False}})
    await group.says("QuotaReserved", "False")
    await group.patch({"spec": {"active": True}})
    await group.run("c")
    await group.remove()
