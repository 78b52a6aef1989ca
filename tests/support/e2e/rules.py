"""What tests of deploy/ on a real API server share: a control plane with parts of it, and words that refuse."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_sandbox.applying import apply
from gatelift_sandbox.installation import Installation
from gatelift_sandbox.processes import LocalProvider
from gatelift_sandbox.provider import Cluster, NodeShape, ProviderSettings
from support.e2e.sandbox_kubectl import POLL_SECONDS, WAIT_SECONDS, Kubectl, KubectlError
from support.manager.kind_objects import condition
from support.servers.contract_api import Api

GATELIFT = ("--as-group=system:serviceaccounts", "--as-group=system:serviceaccounts:gatelift-system")
"""Groups of our ServiceAccounts, for who is impersonated."""
MANAGER = "system:serviceaccount:gatelift-system:gatelift-manager"
AS_GATELIFT = ("--as=admin", "--as-group=system:masters", *GATELIFT)
"""An administrator whom policies take for one of ours: ServiceAccounts may not patch what they replace."""
KUEUE = "kueue.x-k8s.io/v1beta2"
RESERVED: dict[str, Any] = {
    "conditions": [condition("QuotaReserved"), condition("Admitted")],
    "admission": {"clusterQueue": "cq", "podSetAssignments": [{}]},
}
"""Status of a Workload that has its quota and is admitted."""


def control_plane(home: Path, manifests: Iterable[dict[str, Any]]) -> Iterator[Cluster]:
    """Bring a control plane up with these objects; it is gone when the iterator is closed."""
    provider = LocalProvider(
        ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=NodeShape(), audit=False)
    )

    async def up() -> Cluster:
        made = (await provider.up(["deploy"]))[0]
        async with Client.connect(await from_kubeconfig(str(made.kubeconfig))) as client:
            await apply(client, list(manifests))
        return made

    try:
        yield asyncio.run(up())
    finally:
        asyncio.run(provider.down())


async def refused(kubectl: Kubectl, text: str, *arguments: str, manifest: dict[str, Any] | None = None) -> None:
    """Check that something is refused with this text: as soon as the API server has taken up the policies."""
    said = "nothing was asked"

    async def tried() -> str:
        nonlocal said
        try:
            said = await kubectl(*arguments, "--dry-run=server", manifest=manifest)
        except KubectlError as error:
            said = str(error)
            return said
        return ""

    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while re.search(text, await tried()) is None:  # noqa: ASYNC110 - it does not tell when it has
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not refused with {text!r} within {WAIT_SECONDS:g} s, last said: {said}") from None
    with pytest.raises(KubectlError, match=text):
        await kubectl(*arguments, manifest=manifest)


def a_workload(name: str = "w", **spec: Any) -> dict[str, Any]:
    """Return a Workload that asks for one pod."""
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "unheardOf": {"a": 1}}}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default", "annotations": {"gatelift.dev/epoch": "1"}},
        "spec": {"podSets": [{"template": template}], **spec},
    }


def status_of(name: str) -> tuple[str, ...]:
    """Return the words that patch the status of a Workload."""
    return ("patch", "workload", name, "--subresource=status", "--type=merge", "-p")


@asynccontextmanager
async def webhooks_alone(home: Path, name: str) -> AsyncIterator[tuple[Installation, Cluster, Api]]:
    """Raise a management cluster of real processes with all that is installed there and the webhooks: no manager."""
    settings = ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=NodeShape(count=0), audit=False)
    provider = LocalProvider(settings)
    (cluster,) = await provider.up([name])
    installation = Installation(folder=home / "installation", management=cluster, workers=[])
    try:
        await installation.install()
        await installation.start_webhooks()
        async with Api.open(cluster.kubeconfig.read_text()) as api:
            yield installation, cluster, api
    finally:
        await installation.stop()
        await provider.down()
