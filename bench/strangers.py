"""How long honest ones wait while strangers without a certificate crowd a port: sessions, enrolment, webhooks.

`python -m bench.strangers [--seconds N] [--loads silent_calls,wrong_tokens,...]`. The servers, over
TLS with cores that answer at once, honest ones and strangers are processes of their own. Honest ones ask one after the
other, each time by a new connection: alone, then beside strangers. For each load: p50 and p99 of both and their ratios,
how many of the honest failed, what strangers did, CPU and highest memory of the server.

- `silent_calls`: 160 calls at the enrolment port that send no body, made anew when they end
- `wrong_tokens`: enrolments with a token that nobody expects, by 64 at once, as fast as they are answered
- `endless_headers`: 40 connections to the enrolment port, from another address, whose first block of headers never ends
- `endless_headers_beside`: the same from the address of the honest one, who then waits behind them for his turn
- `half_open`: 3,000 connections to the port of sessions that say nothing, or begin a handshake and go no further
- `many_addresses`: 1,500 connections a second (`--rate`) to the enrolment port, each of an address of its own, that
  greet and go no further; the honest one renews by a key that is known, from an address that has done so before
- `many_greetings`: the same to the port of sessions
- `slow_bodies`: 300 reviews whose bodies trickle
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import grpc

from bench import raw_http2
from bench.bare_sessions import Granting, Worker, failed, prepare, until_told_to_end
from bench.latency import summary
from bench.processes import cpu_seconds, rss_peak_bytes, takes_what_is_left
from bench.side_scripts import beside
from gatelift.adapters import authority
from gatelift.adapters.agents_server import AgentsServer
from gatelift.adapters.enrol_server import SERVICE, EnrolServer
from gatelift.core.api import commands, events
from gatelift.webhooks import review
from gatelift.webhooks.judge import Judge
from gatelift.webhooks.lanes import Decide, in_loop
from gatelift.webhooks.server import WebhookServer
from gatelift_agent.adapters.enrolment import new_key, signing_request
from gatelift_kube.process import descriptors
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.tasks import spawn
from gatelift_wire.v1 import agent_pb2 as pb

HOST = "127.0.0.1"
ELSEWHERE = "127.0.0.2"
"""Another address of the loopback: there, strangers do not share the one of the honest."""
METHOD = f"/{SERVICE}/Enroll"
SECONDS = 20.0
PAUSE_SECONDS = 0.02
SETTLE_SECONDS = 5.0
"""After the strangers have begun: all of them are there, what was free is taken."""
HONEST_SECONDS_MAX = 20.0
"""An answer that takes longer counts as this, and as failed."""
SILENT_CALLS, WRONG_TOKENS, ENDLESS_HEADERS, HALF_OPEN, SLOW_BODIES = 160, 64, 40, 3000, 300
MANY_PER_SECOND = 1500.0
MANY_SECONDS = 5.0
"""For so long each of them stays."""
BATCH_SECONDS = 0.01
TOKEN = "the token"  # noqa: S105 (of a core that expects just this)


# --- the servers ---------------------------------------------------------------------------------------------------


class _Core(Granting):
    """Grants renewals, in sessions and by a key, and has those who show the token wait for a person."""

    def handle(self, event: events.Event, now: float) -> tuple[commands.Command, ...]:
        if not isinstance(event, events.EnrolmentAsked):
            return super().handle(event, now)
        if not event.token:
            approved = commands.EnrolmentVerdict.APPROVED
            return (
                commands.AnswerEnrolment(request_id=event.request_id, verdict=approved, text="", certificate=b"signed"),
            )
        known = event.token == TOKEN
        verdict = commands.EnrolmentVerdict.PENDING if known else commands.EnrolmentVerdict.REFUSED
        why = "" if known else "wrong token"
        return (commands.AnswerEnrolment(request_id=event.request_id, verdict=verdict, text="a person", why=why),)


class _Judge(Judge):
    """Lets everything pass."""

    def __init__(self) -> None:
        """Nothing around a review matters."""

    async def _allow(self, _name: str, question: review.Question, _decide: Decide = in_loop, /) -> bytes:
        return review.allow(question.uid)

    mutate = validate = validate_size = validate_queueing = validate_unserved = _allow


async def serve(folder: Path) -> None:
    descriptors.raise_limit()
    key, chain, bundle = ((folder / name).read_bytes() for name in ("server.key", "server.pem", "ca.pem"))

    def perform(command: commands.Command) -> None:
        match command:
            case commands.SendToAgent():
                sessions.send(command)
            case commands.AnswerEnrolment():
                enrolment.answer(command)
            case _:
                pass

    loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
        _Core(),
        perform,
        tick=events.Ticked(),
        observe=lambda event, seconds: sessions.handled(event, seconds),  # noqa: PLW0108 (it is made below)
    )
    pair = authority.KeyPair(chain, key)
    state = authority.AuthorityState(current=authority.KeyPair(bundle, b""))
    sessions = AgentsServer(loop.post, lambda: (key, chain, bundle))
    enrolment = EnrolServer(
        loop.post, lambda: state, lambda: pair, lambda: True, lambda _cluster, token: token == TOKEN
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem", folder / "server.key")
    webhooks = WebhookServer(_Judge(), lambda: "", lambda: tls, lambda *_: None)
    running = spawn("core", loop.run())
    await sessions.start(f"{HOST}:0")
    await enrolment.start(f"{HOST}:0")
    await webhooks.start(HOST, 0)
    (folder / "port").write_text(str(sessions.port))
    (folder / "enrol").write_text(str(enrolment.port))
    (folder / "webhooks").write_text(str(webhooks.port))
    await until_told_to_end()
    running.cancel()
    await sessions.stop()
    await enrolment.stop()
    await webhooks.stop()


# --- who asks ------------------------------------------------------------------------------------------------------


def dialled(folder: Path) -> grpc.aio.Channel:
    """Return a channel of its own connection to the enrolment port."""
    credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
    return grpc.aio.secure_channel(f"{HOST}:{(folder / 'enrol').read_text()}", credentials, options=options)


def enrolment_of(token: str) -> bytes:
    return pb.EnrollRequest(cluster="w1", request=signing_request(new_key(), "w1"), token=token).SerializeToString()


def blind() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def client_hello() -> bytes:
    """Return the first bytes of a handshake."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        blind().wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    return out.read()


def connecting(port: int, number: int) -> socket.socket:
    """Return a connection that is being made from an address of its own."""
    one = socket.socket()
    one.setblocking(False)
    one.bind((f"127.{1 + number // 62500 % 250}.{number // 250 % 250}.{1 + number % 250}", 0))
    with contextlib.suppress(BlockingIOError):
        one.connect((HOST, port))
    return one


async def enrols(folder: Path, data: bytes) -> None:
    async with dialled(folder) as one:
        await one.unary_unary(METHOD)(data, timeout=HONEST_SECONDS_MAX)


async def renews(folder: Path, data: bytes) -> None:
    async with dialled(folder) as one:
        said = pb.EnrollResponse.FromString(await one.unary_unary(METHOD)(data, timeout=HONEST_SECONDS_MAX))
    if said.status != pb.ENROLL_STATUS_APPROVED:
        raise RuntimeError(said.text)


async def greets(folder: Path, _data: bytes) -> None:
    worker = Worker(folder)
    try:
        await worker.greets()
    finally:
        await worker.close()


async def reviews(folder: Path, data: bytes) -> None:
    url = f"https://{HOST}:{(folder / 'webhooks').read_text()}/mutate-pod"
    connector = aiohttp.TCPConnector(ssl=blind(), force_close=True)
    async with aiohttp.ClientSession(connector=connector) as client, client.post(url, data=data) as answer:
        if answer.status != 200:
            raise RuntimeError(f"HTTP {answer.status}")


REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "team", "object": {}},
}
Honest = Callable[[Path, bytes], Awaitable[None]]
HONEST: dict[str, Honest] = {
    "silent_calls": enrols,
    "wrong_tokens": enrols,
    "endless_headers": enrols,
    "endless_headers_beside": enrols,
    "half_open": greets,
    "many_addresses": renews,
    "many_greetings": greets,
    "slow_bodies": reviews,
}


async def samples(folder: Path, load: str, seconds: float) -> tuple[list[float], int]:
    """Ask again and again; return the milliseconds of each, and how many had no answer."""
    honest = HONEST[load]
    data = json.dumps(REVIEW).encode() if honest is reviews else enrolment_of("" if honest is renews else TOKEN)
    found: list[float] = []
    lost = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            async with asyncio.timeout(HONEST_SECONDS_MAX):
                await honest(folder, data)
            found.append(1000 * (time.monotonic() - began))
        except (TimeoutError, OSError, RuntimeError, grpc.RpcError, aiohttp.ClientError):
            lost += 1
            found.append(1000 * HONEST_SECONDS_MAX)
        await asyncio.sleep(PAUSE_SECONDS)
    return found, lost


# --- strangers -----------------------------------------------------------------------------------------------------


class _Strangers:
    """Those of one load. `done` counts what they did, for the bench to read."""

    def __init__(self, folder: Path, load: str, rate: float) -> None:
        self._folder = folder
        self._rate = rate
        self._written = folder / f"done-{load}"
        self._done = 0
        self._wrong = enrolment_of("gl1.wrong")
        self.run: Callable[[], Awaitable[None]] = getattr(self, load)

    def did(self, count: int = 1) -> None:
        self._done += count
        self._written.write_text(str(self._done))

    async def again(self, count: int, one: Callable[[], Awaitable[None]]) -> None:
        """Have so many do one thing again and again."""

        async def stranger() -> None:
            while True:
                with contextlib.suppress(grpc.RpcError, OSError, TimeoutError):
                    await one()
                self.did()
                await asyncio.sleep(0.01)

        await asyncio.gather(*(stranger() for _ in range(count)))

    async def silent_calls(self) -> None:
        async def one() -> None:
            async with dialled(self._folder) as channel:
                await channel.stream_unary(METHOD)().code()

        await self.again(SILENT_CALLS, one)

    async def wrong_tokens(self) -> None:
        channels = [dialled(self._folder) for _ in range(WRONG_TOKENS)]

        async def one() -> None:
            channel = channels[self._done % len(channels)]
            await channel.unary_unary(METHOD)(self._wrong, timeout=HONEST_SECONDS_MAX)

        await self.again(WRONG_TOKENS, one)

    async def endless_headers(self) -> None:
        await self.say_headers_without_end(ELSEWHERE)

    async def endless_headers_beside(self) -> None:
        await self.say_headers_without_end(HOST)

    async def say_headers_without_end(self, address: str) -> None:
        """Dial from an address, and go on with a block of headers as fast as it is taken."""
        port, tls = int((self._folder / "enrol").read_text()), raw_http2.client()
        begins = raw_http2.GREETING + raw_http2.frame(raw_http2.HEADERS, 0, 1, raw_http2.call(METHOD))

        async def one() -> None:
            _, writer = await asyncio.open_connection(HOST, port, ssl=tls, local_addr=(address, 0))
            try:
                writer.write(begins)
                while not writer.is_closing():
                    writer.write(raw_http2.endless(1))
                    await writer.drain()
                    await asyncio.sleep(0)  # where nothing is taken any more, `drain` does not wait
            finally:
                writer.transport.abort()

        await self.again(ENDLESS_HEADERS, one)

    async def half_open(self) -> None:
        descriptors.raise_limit()
        port = int((self._folder / "port").read_text())

        async def one() -> None:
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(b"\x16\x03\x01" if self._done % 2 else b"")
            try:
                await reader.read()
            finally:
                writer.transport.abort()

        await self.again(HALF_OPEN, one)

    async def many_addresses(self) -> None:
        await self.greet_from_everywhere(int((self._folder / "enrol").read_text()))

    async def many_greetings(self) -> None:
        await self.greet_from_everywhere(int((self._folder / "port").read_text()))

    async def greet_from_everywhere(self, port: int) -> None:
        """Open connections at the rate, say a ClientHello a moment later, and hang up after a while."""
        descriptors.raise_limit()
        hello, numbers, due = client_hello(), itertools.count(), 0.0
        held: collections.deque[tuple[float, socket.socket]] = collections.deque()
        last = time.monotonic()
        while True:
            now = time.monotonic()
            due, last = min(due + self._rate * (now - last), self._rate), now  # what is late by a second is left out
            fresh = [connecting(port, next(numbers)) for _ in range(int(due))]
            due -= len(fresh)
            await asyncio.sleep(BATCH_SECONDS)
            for one in fresh:
                with contextlib.suppress(OSError):
                    one.send(hello)
                held.append((now, one))
            self.did(len(fresh))
            while held and held[0][0] < now - MANY_SECONDS:
                held.popleft()[1].close()

    async def slow_bodies(self) -> None:
        port = int((self._folder / "webhooks").read_text())
        head = b"POST /mutate-pod HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
        tls = blind()

        async def one() -> None:
            reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
            writer.write(head)
            try:
                while not (reader.at_eof() or writer.is_closing()):
                    writer.write(b" ")
                    await asyncio.sleep(0.2)
            finally:
                writer.transport.abort()

        await self.again(SLOW_BODIES, one)


async def crowd(folder: Path, load: str, rate: float) -> None:
    takes_what_is_left()
    running = spawn(load, forever(folder, load, rate))
    await until_told_to_end()
    running.cancel()


async def forever(folder: Path, load: str, rate: float = MANY_PER_SECOND) -> None:
    """Do what the strangers of a load do, without an end."""
    await _Strangers(folder, load, rate).run()


# --- the run -------------------------------------------------------------------------------------------------------


async def measure(folder: Path, load: str, seconds: float, rate: float) -> dict[str, object]:
    """Return how long honest ones wait, alone and beside strangers, with servers of their own for each load."""
    async with beside("bench.strangers", "--role", "server", "--folder", str(folder), fail=failed) as pid:
        await samples(folder, load, 1.0)
        cpu = cpu_seconds(pid)
        alone, _ = await samples(folder, load, seconds)
        quiet, memory = cpu_seconds(pid) - cpu, rss_peak_bytes(pid)
        told = ("--role", load, "--folder", str(folder), "--rate", str(rate))
        async with beside("bench.strangers", *told, fail=failed):
            await samples(folder, load, SETTLE_SECONDS)
            cpu = cpu_seconds(pid)
            crowded, lost = await samples(folder, load, seconds)
            used, peak = cpu_seconds(pid) - cpu, rss_peak_bytes(pid)
    without, beside_them = summary(alone), summary(crowded)
    return {
        "alone_ms": without,
        "crowded_ms": beside_them,
        "ratio_p50": round(beside_them["p50"] / without["p50"], 2),
        "ratio_p99": round(beside_them["p99"] / without["p99"], 2),
        "honest": len(crowded),
        "honest_lost": lost,
        "strangers_done": done(folder, load),
        "server_cpu_share": {"alone": round(quiet / seconds, 2), "crowded": round(used / seconds, 2)},
        "server_peak_megabytes": {"alone": round(memory / 1e6), "crowded": round(peak / 1e6)},
    }


def done(folder: Path, load: str) -> int:
    """Return how often strangers of a load have come to an end."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int((folder / f"done-{load}").read_text())
    return 0


async def run(seconds: float, loads: list[str], rate: float) -> None:
    conditions = {"cores": os.cpu_count(), "load_before": round(os.getloadavg()[0], 2), "seconds": seconds}
    conditions["rate"] = rate
    print(conditions)
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for load in loads:
            figures[load] = await measure(folder, load, seconds, rate)
            print(load, figures[load])
    print(json.dumps({"bench": "strangers", "conditions": conditions, "figures": figures}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--loads", default=",".join(HONEST))
    parser.add_argument("--rate", type=float, default=MANY_PER_SECOND)
    parser.add_argument("--role", default="")
    parser.add_argument("--folder", type=Path, default=Path())
    told = parser.parse_args()
    if told.role == "server":
        asyncio.run(serve(told.folder))
    elif told.role:
        asyncio.run(crowd(told.folder, told.role, told.rate))
    else:
        unknown = set(told.loads.split(",")) - set(HONEST)
        if unknown:
            sys.exit(f"--loads: {', '.join(sorted(unknown))} is none of {', '.join(HONEST)}")
        asyncio.run(run(told.seconds, told.loads.split(","), told.rate))


if __name__ == "__main__":
    main()
