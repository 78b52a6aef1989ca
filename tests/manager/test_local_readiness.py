"""What the agent of `local` lacks, as the manager's readiness says it (IS-5)."""

from __future__ import annotations

import pytest

from gatelift.adapters.local_stream import LocalStream
from gatelift_agent.local_agent import start_local_agent
from gatelift_kube.api.client import Client
from gatelift_kube.process.clock import monotonic
from gatelift_kube.values.resources import JOB, POD, Resource
from support.servers.fake_apiserver import FakeApiServer, status_of
from support.until import until


@pytest.mark.parametrize("resource", [POD, JOB], ids=lambda resource: resource.plural)
async def test_is_5_what_it_cannot_list_is_missing_until_it_can(
    server: FakeApiServer, client: Client, resource: Resource
) -> None:
    server.fault("GET", resource.plural, times=10_000, status=403, body=status_of(403, "Forbidden"))
    agent = await start_local_agent(
        client,
        LocalStream(lambda _event: None),
        instance="local-1",
        term=1,
        leads_until=lambda: monotonic() + 60.0,
        settle_seconds=0.0,
    )
    try:
        await until(lambda: len(server.asked("GET", resource.plural)) >= 2, "it has been refused")
        assert agent.missing == "not listed yet: what the agent of local needs"
        server.faults.clear()
        await until(lambda: agent.missing == "", "it is listed")
    finally:
        await agent.stop()
