"""Daemons that serve pods of groups, which the product does not yet: for scenarios alone, which restart them so.

The registry of the product is another one before anything of it is imported; all else is as it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_sandbox.installation import MANAGER, PROGRAM
from support.e2e.world import WORKERS, World

SOURCE = """
from gatelift_kinds import registry
registry.SERVED = registry.WITH_GROUPS
from gatelift.cli.main import main
main()
"""
WITH_GROUPS = ("-c", SOURCE)


async def serve_groups(world: World) -> None:
    """Have webhooks, manager and agents serve groups, if they do not."""
    await _run(world, WITH_GROUPS)


async def serve_the_products_kinds(world: World) -> None:
    """Have them serve what the product does, if they serve more."""
    await _run(world, PROGRAM)


async def _run(world: World, program: Sequence[str]) -> None:
    installation = world.installation
    if installation.program == program:
        return
    installation.program = program
    world.keeper.left.add(MANAGER)  # it ends and starts by our word now
    for name in list(installation.daemons):
        await installation.end(name)
    await installation.start_webhooks()
    await installation.start_manager()
    world.keeper.left.discard(MANAGER)
    for worker in WORKERS:
        await installation.start_agent(world.clusters[worker])
    await installation.wait_connected(*WORKERS)
