"""The gate before a gRPC server, over real sockets: what it passes on, and whom it keeps out of whose way."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import resource
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import structlog

from gatelift.adapters import gate as gates
from gatelift.adapters.gate import Gate, GateLimits, Visit
from gatelift.adapters.known_addresses import KNOWN_SECONDS, KnownAddresses
from support.until import until

HELLO = bytes([gates.HANDSHAKE_BYTE])
NOTHING_BYTES = 128 * 1024
HOST = "127.0.0.1"
DIALLED: list[asyncio.StreamWriter] = []
"""To be hung up at the end of a test."""
Stranger = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Inner:
    """The server behind the gate: keeps what it hears, in the order of the connections, and answers with the same."""

    def __init__(self) -> None:
        self.heard: list[bytearray] = []
        self.peers: list[str] = []
        self.ended = 0
        self.reads = asyncio.Event()
        self.reads.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard = bytearray()
        self.heard.append(heard)
        self.peers.append("ipv4:{}:{}".format(*writer.get_extra_info("peername")))
        with contextlib.suppress(ConnectionError):
            while True:
                await self.reads.wait()
                data = await reader.read(65536)
                if not data:
                    break
                heard += data
                writer.write(data)
                await writer.drain()
            writer.write(b"bye")
            await writer.drain()
        self.ended += 1
        writer.close()


@contextlib.asynccontextmanager
async def gated(
    connections: int = 100, unproven: int = 50, pace: float = 1000.0, bytes_max: int = 100_000_000
) -> AsyncIterator[tuple[Gate, Inner]]:
    inner = Inner()
    server = await asyncio.start_server(inner.serve, HOST, 0)
    gate = Gate(
        "test",
        GateLimits(
            connections_max=connections,
            unproven_max=unproven,
            pace=pace,
            unproven_bytes_max=NOTHING_BYTES,
            bytes_max=bytes_max,
        ),
        KnownAddresses(),
    )
    await gate.open(f"{HOST}:0", server.sockets[0].getsockname()[1])
    try:
        yield gate, inner
    finally:
        for writer in DIALLED:
            writer.transport.abort()
        DIALLED.clear()
        await gate.close()
        await until(lambda: inner.ended == len(inner.heard), "the server has let go of all")
        server.close()
        await asyncio.sleep(0)


async def dial(gate: Gate, data: bytes = HELLO, source: str = HOST) -> Stranger:
    reader, writer = await asyncio.open_connection(HOST, gate.port, local_addr=(source, 0))
    DIALLED.append(writer)
    writer.write(data)
    return reader, writer


async def ended(stranger: Stranger) -> bool:
    """Wait for the end of a connection."""
    with contextlib.suppress(ConnectionError):
        await stranger[0].read()
    return True


async def test_bytes_go_both_ways_and_an_end_is_passed_on_after_them() -> None:
    async with gated() as (gate, inner):
        reader, writer = await dial(gate, HELLO + b"x" * 100_000)
        writer.write_eof()
        assert await reader.read() == HELLO + b"x" * 100_000 + b"bye"
        writer.close()
        await until(lambda: gate.count == gate.places.count == inner.ended - 1 == 0, "nothing is left of it")


async def test_a_connection_that_breaks_breaks_at_the_other_end() -> None:
    async with gated() as (gate, inner):
        _, writer = await dial(gate)
        await until(lambda: inner.heard and inner.heard[0])
        writer.transport.abort()
        await until(lambda: inner.ended == 1 and gate.count == 0)


async def test_what_the_server_does_not_take_is_not_read() -> None:
    async with gated() as (gate, inner):
        _, writer = await dial(gate)
        await until(lambda: inner.peers)
        gate.proven(inner.peers[0], "w1")
        inner.reads.clear()
        sent = 0
        with contextlib.suppress(TimeoutError):
            while True:
                writer.write(b"x" * 1_000_000)
                sent += 1
                async with asyncio.timeout(1):
                    await writer.drain()
        assert sent < 40, "the kernel's buffers and the gate's: what is more stays with who sends it"
        writer.transport.abort()
        inner.reads.set()


async def test_is_13_who_says_nothing_or_no_handshake_never_reaches_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "FIRST_BYTES_SECONDS", 0.1)
    async with gated() as (gate, inner):
        silent = [await dial(gate, b"") for _ in range(5)]
        assert await ended(await dial(gate, b"GET / HTTP/1.1\r\n\r\n"))
        assert [await ended(one) for one in silent] == [True] * 5
        assert (inner.heard, gate.count) == ([], 0)


async def test_is_13_who_begins_and_proves_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "PROOF_SECONDS", 0.1)
    async with gated() as (gate, inner):
        one, other = await dial(gate), await dial(gate)
        await until(lambda: len(inner.peers) == 2)
        heard = await other[0].readexactly(1)
        gate.proven(inner.peers[1] if heard else "", "w1")
        left = next(each for each in (one, other) if each[1].get_extra_info("sockname")[1] != kept_port(gate))
        assert await ended(left)
        assert gate.count == 1


async def until_cut(writer: asyncio.StreamWriter, piece: bytes, most: int) -> int:
    """Send until the connection ends; return how many bytes were sent, `most` at most."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            writer.write(piece)
            await writer.drain()
            sent += len(piece)
    return sent


async def test_is_12_bytes_of_who_has_proven_nothing_and_that_come_to_nothing_are_bounded() -> None:
    async with gated() as (gate, inner):
        one = await dial(gate)
        await until_cut(one[1], bytes(10_000), 10_000_000)
        assert await ended(one)
        assert len(inner.heard[0]) <= NOTHING_BYTES
        assert gate.count == 0


async def test_is_12_bytes_of_all_who_have_proven_nothing_are_bounded_and_who_owes_most_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "UNPROVEN_BYTES_MAX", 160_000)
    async with gated() as (gate, inner):
        small, large, proven = [await dial(gate) for _ in range(3)]
        await until(lambda: len(inner.peers) == 3)
        for (reader, writer), count in ((small, 30_000), (large, 120_000), (proven, 120_000)):
            assert await reader.readexactly(1)
            if reader is proven[0]:
                port = writer.get_extra_info("sockname")[1]
                (visit,) = [each for each in gate._visits.values() if port_of(each) == port]
                gate.proven(f"ipv4:{HOST}:{visit.port}", "w1")
            writer.write(bytes(count))
            await reader.readexactly(count)
        assert gate.count == 3, "what has proven something does not count"
        small[1].write(bytes(15_000))
        assert await ended(large)
        assert await small[0].readexactly(15_000)
        assert gate.count == 2
        small[1].transport.abort()
        await until(lambda: gate.count == 1)
        assert gate._unproven_owed == 0, "who has left owes nothing"


async def test_is_12_a_request_that_is_whole_pays_for_the_bytes_before_it() -> None:
    async with gated() as (gate, inner):
        reader, writer = await dial(gate)
        for asked in range(1, 6):
            writer.write(bytes(100_000))
            await reader.readexactly(100_000 if asked > 1 else 100_001)
            gate.begins_answer(inner.peers[0])
            gate.answered(inner.peers[0])
        assert gate.count == 1


async def test_is_10_messages_pay_for_the_bytes_of_a_stream_and_what_comes_to_nothing_adds_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(gates, "monotonic", lambda: now[0])
    async with gated(bytes_max=1_000_000) as (gate, inner):
        reader, writer = await dial(gate)
        assert await reader.readexactly(1)
        gate.proven(inner.peers[0], "w1")
        for _ in range(20):
            writer.write(bytes(400_000))
            await reader.readexactly(400_000)
            gate.came(inner.peers[0], 400_000)
        assert gate.count == 1
        for _ in range(2):
            writer.write(bytes(400_000))
            await reader.readexactly(400_000)
            gate.came(inner.peers[0], 10)
        assert (gate.count, gate.is_barred("w1")) == (1, False)
        gate.proven(inner.peers[0], "w1")  # another stream of the same connection pays for nothing
        heard = len(inner.heard[0])
        await until_cut(writer, bytes(100_000), 10_000_000)
        await until(lambda: gate.count == 0)
        assert len(inner.heard[0]) - heard < 300_000, "what had come to nothing before counts"
        assert (gate.is_barred("w1"), gate.is_barred("w2")) == (True, False)
        now[0] += gates.BARRED_SECONDS
        assert not gate.is_barred("w1")


async def test_is_10_a_connection_whose_streams_are_over_has_proven_nothing_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "PROOF_SECONDS", 0.1)
    async with gated() as (gate, inner):
        one = await dial(gate)
        assert await one[0].readexactly(1)
        for _ in range(2):
            gate.proven(inner.peers[0], "w1")
        gate.unproven(inner.peers[0])
        await asyncio.sleep(0)
        assert gate.count == 1
        gate.unproven(inner.peers[0])
        await until(lambda: gate.count == 0)


def kept_port(gate: Gate) -> int:
    """Return the port from which the one connection came that is proven."""
    (kept,) = [visit for guest, visit in gate._visits.items() if guest not in gate.places._guests]
    return port_of(kept)


def port_of(visit: Visit) -> int:
    """Return the port from which a connection came."""
    assert visit.outer.transport is not None
    port: int = visit.outer.transport.get_extra_info("peername")[1]
    return port


async def test_is_13_whoever_comes_displaces_the_oldest_of_who_has_proven_nothing() -> None:
    async with gated(connections=10, unproven=3) as (gate, inner):
        first = await dial(gate)
        await first[0].readexactly(1)
        gate.proven(inner.peers[0], "w1")
        silent = [await dial(gate, b"") for _ in range(3)]
        await until(lambda: gate.places.count == 3)
        honest = await dial(gate)
        assert await honest[0].readexactly(1) == HELLO
        assert await ended(silent[0])
        first[1].write(b"still there")
        assert await first[0].readexactly(11) == b"still there"
        assert gate.count == 4


async def test_is_13_who_holds_most_gives_way_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "monotonic", lambda: 100.0)  # nobody is stale
    async with gated(connections=10, unproven=4) as (gate, inner):
        alone = await dial(gate, source="127.0.0.9")
        await alone[0].readexactly(1)
        many = [await dial(gate, b"") for _ in range(3)]
        await until(lambda: gate.places.count == 4)
        await dial(gate, b"")
        assert await ended(many[0])
        alone[1].write(b"still there")
        assert await alone[0].readexactly(11) == b"still there"
        assert gate.address_of(inner.peers[0]) == "127.0.0.9"


async def test_is_13_connections_are_bounded_in_all_and_some_are_kept_for_who_comes() -> None:
    async with gated(connections=4, unproven=2) as (gate, inner):
        for number in range(2):
            one = await dial(gate)
            await one[0].readexactly(1)
            gate.proven(inner.peers[number], "w1")
        assert await ended(await dial(gate))
        assert gate.count == 2


async def test_is_13_addresses_take_turns_so_that_who_floods_waits_for_himself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(gates, "monotonic", lambda: now)
    async with gated(pace=4.0) as (gate, inner):
        for _ in range(12):
            await dial(gate)
        await until(lambda: len(inner.heard) == 5, "a second's worth and the one that is due")
        await dial(gate, HELLO + b"honest", source="127.0.0.9")
        await until(lambda: len(gate._turns) == 2, "all the others wait for a turn")
        now += 0.5
        await until(lambda: any(b"honest" in each for each in inner.heard))
        assert len(inner.heard) == 7, "those who came before it are still waiting"


async def test_is_12_in_a_crowd_of_addresses_the_latest_has_its_turn_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(gates, "monotonic", lambda: now)
    async with gated(pace=4.0) as (gate, inner):
        for number in range(5 + 9):
            await dial(gate, source=f"127.0.1.{number + 1}")
        await until(lambda: len(inner.heard) == 5 and len(gate._turns) == 9, "more wait than begin in two seconds")
        await dial(gate, HELLO + b"honest", source="127.0.0.9")
        await until(lambda: len(gate._turns) == 10)
        now += 0.25
        await until(lambda: any(b"honest" in each for each in inner.heard))
        assert len(inner.heard) == 6, "those who came before it are still waiting"


async def test_is_12_who_has_left_waits_for_no_turn_and_a_crowd_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "monotonic", lambda: 100.0)
    async with gated(pace=4.0, unproven=8) as (gate, inner):
        for number in range(40):
            await dial(gate, source=f"127.0.1.{number + 1}")
        await until(lambda: len(inner.heard) == 5 and len(gate._turns) == 3, "as many wait as have a place")
        assert gate.count == gate.places.count == 8


@pytest.mark.parametrize("proof", ["certificate", "key"])
async def test_is_12_an_address_that_has_proven_itself_goes_first_for_a_day(
    monkeypatch: pytest.MonkeyPatch, proof: str
) -> None:
    now = 100.0
    monkeypatch.setattr(gates, "monotonic", lambda: now)
    async with gated(pace=4.0) as (gate, inner):
        one = await dial(gate, source="127.0.0.9")
        await one[0].readexactly(1)
        if proof == "certificate":
            gate.proven(inner.peers[0], "w1")
        else:
            gate.begins_answer(inner.peers[0])
            gate.recognised(inner.peers[0], "w1")
            gate.answered(inner.peers[0])
        for after, first in ((10.0, True), (KNOWN_SECONDS, False)):
            now += after
            heard = len(inner.heard)
            for number in range(9):
                await dial(gate, source=f"127.0.1.{number + 1}")
            await until(lambda: len(inner.heard) == heard + 5 and len(gate._turns) == 4)  # noqa: B023
            await dial(gate, HELLO + b"honest", source="127.0.0.9")
            await until(lambda: len(gate._turns) == 5)
            now += 0.5
            await until(lambda: len(inner.heard) == heard + 7)  # noqa: B023
            await until(lambda: all(inner.heard))
            assert any(b"honest" in each for each in inner.heard[heard:]) is first
            now += 10.0
            await until(lambda: len(inner.heard) == heard + 10)  # noqa: B023


async def test_is_12_a_crowd_of_addresses_is_a_few_lines_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count()
    monkeypatch.setattr(gates, "monotonic", lambda: float(next(moments)))
    with structlog.testing.capture_logs() as lines:
        async with gated(pace=4.0, unproven=2) as (gate, _):
            for number in range(60):
                await dial(gate, b"", source=f"127.0.2.{number + 1}")
            await until(lambda: gate.places.count == 2)
    assert [each["peer"] for each in lines] == [*(f"127.0.2.{number + 1}" for number in range(16)), "others"]


async def test_is_12_who_is_being_answered_is_not_displaced() -> None:
    async with gated(unproven=2) as (gate, inner):
        asking = await dial(gate)
        await asking[0].readexactly(1)
        gate.begins_answer(inner.peers[0])
        for _ in range(4):
            await dial(gate, b"")
        await until(lambda: gate.places.count == 2)
        gate.answered(inner.peers[0])
        asking[1].write(b"answer")
        assert await asking[0].readexactly(6) == b"answer"


def test_is_13_there_are_no_more_connections_than_files_and_half_of_them_have_proven_something() -> None:
    limits = GateLimits(connections_max=8192, unproven_max=1024, pace=1.0, unproven_bytes_max=1, bytes_max=1)
    assert limits.within(1_000_000) == limits
    few = limits.within(600)
    assert (few.connections_max, few.unproven_max) == (200, 100)


def test_is_13_the_soft_limit_of_files_is_raised_to_the_hard_one() -> None:
    program = (
        "import resource as r; from gatelift_kube.process import descriptors as d;"
        "r.setrlimit(r.RLIMIT_NOFILE, (128, 512)); print(d.raise_limit(), r.getrlimit(r.RLIMIT_NOFILE)[0])"
    )
    said = subprocess.run(  # noqa: S603 (our own interpreter)
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["512", "512"]
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0


@pytest.mark.parametrize(
    ("address", "counts"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_is_13_a_host_counts_once_however_many_addresses_of_ipv6_it_has(address: str, counts: str) -> None:
    assert gates.whose(address) == counts
