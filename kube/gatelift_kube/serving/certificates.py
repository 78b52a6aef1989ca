"""The daemon's own certificate authority and serving certificate: made, renewed, overlapped. Values in, values out.

The API server trusts a bundle. A new authority joins the bundle while the serving certificate is still the old one's,
and signs only the next serving certificate, which is due long after every API server has the new bundle. The old
authority leaves the bundle when it ends.
"""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=5 * 365)
AUTHORITY_RENEWED_BEFORE = timedelta(days=365)
"""Longer than a serving certificate lives, so no serving certificate outlives the authority that signed it."""
SERVING_LIFETIME = timedelta(days=90)
SERVING_RENEWED_BEFORE = timedelta(days=30)
CLOCK_SKEW = timedelta(minutes=5)
"""Certificates are valid from a little before now: clocks of API servers may be behind ours."""
AUTHORITIES_MAX = 3
"""Authorities kept in the bundle: the newest, the one before, one more that somebody made by hand."""

_FIELDS = ("ca.crt", "ca.key", "tls.crt", "tls.key")


class MaterialError(Exception):
    """What is kept is no certificate material; the text names the part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """PEM: `bundle` has all authorities, the newest first; `authority_key` is the newest's."""

    bundle: bytes
    authority_key: bytes = field(repr=False)
    certificate: bytes
    key: bytes = field(repr=False)

    def to_data(self) -> dict[str, str]:
        """Return the `data` of a Secret."""
        parts = (self.bundle, self.authority_key, self.certificate, self.key)
        return {name: base64.b64encode(part).decode() for name, part in zip(_FIELDS, parts, strict=True)}

    @classmethod
    def from_data(cls, data: dict[str, str]) -> Material:
        """Read the `data` of a Secret. MaterialError: a part is missing or broken."""
        try:
            bundle, authority_key, certificate, key = (base64.b64decode(data[name], validate=True) for name in _FIELDS)
            x509.load_pem_x509_certificates(bundle)
            x509.load_pem_x509_certificate(certificate)
            _load_key(authority_key)
            _load_key(key)
        except KeyError as error:
            raise MaterialError(f"{error.args[0]} is missing") from error
        except (ValueError, TypeError) as error:
            raise MaterialError(f"is no certificate material ({error})") from error
        return cls(bundle=bundle, authority_key=authority_key, certificate=certificate, key=key)


def make(names: tuple[str, ...], now: datetime) -> Material:
    """Return new material for these DNS names and addresses. `now` has a time zone."""
    authority, authority_key = _authority(now)
    certificate, key = _serving(names, authority, authority_key, now)
    return Material(bundle=_pem(authority), authority_key=_key_pem(authority_key), certificate=certificate, key=key)


def renewed(material: Material, names: tuple[str, ...], now: datetime) -> Material | None:
    """Return the material with what is due renewed; None when nothing is."""
    authorities = [one for one in x509.load_pem_x509_certificates(material.bundle) if one.not_valid_after_utc > now]
    leaf = x509.load_pem_x509_certificate(material.certificate)
    if not authorities:
        return make(names, now)
    if leaf.not_valid_after_utc - now < SERVING_RENEWED_BEFORE or not _names(leaf).issuperset(names):
        certificate, key = _serving(names, authorities[0], _load_key(material.authority_key), now)
        return Material(
            bundle=b"".join(map(_pem, authorities)),
            authority_key=material.authority_key,
            certificate=certificate,
            key=key,
        )
    if authorities[0].not_valid_after_utc - now < AUTHORITY_RENEWED_BEFORE:
        authority, authority_key = _authority(now)
        return Material(
            bundle=b"".join(map(_pem, [authority, *authorities][:AUTHORITIES_MAX])),
            authority_key=_key_pem(authority_key),
            certificate=material.certificate,
            key=material.key,
        )
    return None


def _authority(now: datetime) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"gatelift-webhooks {now:%Y-%m-%d}")])
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _serving(
    names: tuple[str, ...], authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey, now: datetime
) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gatelift-webhooks")])
    certificate = (
        _builder(subject, authority.subject, key.public_key(), now, SERVING_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return _pem(certificate), _key_pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    return {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the key is of another kind")
    return key
