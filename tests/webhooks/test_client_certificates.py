"""With the CA of the API server's client certificates configured, nobody else gets beyond the handshake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gatelift.adapters import authority
from gatelift.config import Configuration
from gatelift.webhooks.app import Daemon, settings_of
from gatelift.webhooks.tls import ClientCAError
from gatelift_kube.api.client import Client
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import SETTINGS, Asking

NOT_READ = b"{"


class Authorities:
    """CAs that an operator makes, and what they sign."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file = folder / "clients.crt"

    def trust(self, *states: authority.AuthorityState) -> None:
        self.file.write_bytes(b"".join(state.bundle for state in states))

    def signed(self, state: authority.AuthorityState, *, days: int = 1) -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kube-apiserver")])
        request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
        pem = request.public_bytes(serialization.Encoding.PEM)
        now = datetime.now(UTC) if days > 0 else datetime.now(UTC) + timedelta(days=2 * days)
        certificate = authority.sign_agent(state, pem, "gatelift://cluster/api", timedelta(days=abs(days)), now)
        path = self._folder / f"{key.private_numbers().private_value % 10**9}.pem"
        kept = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        path.write_bytes(key.private_bytes(*kept) + certificate)
        return path


Start = Callable[[], Daemon]


@pytest.fixture
def authorities(tmp_path: Path) -> Authorities:
    return Authorities(tmp_path)


@pytest.fixture
async def guarded(client: Client, server: FakeApiServer, authorities: Authorities) -> AsyncIterator[Daemon]:
    made = Daemon(client, replace(SETTINGS, client_ca=str(authorities.file)))
    yield made
    await made.stop()


def a_ca() -> authority.AuthorityState:
    return authority.new_state(datetime.now(UTC))


async def test_hd_117_only_a_certificate_of_that_ca_gets_beyond_the_handshake(
    guarded: Daemon, server: FakeApiServer, authorities: Authorities
) -> None:
    ours, theirs = a_ca(), a_ca()
    authorities.trust(ours)
    await guarded.start()
    asking = Asking(server, guarded)
    assert (await asking.post("/mutate-pod", NOT_READ, authorities.signed(ours)))[0] in (400, 503)
    for shown in (None, authorities.signed(theirs), authorities.signed(ours, days=-1)):
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await asking.post("/mutate-pod", NOT_READ, shown)
    await until(lambda: guarded._server.door.places.count == 0, "nobody is left inside")


async def test_hd_117_a_ca_is_replaced_without_a_restart_and_a_broken_file_changes_nothing(
    guarded: Daemon, server: FakeApiServer, authorities: Authorities
) -> None:
    old, new = a_ca(), a_ca()
    authorities.trust(old)
    await guarded.start()
    asking = Asking(server, guarded)
    before = guarded._tls.context()
    authorities.trust(new)
    guarded._wake.set()
    await until(lambda: guarded._tls.context() is not before, "the new CA is read")
    assert (await asking.post("/mutate-pod", NOT_READ, authorities.signed(new)))[0] in (400, 503)
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await asking.post("/mutate-pod", NOT_READ, authorities.signed(old))
    authorities.file.write_bytes(b"")
    assert guarded._material is not None
    guarded._tls.install(guarded._material)
    with pytest.raises((aiohttp.ClientError, ConnectionError)):
        await asking.post("/mutate-pod", NOT_READ)
    assert (await asking.post("/mutate-pod", NOT_READ, authorities.signed(new)))[0] in (400, 503)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "cannot be read (No such file or directory)", id="no file"),
        pytest.param(b"", "has no CA certificate in PEM", id="an empty file"),
        pytest.param(b"\xff\xfe", "has no CA certificate in PEM", id="no text"),
        pytest.param(b"x" * 300_000, "has more than 262144 bytes", id="a file of something else"),
    ],
)
async def test_hd_117_without_a_usable_file_the_daemon_does_not_start_and_lets_nobody_in(
    guarded: Daemon, authorities: Authorities, content: bytes | None, said: str
) -> None:
    if content is not None:
        authorities.file.write_bytes(content)
    with pytest.raises(ClientCAError) as refused:
        await guarded.start()
    assert str(refused.value).startswith(f"gatelift.webhookClientCa: {authorities.file} {said}")


def test_hd_117_the_file_is_named_in_the_configuration() -> None:
    file = {"gatelift": {"webhookClientCa": "/etc/gatelift/clients.crt"}}
    assert settings_of(Configuration.model_validate(file)).client_ca == "/etc/gatelift/clients.crt"
    assert settings_of(Configuration()).client_ca == ""
