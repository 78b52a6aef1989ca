"""One cluster with Gatelift installed on it and nothing started: what the benches without a fleet are measured on.

Webhooks are taken off, since objects arrive already mutated. Neighbours: `admission_site`, `fanout` and `memory`.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import without_webhooks
from bench.fleet import elastic_daemons, free_port
from gatelift_kube.api.client import Client
from gatelift_sandbox.installation import Installation
from gatelift_sandbox.provider import Cluster, NodeShape, ProviderSettings, load


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCluster:
    """The cluster, what is installed on it, a client with all rights, and where the manager listens.

    `home` is a folder that goes with the cluster; `state` in it is where the sandbox keeps its processes.
    """

    home: Path
    cluster: Cluster
    installation: Installation
    client: Client
    manager: str

    @property
    def state(self) -> Path:
        """Return the sandbox's folder."""
        return self.home / "state"


@asynccontextmanager
async def one_cluster(
    provider_name: str,
    namespaces: Sequence[str],
    settings: Mapping[str, Any] | None = None,
    *,
    name: str = "mgmt",
    with_agent: bool = False,
    elastic: bool = False,
) -> AsyncIterator[OneCluster]:
    """Raise it; end and remove all of it at the end. `settings` are further ones of the manager.

    `with_agent` makes the management cluster a worker as well; `elastic` has the daemons serve elastic Jobs.
    """
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatelift-bench-")))
        provider = load(
            provider_name,
            ProviderSettings(home=home / "state", kubeconfigs=home / "kubeconfigs", nodes=NodeShape(count=0)),
        )
        stack.push_async_callback(provider.down)
        (cluster,) = await provider.up([name])
        manager = f"127.0.0.1:{free_port()}"
        installation = Installation(
            folder=home / "installation",
            management=cluster,
            workers=[cluster] if with_agent else [],
            namespaces=namespaces,
            agent_settings={name: {"manager": manager}} if with_agent else {},
            manager_settings={"gatelift": {"listen": manager}, **(settings or {})},
            **elastic_daemons(on=elastic),
        )
        stack.push_async_callback(installation.stop)
        await installation.install()
        client = await stack.enter_async_context(await installation.admin(cluster))
        await without_webhooks.remove(client)
        yield OneCluster(home=home, cluster=cluster, installation=installation, client=client, manager=manager)
