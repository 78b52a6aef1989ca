"""What several tests of the manager's edges stand on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatelift_kube.api.config import ClusterConfig, from_kubeconfig
from gatelift_sandbox.installation import Installation
from gatelift_sandbox.provider import NodeShape, ProviderSettings, load
from support.wire.edge import Edge


@pytest.fixture
async def edge() -> AsyncIterator[Edge]:
    made = Edge("w1", "w2")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[tuple[Installation, ClusterConfig]]:
    """Raise a management cluster with our manifests, reached as the manager's ServiceAccount."""
    provider = load("embedded", ProviderSettings(home=tmp_path, kubeconfigs=tmp_path / "kc", nodes=NodeShape(count=0)))
    (management,) = await provider.up(["mgmt"])
    try:
        installation = Installation(folder=tmp_path / "installation", management=management, workers=[])
        await installation.install()
        yield installation, await from_kubeconfig(str(installation.kubeconfig(management, "gatelift-manager")))
    finally:
        await provider.down()
