"""IS-50: how nodes and pods of the whole cluster are watched for their sums, and what a missing right does."""

from __future__ import annotations

import random
from typing import Any

from gatelift_agent.adapters.kubernetes import WorkerApi
from gatelift_agent.adapters.node_watch import RUNNING
from gatelift_agent.core.values.events import Event, RoomSeen
from gatelift_agent.core.values.node_room import RoomOfNodes
from gatelift_kube.api.client import Client
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.budget import budget
from gatelift_kube.deciding.retry import RetryPolicy
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import NODE, POD
from support.servers.fake_apiserver import FakeApiServer, status_of
from support.until import until

QUICK = RetryPolicy(tries=2, first_seconds=0.001, max_seconds=0.01)


async def _told(server: FakeApiServer, **settings: Any) -> list[Event]:
    """Return what an agent's API side has told when it has told of the nodes."""
    posted: list[Event] = []
    failed: list[str] = []
    supervisor = Supervisor(lambda task, _error: failed.append(task))
    async with Client(HttpTransport(server.config), policy=QUICK, rng=random.Random(1)) as client:  # noqa: S311 - a seed makes a test repeatable
        api = WorkerApi(
            client,
            posted.append,
            supervisor,
            own_namespace="gatelift-system",
            limits=budget(),
            clock=monotonic,
            instance="i",
            **settings,
        )
        api.watch_cluster()
        wanted = RoomSeen if settings.get("count_nodes") else ObjectSeen
        await until(lambda: [each for each in posted if isinstance(each, wanted)], "the nodes are told")
        api.stop_watching()
        await supervisor.stop()
    assert failed == []
    return posted


def _filled(server: FakeApiServer) -> None:
    status = {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
    server.put(NODE, "n1", "", status=status)
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    server.put(POD, "p", "anywhere", spec={"nodeName": "n1", "containers": [container]}, status={"phase": "Running"})


async def test_is_50_pods_of_all_namespaces_are_summed_and_none_of_them_is_told(server: FakeApiServer) -> None:
    _filled(server)
    told = await _told(server, count_nodes=True)
    (room,) = [each.room for each in told if isinstance(each, RoomSeen)]
    assert (room.whole, room.taken) == ((("cpu", 4000),), (("", (("cpu", 1000), ("pods", 1))),))
    seen = [each.resource for each in told if isinstance(each, ObjectSeen)]
    assert seen == [NODE]
    assert "spec.nodeName!=" in RUNNING.fields


async def test_is_50_an_agent_that_may_not_list_pods_says_so_and_knows_no_room(server: FakeApiServer) -> None:
    _filled(server)
    server.fault("GET", "/api/v1/pods", times=999, status=403, body=status_of(403, "Forbidden"))
    told = await _told(server, count_nodes=True)
    (room,) = [each.room for each in told if isinstance(each, RoomSeen)]
    assert room == RoomOfNodes(problem=room.problem)
    assert room.problem.startswith("pods: ")


async def test_is_50_who_lists_a_capacity_watches_no_pods_of_others(server: FakeApiServer) -> None:
    _filled(server)
    told = await _told(server)
    assert [each for each in told if isinstance(each, RoomSeen)] == []
    assert server.asked("GET", "/api/v1/pods") == []
