"""A port that agents dial with a core that only grants, and a worker that only renews: what a session costs by itself.

Servers and workers are processes of their own: `prepare` writes keys and certificates for them into a folder, a server
its port.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import time
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gatelift.adapters import authority
from gatelift.adapters.agents_server import SERVICE
from gatelift.core.api import commands, events
from gatelift_wire.encoding import codec
from gatelift_wire.values.messages import Control, Frame, Hello, LeaseGranted, LeaseRenew, Welcome

DAY = dt.timedelta(days=1)
WORKER = "quiet"
SESSION = 1


class Granting:
    """A core that welcomes whoever greets, into one session, and grants each renewal."""

    def handle(self, event: events.Event, _now: float) -> tuple[commands.Command, ...]:
        """Answer."""
        if not isinstance(event, events.AgentFrameArrived):
            return ()
        answers = tuple(answer for each in event.frame.control for answer in self._answers(each))
        if not answers:
            return ()
        return (commands.SendToAgent(stream_id=event.stream_id, frame=Frame(session=SESSION, control=answers)),)

    def next_deadline(self) -> float | None:
        """Wait for nothing."""
        return None

    def _answers(self, control: object) -> tuple[Control, ...]:
        match control:
            case Hello():
                return (Welcome(session=SESSION, instance="bench", version=1, resume=False, origin="bench"),)
            case LeaseRenew():
                return (LeaseGranted(sent_at=control.sent_at, seconds=1.0),)
            case _:
                return ()


class Worker:
    """One stream of a worker."""

    def __init__(self, folder: Path) -> None:
        """Dial the server of `folder`."""
        self._channel = dialled(folder)
        self._call = self._channel.stream_stream(f"/{SERVICE}/Session")()

    async def greets(self) -> None:
        """Open the session."""
        await self._says(0, Hello(instance="bench", kinds=("Pod",), credits=1, api_reachable=True))
        await self._hears(Welcome)

    async def renews(self) -> None:
        """Have the lease renewed."""
        await self._says(SESSION, LeaseRenew(sent_at=time.monotonic()))
        await self._hears(LeaseGranted)

    async def close(self) -> None:
        """Hang up."""
        self._call.cancel()
        await self._channel.close()

    async def _says(self, session: int, control: Hello | LeaseRenew) -> None:
        await self._call.write(codec.encode_from_agent(Frame(session=session, control=(control,))))

    async def _hears(self, kind: type[Control]) -> None:
        while True:
            data = await self._call.read()
            if data is grpc.aio.EOF:
                raise RuntimeError("the stream ended")
            if any(isinstance(each, kind) for each in codec.decode_from_manager(data).control):
                return


def dialled(folder: Path) -> grpc.aio.Channel:
    """Return a channel of the worker's to the server of `folder`."""
    key, certificate = (folder / f"{WORKER}.key").read_bytes(), (folder / f"{WORKER}.pem").read_bytes()
    credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes(), key, certificate)
    options = (("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1))
    return grpc.aio.secure_channel(f"127.0.0.1:{(folder / 'port').read_text()}", credentials, options=options)


def prepare(folder: Path) -> None:
    """Write keys and certificates of a server and a worker."""
    now = dt.datetime.now(dt.UTC)
    state = authority.new_state(now)
    pair = authority.new_server(state, ("127.0.0.1", "localhost"), DAY, now)
    (folder / "ca.pem").write_bytes(state.bundle)
    (folder / "server.key").write_bytes(pair.key)
    (folder / "server.pem").write_bytes(pair.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(key, hashes.SHA256())
    pem = request.public_bytes(serialization.Encoding.PEM)
    (folder / f"{WORKER}.pem").write_bytes(authority.sign_agent(state, pem, f"gatelift://cluster/{WORKER}", DAY, now))
    (folder / f"{WORKER}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


async def until_told_to_end() -> None:
    """Say that all is ready; return at the end of standard input."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)


def failed(error: RuntimeError) -> None:
    """End: a process of the bench has."""
    sys.exit(str(error))
