"""Lists of a Job's pods: several at once, each answered; and writes that were not done are asked for again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, MutableMapping
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
import structlog

from gatelift_agent.adapters import kubernetes
from gatelift_agent.adapters.kubernetes import WorkerApi
from gatelift_agent.core.values.commands import ReadNamespace, ReadPods
from gatelift_agent.core.values.events import (
    Event,
    NamespaceNotRead,
    NamespaceRead,
    NamespaceRefused,
    NamespaceSynced,
    PodsNotRead,
    PodsRead,
)
from gatelift_kube.api import reads
from gatelift_kube.api.client import Client
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.budget import READS_AT_ONCE, budget
from gatelift_kube.deciding.retry import RetryPolicy
from gatelift_kube.deciding.writes import Create, ObjectSeen, Patch, Synced, WriteError, WriteFailed
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD
from gatelift_wire.values import messages as m
from support.agent.stage import Stage
from support.agent.values import KEY
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of
from support.servers.reads import answered_beside_slow_ones
from support.until import until

QUICK = RetryPolicy(tries=2, first_seconds=0.001, max_seconds=0.01)
READ_ID = 7
ANSWERS = PodsRead | PodsNotRead | NamespaceRead | NamespaceNotRead


class Reading:
    """The agent's API side, and what it posted."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server = server
        self.client = client
        self.posted: list[Event] = []
        self.failed: list[str] = []
        self.supervisor = Supervisor(lambda task, _error: self.failed.append(task))
        self.api = WorkerApi(
            client,
            self.posted.append,
            self.supervisor,
            own_namespace="gatelift-system",
            limits=budget(),
            clock=monotonic,
            instance="i",
        )

    def ask(self, read_id: int, namespace: str) -> None:
        self.api.read(ReadPods(read_id=read_id, namespace=namespace, labels=(("a", "b"),)))

    def answered(self) -> dict[int, Event]:
        return {event.read_id: event for event in self.posted if isinstance(event, ANSWERS)}


@pytest_asyncio.fixture
async def reading(server: FakeApiServer) -> AsyncIterator[Reading]:
    async with Client(HttpTransport(server.config), policy=QUICK, rng=random.Random(1)) as client:  # noqa: S311 - a seed makes a test repeatable
        made = Reading(server, client)
        made.api.start()
        yield made
        await made.supervisor.stop()
    assert made.failed == []


async def test_a_list_that_hangs_holds_up_no_other(reading: Reading) -> None:
    quick = await answered_beside_slow_ones(reading, READS_AT_ONCE)
    read = [event for event in quick if isinstance(event, PodsRead)]
    assert [[pod.metadata.name for pod in event.pods] for event in read] == [["p"]] * len(quick)


async def test_not_more_lists_are_under_way_than_may_be(reading: Reading) -> None:
    reading.server.fault("GET", "namespaces/slow/", times=999, hang=True)
    for number in range(3 * READS_AT_ONCE):
        reading.ask(number, "slow")
    await until(lambda: len(reading.server.asked("GET", "slow")) == READS_AT_ONCE, "all turns are taken")
    reading.ask(100, "quick")
    reading.server.put(POD, "p", "beside")
    await reading.client.get(ref_of(POD, "p", "beside"))
    assert reading.server.asked("GET", "quick") == [], "another request came and went"
    assert len(reading.server.asked("GET", "slow")) == READS_AT_ONCE


async def test_a_pod_that_cannot_be_read_is_not_absent(reading: Reading) -> None:
    reading.server.put(POD, "p", "ns", spec={"containers": "none"})
    reading.ask(READ_ID, "ns")
    await until(reading.answered, "the list is answered")
    assert isinstance(reading.answered()[READ_ID], PodsNotRead)


async def test_a_read_that_finds_no_room_is_answered(reading: Reading) -> None:
    reading.server.fault("GET", "namespaces/slow/", times=9999, hang=True)
    for number in range(reads.READS_MAX + 1):
        reading.ask(number, "slow")
    refused = reading.answered()[reads.READS_MAX]
    assert isinstance(refused, PodsNotRead)
    assert "wait already" in refused.message


@pytest.fixture
def forbids_nodes(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[MutableMapping[str, Any]]]:
    """Let an API server keep nodes from the agent at first; yields what is logged."""
    monkeypatch.setattr(kubernetes, "OPTIONAL_RETRY_SECONDS", 0.001)
    server.fault("GET", "/nodes", times=3, status=403, body=status_of(403, "Forbidden", "nodes is forbidden"))
    with structlog.testing.capture_logs() as lines:
        yield lines


async def test_hd_194_who_may_not_read_nodes_says_so_and_reads_them_once_it_may(
    forbids_nodes: list[MutableMapping[str, Any]], reading: Reading
) -> None:
    """HD-194: nobody can prove then that what vanished has stopped, so it stays charged, and somebody has to know."""
    task = asyncio.ensure_future(
        reading.api._when_served(Reflector(reading.client, NODE, reading.posted.append), empty_without=False)
    )
    await until(lambda: Synced(NODE) in reading.posted, "nodes are listed", 10.0)
    task.cancel()
    assert [line for line in forbids_nodes if "nodes is forbidden" in str(line.get("problem"))]


def _has(reading: Reading, number: int) -> bool:
    return number in reading.answered()


async def test_a_namespace_is_absent_only_by_the_api_servers_own_word(reading: Reading) -> None:
    """HD-42, HD-46: a 403, and the 404 of something that stands before the API server, are no answer."""
    gone = status_of(404, "NotFound", 'namespaces "ns" not found', kind="namespaces")
    answers = {1: (404, gone), 2: (403, status_of(403, "Forbidden")), 3: (404, {}), 4: (401, {})}
    for number, (status, body) in answers.items():
        reading.server.fault("GET", "namespaces/ns", times=9, status=status, body=body)
        reading.api.read(ReadNamespace(read_id=number, name="ns"))
        await until(partial(_has, reading, number), f"read {number} is answered")
        reading.server.faults.clear()
    told = reading.answered()
    assert told[1] == NamespaceRead(read_id=1, namespace=None)
    assert all(isinstance(told[number], NamespaceNotRead) for number in (2, 3, 4))


async def test_a_namespace_that_is_there_is_read(reading: Reading) -> None:
    reading.server.put(NAMESPACE, "ns", "")
    reading.api.read(ReadNamespace(read_id=READ_ID, name="ns"))
    await until(reading.answered, "the read is answered")
    found = reading.answered()[READ_ID]
    assert isinstance(found, NamespaceRead)
    assert found.namespace is not None
    assert found.namespace.metadata.name == "ns"


def _not_done(stage: Stage, kind: type[Create | Patch]) -> None:
    """Let the API server turn the first write of a kind away."""
    stage.hold = lambda write: isinstance(write, kind) and write.ref.resource == POD
    stage.place()
    [held] = stage.held
    stage.held.clear()
    stage.hold = lambda _write: False
    failed = WriteFailed(write_id=held.command.write_id, error=WriteError.NOT_DONE, message="Pod: slow down")
    stage.post(failed)
    stage.pass_seconds(1)


def test_a_create_that_was_not_done_is_asked_for_again_without_looking_for_what_it_made() -> None:
    stage = Stage()
    stage.start()
    _not_done(stage, Create)
    assert stage.state() == "Running"
    assert [type(write) for write in stage.written(object, POD)] == [Create, Create, Patch], "no probe"
    assert stage.peer.of(m.Refused) == []


def test_a_lift_that_was_not_done_is_asked_for_again() -> None:
    stage = Stage()
    stage.start()
    _not_done(stage, Patch)
    assert [lifted.key for lifted in stage.peer.of(m.GatesLifted)] == [KEY]


async def test_hd_40_what_lost_its_label_is_listed_once_with_its_namespace_before_that_counts_as_known(
    reading: Reading,
) -> None:
    reading.server.put(POD, "tenant", "n")
    reading.server.put(POD, "ours", "n", metadata={"finalizers": ["gatelift.dev/report"]})
    reading.server.put(JOB, "marked", "n", metadata={"annotations": {"gatelift.dev/placed-as": "home/w-1/1"}})
    reading.api.watch_namespaces(["n"])
    await until(lambda: NamespaceSynced(namespace="n") in reading.posted, "the namespace is listed")
    before = reading.posted[: reading.posted.index(NamespaceSynced(namespace="n"))]
    seen = [event.object.metadata.name for event in before if isinstance(event, ObjectSeen)]
    assert sorted(seen) == ["marked", "marked", "ours", "ours", "tenant"], "by a watch of each kind, and by this list"
    asked = [each for each in reading.server.seen if each.query.get("labelSelector") == "!gatelift.dev/origin"]
    assert [each.path.rpartition("/")[2] for each in asked] == ["pods", "jobs"]
    assert all("watch" not in each.query for each in asked)


async def test_hd_40_a_list_of_what_is_hidden_that_fails_is_asked_for_again(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "HIDDEN_RETRY_SECONDS", 0.001)
    reading.server.fault("GET", "namespaces/n/", times=12, status=403)
    reading.api.watch_namespaces(["n"])
    await until(lambda: NamespaceSynced(namespace="n") in reading.posted, "the namespace is listed")


async def test_hd_300_a_namespace_that_may_not_be_listed_is_told_and_asked_again(reading: Reading) -> None:
    reading.server.fault("GET", "namespaces/n/jobs", times=2, status=403)
    reading.api.watch_namespaces(["n", "other"])
    await until(lambda: NamespaceSynced(namespace="n") in reading.posted, "the namespace is listed after all")
    refused = [event for event in reading.posted if isinstance(event, NamespaceRefused)]
    assert [event.namespace for event in refused] == ["n", "n"]
    assert refused[0].message.startswith("403")


async def test_hd_300_an_api_server_that_fails_does_not_say_that_a_namespace_may_not_be_listed(
    reading: Reading,
) -> None:
    reading.server.fault("GET", "namespaces/n/jobs", times=6, status=500)
    reading.api.watch_namespaces(["n"])
    await until(lambda: NamespaceSynced(namespace="n") in reading.posted, "the namespace is listed after all")
    assert not [event for event in reading.posted if isinstance(event, NamespaceRefused)]
