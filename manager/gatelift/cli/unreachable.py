"""What `gatelift explain` tells of placed work whose cluster is not heard of, and of dispatch that is halted.

Since when, what happens, the way out. Neighbours: `explain` prints it, `gatelift.core.clusters.cluster_facts` and
`recovery_values` have what the manager wrote.
"""

from __future__ import annotations

import datetime as dt

from gatelift.cli.render import age
from gatelift.core.clusters.cluster_facts import CONNECTED, LOST
from gatelift.core.state.recovery_values import told
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError, NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef

_WAITS = "policy wait: nothing is moved, so nothing runs twice; "
_PLACED = _WAITS + "what runs there runs on, stays charged, and goes on when the cluster is back"
_ENDING = _WAITS + "it stays charged until the cluster is back and says that it has stopped"


async def unreachable(client: Client, name: str, now: dt.datetime, *, ending: bool) -> tuple[str, ...]:
    """Return what is told of the cluster that holds a placement, line by line; nothing while it is connected.

    `ending`: the placement was evicted or deleted. What the caller may not see is said.
    """
    try:
        found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))).object
    except NotFoundError:
        gone = f"there is no WorkerCluster {name} any more: 'gatelift cluster add {name}' takes it in again"
        return gone, _what_happens(ending=ending)
    except ForbiddenError:
        return (f"whether it is connected is not seen: you may not read WorkerCluster {name}",)
    return unreachable_of(found, now, ending=ending) if isinstance(found, WorkerCluster) else ()


async def halted(client: Client) -> str:
    """Return why nothing at all is placed, "" where the manager has written no reason or the caller may not read it."""
    try:
        found = (await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", LOCAL_CLUSTER)))).object
    except (NotFoundError, ForbiddenError):
        return ""
    read = told(found) if isinstance(found, WorkerCluster) else None
    if read is None:
        return ""
    return read.finding.why if read.finding is not None else read.waits


def unreachable_of(found: WorkerCluster, now: dt.datetime, *, ending: bool) -> tuple[str, ...]:
    """Return what is told of a cluster as its WorkerCluster shows it at a moment."""
    name, status = found.metadata.name, found.status
    connected = conditions.find(status.conditions, CONNECTED)
    if connected is not None and connected.status == conditions.TRUE:
        return ()
    since = age(connected.last_transition_time, now) if connected is not None else ""
    heard = f"; last recorded sign of it {age(status.last_seen, now)} ago" if status.last_seen else ""
    if connected is None or connected.reason != LOST:
        if not status.last_seen and not status.session:
            return "not connected: no agent of it has connected yet", _what_happens(ending=ending)
        for_ = f" for {since}" if since else ""
        return (
            f"not connected{for_}: it has no session, and counts as lost when its lease has run out{heard}",
            _what_happens(ending=ending),
        )
    if status.fenced_through_session >= status.session > 0:
        return (f"lost for {since}, declared fenced by {status.fenced_by}: its work is dispatched anew",)
    return f"lost for {since}: its lease ran out{heard}", _what_happens(ending=ending), _way_out(name)


def _what_happens(*, ending: bool) -> str:
    return _ENDING if ending else _PLACED


def _way_out(name: str) -> str:
    if name == LOCAL_CLUSTER:
        return "its agent runs in the manager, whose log says why"
    return f"if it never comes back: make sure that nothing of it runs, then 'gatelift cluster fenced {name}'"
