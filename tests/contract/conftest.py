"""Each test of this suite runs on the embedded API server, and on a real one where it is marked e2e.

The real one is started from the binaries of provider `local` (`KUBEBUILDER_ASSETS`, or built), once a run.
`GATELIFT_CONTRACT_KUBECONFIG` names a cluster of one's own instead.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from gatelift_sandbox.provider import NodeShape, ProviderSettings, load
from support.servers.contract_api import Api

EMBEDDED, REAL = "embedded", "real"


@pytest.fixture(scope="session")
def real_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the kubeconfig of a real control plane without nodes."""
    given = os.environ.get("GATELIFT_CONTRACT_KUBECONFIG")
    if given:
        yield Path(given).read_text()
        return
    home = tmp_path_factory.mktemp("contract")
    provider = load("local", ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=NodeShape(count=0)))
    (cluster,) = asyncio.run(provider.up(["contract"]))
    yield cluster.kubeconfig.read_text()
    asyncio.run(provider.down())


SERVERS = [EMBEDDED, pytest.param(REAL, marks=[pytest.mark.e2e, pytest.mark.timeout(600)])]
if os.environ.get("GATELIFT_E2E_PROVIDER", "local") != "local":
    SERVERS.pop()  # somebody asked for another provider, and may not have the binaries of this one


@pytest.fixture(params=SERVERS)
def real(request: pytest.FixtureRequest) -> str | None:
    """Return the kubeconfig of the real control plane, None where the embedded one is meant."""
    return str(request.getfixturevalue("real_kubeconfig")) if request.param == REAL else None


@pytest.fixture
async def api(real: str | None) -> AsyncIterator[Api]:
    """Give an API server to its administrator."""
    if real is not None:
        async with Api.open(real) as api:
            yield api
        return
    cluster = EmbeddedCluster("contract")
    await cluster.start()
    try:
        async with Api.open(cluster.kubeconfig()) as api:
            yield api
    finally:
        await cluster.stop()
