"""How long one worker waits while another one floods: the port that agents dial, over TLS, with a core that echoes.

`python -m bench.flood [--seconds N] [--shapes json,parts,small]`. Server, quiet worker and flood are processes of their
own. The quiet one asks for a renewal every 20 ms and times the answer: alone, and beside one worker that writes legal
frames as fast as they are taken, each as dear as a frame of its shape can be:

- `json`: two reports of 1.4 MB whose status is as many lists as a status may have
- `parts`: one report whose list is as long as a frame's lists may be
- `small`: 256 reports in 3 kB, below what is decoded in a thread
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench.latency import summary
from bench.processes import cpu_seconds
from bench.side_scripts import beside
from gatelift.adapters import authority
from gatelift.adapters.agents_server import SERVICE, AgentsServer
from gatelift.core.api import commands, events
from gatelift_kube.machine_loop import MachineLoop
from gatelift_kube.tasks import spawn
from gatelift_wire import codec, limits
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import Finished, Frame, LeaseGranted, LeaseRenew, ObjectReport, Report, Stopped

SECONDS = 20.0
PAUSE_SECONDS = 0.02
SETTLE_SECONDS = 5.0
"""After the flood has begun: its burst is over, what follows is what it gets for good."""
DAY = dt.timedelta(days=1)
KEY = PlacementKey("11111111-2222-3333-4444-555555555555", 1)
STATUS_BYTES = 1_400_000


def reports(shape: str) -> tuple[Report, ...]:
    """Return the messages of one frame of the flood."""
    match shape:
        case "json":
            lists = b",".join([b"[]"] * (limits.JSON_PARTS_MAX - 2))
            text = b'{"a":[' + lists + b'],"b":"' + b"x" * (STATUS_BYTES - len(lists)) + b'"}'
            return (ObjectReport(key=KEY, kind="Pod", name="p", uid="u", status=text),) * 2
        case "parts":
            state = ObjectReport(key=KEY, kind="Pod", name="p", uid="", status=b"")
            whole = Finished(key=KEY, succeeded=True, objects=(state,) * limits.OBJECTS_MAX)
            return (whole,) * (limits.FRAME_PARTS_MAX // limits.OBJECTS_MAX)
        case _:
            return (Stopped(key=PlacementKey("u", 1)),) * limits.FRAME_MESSAGES_MAX


# --- the server ----------------------------------------------------------------------------------------------------


class Echo:
    """A core that grants each renewal."""

    def handle(self, event: events.Event, _now: float) -> tuple[commands.Command, ...]:
        """Grant."""
        if not isinstance(event, events.FrameArrived):
            return ()
        asked = (each for each in event.frame.control if isinstance(each, LeaseRenew))
        granted = tuple(LeaseGranted(sent_at=each.sent_at, seconds=1.0) for each in asked)
        return (
            (commands.SendFrame(stream_id=event.stream_id, frame=Frame(session=1, control=granted)),) if granted else ()
        )

    def next_deadline(self) -> float | None:
        """Wait for nothing."""
        return None


async def serve(folder: Path) -> None:
    pair = (folder / "server.key").read_bytes(), (folder / "server.pem").read_bytes(), (folder / "ca.pem").read_bytes()
    loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
        Echo(),
        lambda command: server.send(command) if isinstance(command, commands.SendFrame) else None,
        tick=events.Ticked(),
        observe=lambda event, seconds: server.handled(event, seconds),  # noqa: PLW0108 (it is made below)
    )
    server = AgentsServer(loop.post, lambda: pair)
    await server.start("127.0.0.1:0")
    (folder / "port").write_text(str(server.port))
    running = spawn("core", loop.run())
    await until_told_to_end()
    running.cancel()
    await server.stop()


# --- workers -------------------------------------------------------------------------------------------------------


class Worker:
    """One stream of a worker."""

    def __init__(self, folder: Path, name: str) -> None:
        key, certificate = (folder / f"{name}.key").read_bytes(), (folder / f"{name}.pem").read_bytes()
        credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes(), key, certificate)
        options = (
            ("grpc.max_send_message_length", -1),
            ("grpc.ssl_target_name_override", "localhost"),
            ("grpc.use_local_subchannel_pool", 1),
        )
        target = f"127.0.0.1:{(folder / 'port').read_text()}"
        self._channel = grpc.aio.secure_channel(target, credentials, options=options)
        self.call = self._channel.stream_stream(f"/{SERVICE}/Session")()

    async def renews(self) -> float:
        """Ask for a renewal; return the milliseconds until it is there."""
        began = time.monotonic()
        frame = Frame(session=1, control=(LeaseRenew(sent_at=began),))
        await self.call.write(codec.encode_from_agent(frame))
        while True:
            data = await self.call.read()
            if data is grpc.aio.EOF:
                raise RuntimeError("the quiet worker's stream ended")
            if any(isinstance(each, LeaseGranted) for each in codec.decode_from_manager(data).control):
                return 1000 * (time.monotonic() - began)

    async def close(self) -> None:
        """Hang up."""
        self.call.cancel()
        await self._channel.close()

    async def samples(self, seconds: float) -> list[float]:
        """Ask again and again; return the milliseconds of each."""
        found: list[float] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found.append(await self.renews())
            await asyncio.sleep(PAUSE_SECONDS)
        return found


async def flood(folder: Path, shape: str) -> None:
    worker = Worker(folder, "flood")
    data = codec.encode_from_agent(Frame(session=1, messages=reports(shape)))
    written = folder / f"written-{shape}"

    async def writes() -> None:
        count = 0
        while True:
            await worker.call.write(data)
            count += 1
            written.write_text(str(count * len(data)))

    writing = spawn("flood", writes())
    await until_told_to_end()
    writing.cancel()


async def until_told_to_end() -> None:
    """Say that all is ready; return at the end of standard input."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)


# --- the run -------------------------------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Write keys and certificates of a server and two workers."""
    now = dt.datetime.now(dt.UTC)
    state = authority.new_state(now)
    pair = authority.new_server(state, ("127.0.0.1", "localhost"), DAY, now)
    (folder / "ca.pem").write_bytes(state.bundle)
    (folder / "server.key").write_bytes(pair.key)
    (folder / "server.pem").write_bytes(pair.certificate)
    for name in ("quiet", "flood"):
        key = ec.generate_private_key(ec.SECP256R1())
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
        pem = request.public_bytes(serialization.Encoding.PEM)
        certificate = authority.sign_agent(state, pem, f"gatelift://cluster/{name}", DAY, now)
        (folder / f"{name}.pem").write_bytes(certificate)
        (folder / f"{name}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


def failed(error: RuntimeError) -> None:
    sys.exit(str(error))


async def measure(folder: Path, shape: str, seconds: float) -> dict[str, object]:
    """Return how long the quiet worker waits, alone and beside a flood, with a server of its own for each shape."""
    async with beside("bench.flood", "--role", "server", "--folder", str(folder), fail=failed) as pid:
        quiet = Worker(folder, "quiet")
        await quiet.samples(1.0)
        alone = summary(await quiet.samples(seconds))
        async with beside("bench.flood", "--role", shape, "--folder", str(folder), fail=failed):
            await quiet.samples(SETTLE_SECONDS)
            before, cpu = _written(folder, shape), cpu_seconds(pid)
            flooded = summary(await quiet.samples(seconds))
            megabytes, used = (_written(folder, shape) - before) / 1e6, cpu_seconds(pid) - cpu
    return {
        "alone_ms": alone,
        "flooded_ms": flooded,
        "ratio_p50": round(flooded["p50"] / alone["p50"], 2),
        "ratio_p99": round(flooded["p99"] / alone["p99"], 2),
        "flood_megabytes_per_second": round(megabytes / seconds, 2),
        "server_cpu_share": round(used / seconds, 2),
    }


def _written(folder: Path, shape: str) -> int:
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int((folder / f"written-{shape}").read_text())
    return 0


async def run(seconds: float, shapes: list[str]) -> None:
    conditions = {"cores": os.cpu_count(), "load_before": round(os.getloadavg()[0], 2), "seconds": seconds}
    print(conditions)
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for shape in shapes:
            figures[shape] = await measure(folder, shape, seconds)
            print(shape, figures[shape])
    print(json.dumps({"bench": "flood", "conditions": conditions, "figures": figures}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--shapes", default="json,parts,small")
    parser.add_argument("--role", default="")
    parser.add_argument("--folder", type=Path, default=Path())
    told = parser.parse_args()
    if told.role == "server":
        asyncio.run(serve(told.folder))
    elif told.role:
        asyncio.run(flood(told.folder, told.role))
    else:
        asyncio.run(run(told.seconds, told.shapes.split(",")))


if __name__ == "__main__":
    main()
