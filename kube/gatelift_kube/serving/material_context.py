"""What handshakes at a port of webhooks are made with, of the material that is kept. Writes a file for a moment."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from gatelift_kube.serving.certificates import Material


def serving_context(material: Material, authorities: bytes = b"") -> ssl.SSLContext:
    """Return a context with this certificate; with `authorities` (PEM) only for who has one of theirs.

    The library reads keys from files only; they are gone at once.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if authorities:
        context.load_verify_locations(cadata=authorities.decode("ascii"))
        context.verify_mode = ssl.CERT_REQUIRED
    with tempfile.TemporaryDirectory(prefix="gatelift-webhooks-") as folder:
        path = Path(folder) / "serving.pem"
        path.touch(mode=0o600)
        path.write_bytes(material.key + material.certificate)
        context.load_cert_chain(path)
    return context
