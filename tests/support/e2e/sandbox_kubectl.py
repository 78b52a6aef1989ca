"""The plain kubectl of a sandbox cluster, as a person would use it; each call has a limit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gatelift_sandbox.provider import Cluster

CALL_SECONDS = 90.0
WAIT_SECONDS = 120.0
"""Things take a second or two. After an API server's restart its clients come back when they have waited as long again
as it was away, half a minute at the most; and a machine that is wanted by many takes five times as long for all."""
POLL_SECONDS = 0.1


class KubectlError(AssertionError):
    """kubectl ended with a status; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with the admin kubeconfig of one cluster.

    What it remembers of the kinds that are served it keeps beside that: the port may have been another cluster's, whose
    kinds a cache that all share would still tell of.
    """

    cluster: Cluster

    async def __call__(self, *arguments: str, manifest: Any = None) -> str:
        """Run kubectl; `manifest` is what `-f -` reads. Raises KubectlError with its words."""
        program = str(self.cluster.kubectl or "kubectl")
        process = await asyncio.create_subprocess_exec(
            program,
            f"--kubeconfig={self.cluster.kubeconfig}",
            f"--cache-dir={self.cluster.kubeconfig}.cache",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        given = None if manifest is None else json.dumps(manifest).encode()
        try:
            async with asyncio.timeout(CALL_SECONDS):
                out, err = await process.communicate(given)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {err.decode().strip()}")
        return out.decode()

    async def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply objects."""
        await self("apply", "-f", "-", manifest={"apiVersion": "v1", "kind": "List", "items": list(manifests)})

    async def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        """Return an object, None if it is not there."""
        text = await self("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        found: dict[str, Any] | None = json.loads(text) if text.strip() else None
        return found

    async def until(
        self,
        kind: str,
        name: str,
        met: Callable[[dict[str, Any] | None], object],
        *,
        seconds: float = WAIT_SECONDS,
        namespace: str = "default",
    ) -> dict[str, Any] | None:
        """Wait until an object (None: it is gone) satisfies `met`, and return it."""
        seen: dict[str, Any] | None = None
        try:
            async with asyncio.timeout(seconds):
                while True:
                    seen = await self.get(kind, name, namespace)
                    if met(seen):
                        return seen
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise AssertionError(f"{kind} {namespace}/{name}: not so within {seconds:g} s, last seen: {seen}") from None
