"""Who a peer is: the name of a worker cluster in its certificate. A name inside a message never counts.

The identity is the one URI `gatelift://cluster/<name>` among the certificate's alternative names; other names beside it
are allowed and mean nothing. Neighbours: the gRPC adapters of both ends, the certificate authority.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

from gatelift_wire.values.violations import WireError

URI_PREFIX = "gatelift://cluster/"
CLUSTER_NAME_MAX = 63
"""A DNS label (RFC 1123): the name serves as a label value, and in names of objects."""

CERTIFICATE_BYTES_MAX = 64 * 1024
"""One certificate; the handshake has already verified it, so this only bounds what is parsed."""

AUTH_CERTIFICATE = "x509_pem_cert"
"""Key of gRPC's auth context under which the peer's verified certificate is found (PEM)."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class IdentityError(WireError):
    """A name or certificate is not an identity; the text names the field, the rule and the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What a verified certificate says. `key_digest`: SHA-256 of the public key (SubjectPublicKeyInfo), hex."""

    cluster: str
    key_digest: str
    not_before: dt.datetime
    not_after: dt.datetime


def check_cluster_name(name: str) -> str:
    """Return `name` if it may name a worker cluster. Raises `IdentityError`."""
    if len(name) > CLUSTER_NAME_MAX or not _LABEL.fullmatch(name):
        shown = name if len(name) <= CLUSTER_NAME_MAX else name[:CLUSTER_NAME_MAX] + "..."
        raise IdentityError(
            f"cluster name {shown!r}: must be a DNS label (a-z, 0-9 and -, at most {CLUSTER_NAME_MAX} characters, "
            "beginning and ending with a letter or digit); choose another name"
        )
    return name


def uri_of(cluster: str) -> str:
    """Return the identity of a cluster as it stands in its certificate. Raises `IdentityError` for a bad name."""
    return URI_PREFIX + check_cluster_name(cluster)


def cluster_of(uri: str) -> str:
    """Return the cluster that a URI names. Raises `IdentityError` unless it is exactly `gatelift://cluster/<name>`."""
    if not uri.startswith(URI_PREFIX):
        raise IdentityError(f"identity {uri[:128]!r}: must be {URI_PREFIX}<name>; enrol the agent again")
    return check_cluster_name(uri.removeprefix(URI_PREFIX))


def key_digest(public_key: CertificatePublicKeyTypes) -> str:
    """Return the SHA-256 of a public key's SubjectPublicKeyInfo, hex: by this a key is approved and known."""
    encoded = public_key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(encoded).hexdigest()


def peer_of(certificate: bytes) -> Peer:
    """Read a certificate (PEM, first of a chain, or DER) that the TLS handshake has verified.

    Raises `IdentityError` when it cannot be read, names no cluster, or names more than one.
    """
    parsed = _parsed(certificate)
    try:
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uris = names.get_values_for_type(x509.UniformResourceIdentifier)
        digest = key_digest(parsed.public_key())
    except x509.ExtensionNotFound:
        uris, digest = [], ""
    except (ValueError, UnsupportedAlgorithm) as error:
        raise IdentityError(f"certificate: cannot be read ({error}); enrol the agent again") from None
    ours = [uri for uri in uris if uri.startswith("gatelift:")]
    if len(ours) != 1:
        raise IdentityError(
            f"certificate: must have exactly one alternative name {URI_PREFIX}<name>, has {len(ours)}; "
            "enrol the agent again"
        )
    return Peer(
        cluster=cluster_of(ours[0]),
        key_digest=digest,
        not_before=parsed.not_valid_before_utc,
        not_after=parsed.not_valid_after_utc,
    )


def peer_of_context(auth_context: Mapping[str, Iterable[bytes]]) -> Peer:
    """Read gRPC's auth context of a call. Raises `IdentityError` when the peer showed no certificate of an agent."""
    certificates = list(auth_context.get(AUTH_CERTIFICATE, ()))
    if len(certificates) != 1:
        raise IdentityError("certificate: the client showed none; agents connect with the certificate they enrolled")
    return peer_of(certificates[0])


def _parsed(certificate: bytes) -> x509.Certificate:
    if len(certificate) > CERTIFICATE_BYTES_MAX:
        raise IdentityError(
            f"certificate: has {len(certificate)} bytes, at most {CERTIFICATE_BYTES_MAX} are read; enrol again"
        )
    try:
        if certificate.lstrip().startswith(b"-----BEGIN"):
            return x509.load_pem_x509_certificate(certificate)
        return x509.load_der_x509_certificate(certificate)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise IdentityError(f"certificate: cannot be read ({error}); enrol the agent again") from None
