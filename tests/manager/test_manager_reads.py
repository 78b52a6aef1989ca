"""The manager's API side: several reads at once, and what finds no room pauses nothing and is said."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import structlog

from gatelift.adapters.kubernetes import ManagementApi, WriterNames
from gatelift.core.api import events
from gatelift.core.api.commands import Read, ReadAll
from gatelift.core.state.api_requests import UNSENT_SECONDS
from gatelift_kube.api import reads
from gatelift_kube.api.client import Client
from gatelift_kube.api.executor import CAPACITY
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.budget import READS_AT_ONCE, budget
from gatelift_kube.deciding.retry import RetryPolicy
from gatelift_kube.deciding.writes import Patch, WriteError, WriteFailed
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit
from support.manager.builders import a_pod, a_setting
from support.manager.world import World, a_world
from support.servers.fake_apiserver import FakeApiServer
from support.servers.reads import answered_beside_slow_ones
from support.until import until

QUICK = RetryPolicy(tries=2, first_seconds=0.001, max_seconds=0.01)


class Reading:
    """The manager's API side, of which only the reads run, and what it posted."""

    def __init__(self, server: FakeApiServer, client: Client) -> None:
        self.server, self.client = server, client
        self.posted: list[events.Event] = []
        self.api = ManagementApi(client, self.posted.append, budget(), WriterNames(controller="c", instance="i"), bool)

    def ask(self, read_id: int, namespace: str) -> None:
        self.api.read(Read(read_id=read_id, ref=ObjectRef(POD, ObjectKey(namespace, "p"))))

    def answered(self) -> dict[int, events.Event]:
        kinds = events.ReadDone | events.ReadFailed
        return {event.read_id: event for event in self.posted if isinstance(event, kinds)}


@pytest_asyncio.fixture
async def reading() -> AsyncIterator[Reading]:
    server = FakeApiServer()
    await server.start()
    failed: list[str] = []
    supervisor = Supervisor(lambda task, _error: failed.append(task))
    async with Client(HttpTransport(server.config), policy=QUICK, rng=random.Random(1)) as client:  # noqa: S311 - a seed makes a test repeatable
        made = Reading(server, client)
        made.api.start(supervisor)
        yield made
        await supervisor.stop()
    await server.stop()
    assert failed == []


async def test_a_read_that_hangs_holds_up_no_other(reading: Reading) -> None:
    quick = await answered_beside_slow_ones(reading, READS_AT_ONCE)
    assert all(isinstance(event, events.ReadDone) for event in quick)


async def test_hd_148_a_read_of_what_no_object_is_called_is_answered_and_ends_nothing(reading: Reading) -> None:
    """More of them than there are who read; `..` came from a worker's inventory, as a namespace."""
    for read_id in range(1, 3 * READS_AT_ONCE):
        reading.api.read(ReadAll(read_id=read_id, resource=WORKLOAD, namespace=".."))
    reading.server.put(POD, "p", "ns")
    reading.ask(99, "ns")
    await until(lambda: len(reading.answered()) == 3 * READS_AT_ONCE, seconds=20.0)
    answered = reading.answered()
    assert isinstance(answered.pop(99), events.ReadDone)
    assert all(
        "'..' is not a name" in each.message for each in answered.values() if isinstance(each, events.ReadFailed)
    )
    assert {type(each) for each in answered.values()} == {events.ReadFailed}


async def test_hd_148_a_read_that_raises_is_answered_and_ends_no_other(
    reading: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def defective(ref: ObjectRef, **_: object) -> Served:
        raise ZeroDivisionError(f"of {ref}")

    monkeypatch.setattr(reading.client, "get", defective)
    with structlog.testing.capture_logs() as said:
        for read_id in range(1, 3 * READS_AT_ONCE):
            reading.ask(read_id, "ns")
        await until(lambda: len(reading.answered()) == 3 * READS_AT_ONCE - 1, seconds=20.0)
    assert all("ZeroDivisionError" in each.message for each in reading.posted if isinstance(each, events.ReadFailed))
    assert {each["event"] for each in said} == {"a read was given up, others go on"}


async def test_a_read_that_finds_no_room_says_that_nobody_was_asked(reading: Reading) -> None:
    reading.server.fault("GET", "namespaces/slow/", times=9999, hang=True)
    for number in range(reads.READS_MAX + 1):
        reading.ask(number, "slow")
    refused = reading.answered()[reads.READS_MAX]
    assert isinstance(refused, events.ReadFailed)
    assert not refused.asked
    assert "wait already" in refused.message


async def test_writes_that_find_no_room_are_one_line_in_the_log() -> None:
    server = FakeApiServer()
    await server.start()
    async with Client(HttpTransport(server.config)) as client:
        made = Reading(server, client)  # nothing of it runs: what it takes waits
        with structlog.testing.capture_logs() as lines:
            for number in range(CAPACITY + 3):
                ref = ObjectRef(POD, ObjectKey("ns", f"p{number}"))
                made.api.write(Patch(write_id=number, ref=ref, body=b"{}"))
    await server.stop()
    assert [event.write_id for event in made.posted if isinstance(event, WriteFailed)] == [
        CAPACITY,
        CAPACITY + 1,
        CAPACITY + 2,
    ]
    told = [line for line in lines if line["event"] == "write not sent"]
    assert [(line["log_level"], str(CAPACITY) in line["why"]) for line in told] == [("warning", True)]


def in_doubt(*, asked: bool) -> World:
    """Return a world where answers to writes came to nothing, and for half a minute no read was carried out either."""
    world = a_world(a_setting())
    world.fail = lambda command: WriteError.UNKNOWN if isinstance(command, Patch) else None
    world.read_fails = lambda command: events.ReadFailed(
        read_id=command.read_id, ref=command.ref, message="no", asked=asked
    )
    world.api.apply(a_pod().document())
    world.advance(30.0)
    assert not world.messages(Commit)
    world.fail = world.read_fails = None
    assert any("it may be done, so it is read" in note.text for note in world.notes)
    return world


def test_an_object_whose_read_found_no_room_is_read_as_soon_as_there_is_some() -> None:
    world = in_doubt(asked=False)
    world.advance(2 * UNSENT_SECONDS)
    assert world.messages(Commit)


def test_an_object_that_could_not_be_read_is_left_alone_for_a_while() -> None:
    world = in_doubt(asked=True)
    assert any("no; asked again in 16 s" in note.text for note in world.notes), "the log says why nothing goes on"
    world.advance(2 * UNSENT_SECONDS)
    assert not world.messages(Commit)
    world.advance(60.0)
    assert world.messages(Commit)
