"""A certificate that nobody signed, for a port whose clients send a token and know no CA: as Kueue's metrics have it.

It lives in memory, is made at the start, and keeps tokens from who only listens on the wire.
"""

from __future__ import annotations

import datetime as dt
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LIFETIME = dt.timedelta(days=3650)
"""Longer than any process lives; nobody checks its end who does not check its signer."""
_SKEW = dt.timedelta(minutes=5)


def context(name: str, now: dt.datetime) -> ssl.SSLContext:
    """Return a server's context with a new key and certificate of this name. `now` has a time zone."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    with tempfile.TemporaryDirectory(prefix="gatelift-metrics-") as folder:  # the library reads keys from files only
        path = Path(folder) / "serving.pem"
        path.touch(mode=0o600)
        path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
        made.load_cert_chain(path)
    return made
