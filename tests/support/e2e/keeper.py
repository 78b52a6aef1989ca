"""Starts a manager again that gave up its lead, as its Deployment does.

A machine that stands still for longer than a lease is trusted costs its manager the lead; then it ends, by design. That
is a failover like any other, which every scenario has to bear. Whatever else ends by itself stays dead and is seen.
"""

from __future__ import annotations

import asyncio
from functools import partial

from gatelift_sandbox import children
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.installation import MANAGER, Installation, InstalledProcess

LOOK_SECONDS = 0.5
RESTARTS_MAX = 20
"""In one run: more is no busy machine, it is a manager that cannot keep its lead."""
GAVE_UP = ("gatelift: no longer leading:", "gatelift: stepped down:")
"""The last words of a manager that ends because another may lead."""


class Keeper:
    """Watches over the managers of an installation. Those in `left` are a test's own business."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.left: set[str] = set()
        self.restarts: list[str] = []

    async def follow(self) -> None:
        """Look until cancelled. Raises SandboxError when a manager gives up again and again, or does not start."""
        while True:
            for daemon in [each for each in self._installation.daemons.values() if each.name.startswith(MANAGER)]:
                if self.wants(daemon):
                    await self._installation.restart(daemon, if_=partial(self._again, daemon))
            await asyncio.sleep(LOOK_SECONDS)

    def wants(self, daemon: InstalledProcess) -> bool:
        """Say whether a daemon is to be started again: it ended because it does not lead, and no test wants it so."""
        if daemon.name in self.left or daemon.child is None or daemon.alive:
            return False
        return gave_up(daemon)

    def _again(self, daemon: InstalledProcess) -> bool:
        if self._installation.daemons.get(daemon.name) is not daemon or not self.wants(daemon):
            return False
        self.restarts.append(daemon.name)
        if len(self.restarts) > RESTARTS_MAX:
            raise SandboxError(f"{daemon.name} gave up its lead {RESTARTS_MAX} times: {children.log_tail(daemon.log)}")
        return True


def gave_up(daemon: InstalledProcess) -> bool:
    """Say whether a daemon that has ended said at last that it does not lead any more."""
    return children.log_tail(daemon.log).rpartition(" | ")[2].startswith(GAVE_UP)
