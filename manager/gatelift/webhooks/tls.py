"""What handshakes at the webhooks' port are made with: the serving certificate, and whom the daemon lets in at all.

A context is made anew when either changes, so that a client's CA that was taken away is trusted no longer.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog

from gatelift_kube.serving.certificates import Material
from gatelift_kube.serving.material_context import serving_context

CLIENT_CA_BYTES_MAX = 256 * 1024
"""A bundle of some hundred CAs."""


class ClientCAError(Exception):
    """The file of `gatelift.webhookClientCa` cannot be used; one line that names it."""


class ServingTls:
    """Holds the context of the moment."""

    def __init__(self, client_ca: str = "") -> None:
        """`client_ca` names a PEM file of CAs: who has no certificate of theirs gets no further; "" lets anybody in."""
        self._path = Path(client_ca) if client_ca else None
        self._context: ssl.SSLContext | None = None
        self._of: tuple[Material, bytes] | None = None
        self._log = structlog.get_logger("gatelift.webhooks")

    def context(self) -> ssl.SSLContext:
        """Return what the next handshake is made with; `install` comes first."""
        if self._context is None:
            raise RuntimeError("no certificate has been installed")
        return self._context

    def install(self, material: Material) -> None:
        """Use this certificate, and the client's CAs as the file has them now. Reads and writes files.

        ClientCAError: there is no usable file, and none was before; afterwards the last one stays in use.
        """
        try:
            authorities = self._authorities()
            if (material, authorities) == self._of:
                return
            context = serving_context(material, authorities)
        except ClientCAError as error:
            if self._of is None:
                raise
            self._log.warning("the CAs of clients stay as they were", problem=str(error))
            authorities = self._of[1]
            context = serving_context(material, authorities)
        self._context, self._of = context, (material, authorities)

    def _authorities(self) -> bytes:
        if self._path is None:
            return b""
        try:
            with self._path.open("rb") as file:
                found = file.read(CLIENT_CA_BYTES_MAX + 1)
        except OSError as error:
            raise ClientCAError(f"gatelift.webhookClientCa: {self._path} cannot be read ({error.strerror})") from error
        if len(found) > CLIENT_CA_BYTES_MAX:
            raise ClientCAError(f"gatelift.webhookClientCa: {self._path} has more than {CLIENT_CA_BYTES_MAX} bytes")
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=found.decode("ascii"))
        except (ValueError, ssl.SSLError) as error:
            raise ClientCAError(
                f"gatelift.webhookClientCa: {self._path} has no CA certificate in PEM; write the CA that signed the "
                "certificate of the API server's AdmissionConfiguration"
            ) from error
        return found
