"""HD-33: the page about a restored management cluster, word by word, with a real etcd.

etcd's data is copied before, between and after placements; each copy is put back, and the commands of
docs/operations.md are run as they stand there.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import LEASE, POD, WORKER_CLUSTER
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import MANAGER, SYSTEM
from gatelift_sandbox.processes import LocalProvider
from support.e2e import world as e2e_world
from support.e2e.world import MODULE_SECONDS, WORKERS, World
from support.e2e.world import REQUIRED as _REQUIRED

from .conftest import missing

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(3 * MODULE_SECONDS)]

PAGE = Path(__file__).parents[2] / "docs/operations.md"
HEADING = "## A management cluster that was restored from a backup"
VERB_SECONDS = 420.0
RENEWALS = 40
"""Of the leader's Lease, each half a second: twice the time in which an agent renews."""


def commands() -> list[str]:
    """Return the lines of all blocks of the page's section, in order."""
    section = PAGE.read_text().split(HEADING, 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"^```\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def own(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Raise clusters of its own: nobody else may look at a control plane that goes back in time."""
    why = await missing()
    if why and not _REQUIRED:
        pytest.skip(f"no control planes here: {why}")
    made = await e2e_world.make("local", Path(tmp_path_factory.mktemp("recovery")))
    try:
        yield made
    finally:
        await e2e_world.end(made)


FENCED = "gatelift cluster fenced NAME"
"""The page says it for clusters whose name another one has since, which `gatelift recover` names."""


async def follow_the_page(world: World, backup: Path, told: list[str]) -> None:
    """Run the page: each line as it stands, the comment by what it says."""
    provider = world.provider
    assert isinstance(provider, LocalProvider)
    for line in commands():
        if line.startswith("#"):
            assert "put etcd back" in line
            await provider.restore("mgmt", backup)
        elif line.startswith("kubectl"):
            assert "scale deployment gatelift-manager" in line, line
            if line.endswith("--replicas 0"):
                world.keeper.left.add(MANAGER)
                await world.installation.end(MANAGER)
            else:
                await world.installation.start_manager(MANAGER)
                world.keeper.left.discard(MANAGER)
                await world.until(lambda: found(world), "the manager has found out that it was restored")
                await moved_on(world)  # who looks, looks once all have greeted: what they prove is a finding of its own
        elif line == FENCED:
            asked = [line for text in told for line in text.splitlines() if FENCED.replace("NAME", "") in line]
            assert all("there may be more" in line for line in asked), "no other cluster has a name here"
        else:
            assert line.startswith("gatelift recover"), line
            for name in WORKERS if "NAME" in line else ("",):
                words = line.replace("NAME", name).split()[1:]
                told.append(await world.installation.verb(*words, seconds=VERB_SECONDS))


async def moved_on(world: World) -> None:
    """Wait until each agent was granted a renewal after now: its number is in no copy that was made before."""
    before = await counter(world)

    async def grown() -> bool:
        return await counter(world) > before + RENEWALS

    await world.until(grown, "the leader has renewed its Lease often enough")


async def counter(world: World) -> int:
    """Return how often the leader's Lease was written."""
    lease = await world.get("mgmt", LEASE, "gatelift-manager", SYSTEM)
    return int((lease or {}).get("metadata", {}).get("annotations", {}).get("gatelift.dev/lease-counter", "0"))


async def found(world: World) -> bool:
    """Say whether the finding stands where people and leaders see it."""
    local = await world.get("mgmt", WORKER_CLUSTER, "local")
    return "finding" in (local or {}).get("metadata", {}).get("annotations", {}).get("gatelift.dev/recovery", "")


async def runs(world: World, name: str) -> set[str]:
    """Return the workers on which a pod of that name runs."""
    pods = {worker: await world.get(worker, POD, name) for worker in WORKERS}
    return {worker for worker, pod in pods.items() if pod is not None and pod["status"].get("phase") == "Running"}


async def test_hd_33_the_page_about_a_restored_management_cluster_does_what_it_says(own: World, tmp_path: Path) -> None:
    """HD-33: etcd copied before, between and after placements; nothing is doubled or stopped, and dispatch goes on."""
    world = own
    provider = world.provider
    assert isinstance(provider, LocalProvider)
    copies = {when: tmp_path / when for when in ("before", "between", "after")}
    await provider.back_up("mgmt", copies["before"])
    await world.create(world.pod("first", does=Behaviour()))
    place = {"first": await world.running_on("first")}
    await provider.back_up("mgmt", copies["between"])
    await world.create(world.pod("second", does=Behaviour()))
    place["second"] = await world.running_on("second")
    await provider.back_up("mgmt", copies["after"])
    for when in ("after", "between", "before"):
        told: list[str] = []
        await moved_on(world)
        await follow_the_page(world, copies[when], told)
        said, shown, went_on = told[:3]
        assert "whoever leads places nothing before you have looked" in said
        assert "Look what runs on the clusters above" in shown, when
        assert all(worker in shown for worker in WORKERS)
        assert went_on.endswith("recovered: dispatch goes on\n"), went_on
        assert "No sign of a restore" in await world.installation.verb("recover")
        assert "nothing to go on with" in await world.installation.verb("recover", "--go-on"), "it may be said again"
        name = f"new-{when}"
        await world.create(world.pod(name, does=Behaviour()))
        await world.phase(name, "Running")
        if when == "after":
            assert {each: await runs(world, each) for each in place} == {each: {at} for each, at in place.items()}
    # The last copy knew neither pod: the page's last command has stopped them, and nothing else ever did.
    for name in place:
        for worker in WORKERS:
            await world.gone(worker, POD, name)
    assert world.overlaps() == []
