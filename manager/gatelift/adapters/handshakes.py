"""TLS credentials of a gRPC server that are those of the moment at each handshake, so that rotations need no restart.

gRPC replaces the credentials of a listener without waiting for handshakes that other threads are about to begin; done
at every handshake, that ended the process within some hundred connections (gRPC 1.85; a test holds it). They are
therefore replaced only when they have changed: a few times in a rotation, every few days for the server's own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCredentials:
    """What a server shows: key and chain (PEM); and which CAs its clients must be signed by (None: any client)."""

    key: bytes = field(repr=False)
    chain: bytes
    client_bundle: bytes | None = None


def credentials_of_now(shown: Callable[[], ServerCredentials]) -> grpc.ServerCredentials:
    """Return credentials that follow `shown`.

    It is called by a thread of gRPC's at each handshake: it must be quick and change nothing. When it raises, gRPC
    goes on with what it showed last. Whether clients must show a certificate is settled by the first call.
    """
    latest = shown()
    return grpc.dynamic_ssl_server_credentials(
        _configuration(latest), _Changes(shown, latest), require_client_authentication=latest.client_bundle is not None
    )


class _Changes:
    """Tells gRPC what is new, once, and otherwise None."""

    def __init__(self, shown: Callable[[], ServerCredentials], latest: ServerCredentials) -> None:
        self._shown = shown
        self._latest = latest
        self._lock = threading.Lock()

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        shown = self._shown()
        with self._lock:
            if shown == self._latest:
                return None
            self._latest = shown
        return _configuration(shown)


def _configuration(shown: ServerCredentials) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(shown.key, shown.chain)], root_certificates=shown.client_bundle)
