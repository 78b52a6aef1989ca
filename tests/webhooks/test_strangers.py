"""Strangers at the webhooks' port, over real sockets: the API server keeps its places, and the daemon its memory."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gatelift.webhooks import bodies, review
from gatelift.webhooks.app import Daemon
from gatelift.webhooks.envelope import VALUES_MAX
from gatelift.webhooks.lanes import INLINE_BYTES_MAX, ReviewPlaces
from gatelift_kinds.pod.kind import PodKind
from gatelift_kube.process.tasks import spawn
from support.fuzz.crowd import blind, crowd, head
from support.manager.webhook_requests import queued
from support.until import until

from .conftest import Asking

API_SERVER_SECONDS = 5.0
"""`timeoutSeconds` of our configurations."""


def resident_bytes() -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


async def answered(asking: Asking, times: int, seconds: float = API_SERVER_SECONDS) -> None:
    for _ in range(times):
        async with asyncio.timeout(seconds):
            assert (await asking.review("/mutate-pod", "Pod", queued()))["allowed"]


async def test_hd_115_a_body_that_comes_slower_than_its_rate_is_answered_so(
    asking: Asking, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS_FREE", 0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port, ssl=blind())
    writer.write(head(1000) + b"[")
    began = asyncio.get_running_loop().time()
    assert b"408" in await reader.readline()
    assert asyncio.get_running_loop().time() - began < bodies.BODY_SECONDS_MAX / 2
    assert b"the body came slower than" in await reader.read(), "and the connection ends"
    writer.transport.abort()
    await answered(asking, 1)


async def test_hd_574_who_hangs_up_within_his_body_is_no_failure_of_ours(asking: Asking, daemon: Daemon) -> None:
    """HD-574: each was `review not answered` with a trace, at the level of a defect, and the answer was for nobody."""
    with capture_logs() as said:
        _, writer = await asyncio.open_connection("127.0.0.1", daemon.port, ssl=blind())
        writer.write(head(1000) + b"[")
        await until(lambda: daemon._server.door.places.bytes_held > 0, "the body has begun")
        writer.transport.abort()
        await until(lambda: daemon._server.door.places.count == 0, "nobody is left")
        await answered(asking, 1)
    assert [line for line in said if line["log_level"] == "error"] == []


async def test_hd_116_bodies_are_decided_in_turn_and_as_many_at_once_as_fit() -> None:
    deciding, order, inside = ReviewPlaces(bytes_max=10), list[int](), 0

    async def decide(name: int, size: int) -> None:
        nonlocal inside
        async with deciding.place(size, "10.0.0.1"):
            inside += min(size, 10)
            assert inside <= 10
            order.append(name)
            await asyncio.sleep(0)
            inside -= min(size, 10)

    tasks = [spawn(f"body {name}", decide(name, size)) for name, size in enumerate((6, 3, 50, 1, 9, 10, 2))]
    await asyncio.sleep(0)
    tasks[2].cancel()
    tasks[4].cancel()
    await asyncio.wait(tasks)
    assert order == [0, 1, 3, 5, 6]
    await decide(7, 10)


async def test_is_14_addresses_take_turns_so_that_who_sends_many_waits_for_himself() -> None:
    places, order = ReviewPlaces(bytes_max=10), list[str]()

    async def decide(address: str) -> None:
        async with places.place(10, address):
            order.append(address)
            await asyncio.sleep(0)

    addresses = ("stranger",) * 5 + ("api server",) * 2 + ("other",)
    await asyncio.gather(*(decide(address) for address in addresses))
    assert order == ["stranger", "api server", "other", *("stranger", "api server"), *("stranger",) * 3]


@pytest.mark.parametrize(
    ("module", "function"),
    [pytest.param(review, "read", id="read"), pytest.param(PodKind, "defaults", id="decided")],
)
async def test_is_14_a_long_review_keeps_no_short_one_waiting(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, module: Any, function: str
) -> None:
    """The long one is looked through until a short one has been answered, which in the loop would be never."""
    short_is_answered, begun, plain = threading.Event(), threading.Event(), getattr(module, function)

    def slow(*args: Any) -> Any:
        if len(str(args)) > INLINE_BYTES_MAX:
            begun.set()
            assert short_is_answered.wait(20), "nobody else was answered meanwhile"
        return plain(*args)

    monkeypatch.setattr(module, function, slow)
    containers = [{"name": f"c{number}"} for number in range(10_000)]
    long = {**queued(), "spec": {"containers": containers}}
    waiting = spawn("long review", asking.review("/mutate-pod", "Pod", long))
    await until(begun.is_set, "the long one is being looked at")
    await answered(asking, 2)
    assert not waiting.done()
    short_is_answered.set()
    assert (await waiting)["allowed"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" + b"{}," * (VALUES_MAX + 1) + b"{}]", id="a million values"),
        pytest.param(
            b'{"apiVersion":"' + b"x" * 100_000 + b'","kind":"","request":{"uid":"","operation":""}}', id="a long text"
        ),
    ],
)
async def test_hd_116_what_would_take_memory_as_objects_or_as_a_text_is_refused_shortly(
    asking: Asking, body: bytes
) -> None:
    status, text = await asking.post("/mutate-pod", body)
    assert status == 400
    assert len(text) < 400


async def test_hd_116_a_body_leaves_no_bytes_held(asking: Asking, daemon: Daemon) -> None:
    await answered(asking, 2)
    await asking.post("/convert", b"{}")
    await asking.post("/mutate-pod", b"x" * 1_000_000)
    await until(lambda: daemon._server.door.places.count == 0, "nobody is left")
    assert daemon._server.door.places.bytes_held == 0


@pytest.mark.parametrize(
    ("what", "tls"),
    [
        pytest.param("trickling_body", True, id="bodies that trickle"),
        pytest.param("trickling_head", True, id="heads that trickle"),
        pytest.param("silence", True, id="connections that say nothing"),
        pytest.param("silence", False, id="handshakes that are not begun"),
    ],
)
async def test_hd_115_the_api_server_is_answered_in_time_beside_four_hundred(
    asking: Asking, daemon: Daemon, what: str, tls: bool
) -> None:
    async with crowd(daemon.port, 400, what, tls=tls):
        await answered(asking, 10)


def test_hd_116_three_hundred_endless_bodies_do_not_take_the_memory() -> None:
    """In a process of its own: what others have left in this one is no memory of the daemon's."""
    where = f"{__file__}::{alone_beside_three_hundred_endless_bodies.__name__}"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-o", "python_functions=alone_*"]
    done = subprocess.run(  # noqa: S603 (our own interpreter and test)
        [sys.executable, "-m", "pytest", *options, where], capture_output=True, text=True, timeout=400, check=False
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


async def alone_beside_three_hundred_endless_bodies(asking: Asking, daemon: Daemon) -> None:
    highest = 0
    async with crowd(daemon.port, 300, "endless_body"):
        for _ in range(10):
            await answered(asking, 1, seconds=30)  # a gigabyte a second is sent by the same processor
            await asyncio.sleep(0.2)
            highest = max(highest, resident_bytes())
    assert highest < 512 * 2**20, "the Deployment's limit"


async def test_is_4_a_review_that_raises_is_answered_and_others_are_too(
    asking: Asking, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IS-4: containment at the webhooks' door: one answer, one log line, and the next review is answered as ever."""

    def raises(*_: Any, **__: Any) -> Any:
        raise LookupError("on purpose")

    body = json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "team", "object": {}},
        }
    ).encode()
    with monkeypatch.context() as broken:
        broken.setattr(review, "read", raises)
        status, text = await asking.post("/mutate-pod", body)
        assert (status, text) == (500, "LookupError: it could not be looked at; the webhooks' log says why\n")
    assert (await asking.post("/mutate-pod", body))[0] == 200
    assert daemon.missing() == ""
