"""Which replica acts: the agent's Lease in its own namespace, told to the core as events (rule R8).

How long a predecessor's writes may still be under way is arithmetic: it trusted itself for `renew_seconds` after a
renewal was sent, its writes take `WRITE_SECONDS_MAX` at most, and we waited `lease_seconds` before we took over. After
a clean stop nothing is under way: the Lease is given back when the last write was answered. A write that lands after
its limit makes nothing untrue: what it creates is held back, and what it lets go is known here or was written to since
(decision 28). A Lease that is not there says nothing: a person may have deleted it while a predecessor held it, and
took the knowledge of that along.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gatelift_agent.core.values.events import AgentLeadershipExtended, AgentLeadershipGained, Event
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.election import ElectionTimes, LeadStanding
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from gatelift_kube.objects.core import Lease
from gatelift_kube.process.clock import wall
from gatelift_kube.values.resources import LEASE, ObjectKey, ObjectRef

EXTEND_SECONDS = 1.0
"""How often the core is told how long the lead lasts: a tenth of the shortest lease in use."""

SETTLE_MARGIN_SECONDS = 1.0
"""For clocks that do not run equally fast over the half minute in question."""

UNKNOWN_TERM = -1


def settle_seconds(times: ElectionTimes) -> float:
    """Return how long after a takeover a predecessor may still wait for a write."""
    return max(0.0, times.renew_seconds + WRITE_SECONDS_MAX - times.lease_seconds) + SETTLE_MARGIN_SECONDS


async def vacant_term(client: Client, namespace: str, name: str) -> int:
    """Return the term that we get if the Lease was given back and nobody is faster; UNKNOWN_TERM otherwise."""
    try:
        served = await client.get(ObjectRef(LEASE, ObjectKey(namespace, name)))
    except KubeError:
        return UNKNOWN_TERM
    lease = served.object
    if not isinstance(lease, Lease) or lease.spec.holder_identity:
        return UNKNOWN_TERM
    return (lease.spec.lease_transitions or 0) + 1


def gained(term: int, free_term: int, times: ElectionTimes, mark: int = 0) -> AgentLeadershipGained:
    """Return the event of a takeover; `free_term` as `vacant_term` said before the candidacy began."""
    settle = 0.0 if term == free_term else settle_seconds(times)
    return AgentLeadershipGained(term=term, settle_seconds=settle, mark=mark, unix=wall())


def found_mark(standing: LeadStanding) -> int:
    """Return what the Lease counted when we took it over, 0 while it is not ours."""
    return standing.tenures[-1].found if standing.tenures else 0


async def keep_told(
    post: Callable[[Event], None],
    valid_until: Callable[[], float],
    leads: Callable[[], bool],
    mark: Callable[[], int] = int,
) -> None:
    """Tell the core again and again until when this replica leads, and what its Lease counts (0: it does not)."""
    while True:
        await asyncio.sleep(EXTEND_SECONDS)
        if leads():
            post(AgentLeadershipExtended(valid_until=valid_until(), mark=mark()))
