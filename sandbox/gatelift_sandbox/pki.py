"""Keys, certificates and kubeconfigs of a cluster made of processes. One CA signs all; used by `processes`."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 365
"""A sandbox is thrown away long before."""
BACKDATED = dt.timedelta(hours=1)
"""So that a container or machine whose clock is a little behind accepts a fresh certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A certificate with its key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority in memory; ECDSA P-256, which takes under a millisecond a key."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            _builder(subject, subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(ca=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)
        self.key_pem = _pem(self._key)

    def client(self, user: str, *groups: str) -> Signed:
        """Sign a client certificate; Kubernetes reads user and groups from its subject (CN and O)."""
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        names.append(x509.NameAttribute(NameOID.COMMON_NAME, user))
        return self._sign(x509.Name(names), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, *hosts: str) -> Signed:
        """Sign a serving certificate for these DNS names and IP addresses."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def _sign(self, subject: x509.Name, usage: x509.ObjectIdentifier, hosts: tuple[str, ...]) -> Signed:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(h) for h in hosts]), critical=False
            )
        certificate = builder.sign(self._key, hashes.SHA256())
        return Signed(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=_pem(key))


def key_pair() -> Signed:
    """Return a bare key pair (for ServiceAccount tokens); `certificate` holds the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Signed(certificate=public, key=_pem(key))


def kubeconfig(*, name: str, server: str, authority: bytes, client: Signed) -> str:
    """Return a kubeconfig with everything inside, usable from any folder; context and cluster carry `name`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


def write_private(path: Path, content: bytes | str) -> Path:
    """Write a file that only its owner may read (0600), whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".new")
    scratch.unlink(missing_ok=True)
    scratch.touch(mode=0o600, exist_ok=False)
    scratch.write_bytes(content.encode() if isinstance(content, str) else content)
    scratch.replace(path)
    return path


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
    )


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
