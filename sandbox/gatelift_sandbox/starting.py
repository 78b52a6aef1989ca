"""What all providers do alike: names are checked, all clusters start or none is left, a cluster is waited for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from gatelift_sandbox.errors import AlreadyThereError, SandboxError
from gatelift_sandbox.probes import Probe
from gatelift_sandbox.provider import Cluster

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def check_names(names: Sequence[str], count_max: int) -> None:
    """Refuse names that cannot be file and node names, doubles, and more clusters than the machine bears."""
    for name in names:
        if NAME.fullmatch(name) is None:
            raise SandboxError(f"cluster name {name!r}: use at most 40 of a-z, 0-9 and '-', not first or last")
    if len(set(names)) != len(names):
        raise SandboxError(f"cluster names {', '.join(names)}: each may be given once")
    if len(names) > count_max:
        raise SandboxError(f"{len(names)} clusters asked for: {count_max} at most on one machine")


async def all_or_none(
    names: Sequence[str],
    start: Callable[[str], Awaitable[Cluster]],
    end: Callable[[Sequence[str]], Awaitable[list[str]]],
) -> list[Cluster]:
    """Start all at the same time; if one fails or the caller is cancelled, end those that were started, and say why.

    A name whose folder could not be claimed is somebody else's cluster and is left alone.
    """
    claimed: list[str] = []

    async def one(name: str) -> Cluster | BaseException:
        try:
            cluster = await start(name)
        except AlreadyThereError as failure:
            return failure
        except BaseException as failure:  # noqa: BLE001 (told below, after the others have been ended)
            claimed.append(name)
            return failure
        claimed.append(name)
        return cluster

    try:
        results = await asyncio.gather(*(one(name) for name in names))
    except asyncio.CancelledError:  # each `one` has ended by now
        await end(claimed)
        raise
    for result in results:
        if isinstance(result, BaseException):
            await end(claimed)
            raise result
    return [result for result in results if isinstance(result, Cluster)]


def node_is_usable(node: dict[str, Any]) -> bool:
    """Return whether pods can be bound to a node: Ready, and the taint for not being so has been taken off."""
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    taints = node.get("spec", {}).get("taints", [])
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)


async def usable(kubeconfig: Path, nodes: int, seconds: float, failed: Callable[[], str] = lambda: "") -> None:
    """Wait until a pod can be created (its ServiceAccount is there) and this many nodes take pods.

    StartError after `seconds` for each of the two, or as soon as `failed` names a reason.
    """
    async with Probe(kubeconfig) as probe:
        await probe.wait("/api/v1/namespaces/default/serviceaccounts/default", bool, seconds, failed)
        if nodes:
            await probe.wait(
                "/api/v1/nodes", lambda found: sum(map(node_is_usable, found["items"])) >= nodes, seconds, failed
            )
