"""Sessions on the manager's edge: honest agents, agents that write what a test says, proof that a session works."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gatelift.core.clusters.link_values import Reported
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Cordon, GatesLifted
from support.until import until
from support.wire.edge import Edge, Identity, RawStream, WireAgent


@asynccontextmanager
async def raw(edge: Edge, identity: Identity | None = None, **of: str) -> AsyncIterator[RawStream]:
    """Open a stream that writes what the test says; by default with the identity of w1."""
    shown = identity or edge.identities[of.get("cluster", "w1")]
    stream = RawStream(edge.server.port, shown, edge.state.bundle)
    try:
        yield stream
    finally:
        await stream.close()


@asynccontextmanager
async def agent(edge: Edge, cluster: str = "w1", instance: str = "agent") -> AsyncIterator[WireAgent]:
    """Connect an honest agent with an open session."""
    made = WireAgent(edge.server.port, edge.identities[cluster], instance)
    try:
        yield await made.connect()
    finally:
        await made.close()


async def answers(edge: Edge, other: WireAgent, cluster: str) -> None:
    """Prove that a session works both ways."""
    await until(lambda: edge.is_open(cluster), "the manager's end is open too")
    reports, commands = len(edge.told(Reported, cluster)), len(other.delivered)
    other.report(GatesLifted(key=PlacementKey("uid-of-" + cluster, 1)))
    edge.send(cluster, Cordon(cordoned=True))
    await until(lambda: len(edge.told(Reported, cluster)) > reports and len(other.delivered) > commands, "both ways")
