"""After a scenario that failed: what it made goes, and what it stopped or cut off is back, so that one failure is one.

A scenario that passes leaves nothing behind by itself; that is a part of what it shows.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from gatelift_kube.deciding.errors import KubeError
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.installation import InstalledProcess
from support.e2e.world import WORKERS, World

GONE_SECONDS = 60.0
"""For each object. What does not go by then is told, and the next scenario does with what there is."""


async def tidy(world: World) -> list[str]:
    """Put the world back in order; return what could not be."""
    trouble = await _daemons_run(world)
    for cluster, ref in reversed(world.made):
        try:
            await world.delete(ref.resource, ref.key.name, cluster)
        except (AssertionError, KubeError) as problem:
            trouble.append(f"{ref} in {cluster}: {_first_line(problem)}")
    for cluster, ref in reversed(world.made):
        what = f"{ref} in {cluster}"
        trouble += await _until(what, world.gone(cluster, ref.resource, ref.key.name, seconds=GONE_SECONDS))
    names = [ref.key.name for cluster, ref in world.made]
    return trouble + await _until("what runs on workers", world.nothing_left(*names, seconds=GONE_SECONDS))


async def _daemons_run(world: World) -> list[str]:
    installation = world.installation
    for proxy in installation.proxies.values():
        proxy.mend()
    try:
        for daemon in list(installation.daemons.values()):
            await installation.restart(daemon, if_=partial(_ended, daemon))
        await installation.wait_connected(*WORKERS)
    except (SandboxError, KubeError) as problem:
        return [_first_line(problem)]
    return []


def _ended(daemon: InstalledProcess) -> bool:
    return not daemon.alive


async def _until(what: str, gone: Awaitable[None]) -> list[str]:
    try:
        await gone
    except (AssertionError, KubeError) as problem:
        return [f"{what}: {_first_line(problem)}"]
    return []


def _first_line(problem: BaseException) -> str:
    return str(problem).partition("\n")[0]
