"""The certificate authority of the agents: makes CAs, signs agents' and the server's certificates, rotates by bundles.

Kept in one Secret that only the manager reads (`AuthorityState.to_secret`). Rotation is three steps, each safe by
itself: *announce* (a next CA is in every bundle that is handed out), *switch* (it signs, the old one stays trusted),
*retire* (the old one is trusted no more). Private keys are never logged and have no repr.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field, replace

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gatelift_wire.streams import identity

CA_LIFETIME = dt.timedelta(days=3650)
CLOCK_SKEW = dt.timedelta(minutes=5)
"""Certificates start to be valid this much earlier: the peer's clock may be behind."""

SEAL_KEY_BYTES = 32
"""Of the key of the leader's counter: as long as its MAC."""

REQUEST_BYTES_MAX = 16 * 1024
"""A signing request of one key is below 2 KiB; anything larger is no honest request."""


CURVES = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
"""Curves that TLS libraries take in certificates."""


class AuthorityError(Exception):
    """A request cannot be signed or a stored authority cannot be read; the text says why, in one line."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A CA: certificate and private key, PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorityState:
    """What is kept: the CA that signs, the one to come, and an old one that is still trusted."""

    current: KeyPair
    following: KeyPair | None = None
    old_certificate: bytes | None = None
    seal_key: bytes = field(default=b"", repr=False)
    """Seals the leader's counter for those who bring it back; stays over rotations."""

    @property
    def bundle(self) -> bytes:
        """Return all CA certificates that a peer has to trust now, PEM, the signing one first."""
        parts = [self.current.certificate]
        if self.following is not None:
            parts.append(self.following.certificate)
        if self.old_certificate is not None:
            parts.append(self.old_certificate)
        return b"".join(parts)

    def to_secret(self) -> dict[str, str]:
        """Return the `data` of the Secret (base64)."""
        plain = {"ca.crt": self.current.certificate, "ca.key": self.current.key}
        if self.following is not None:
            plain |= {"next.crt": self.following.certificate, "next.key": self.following.key}
        if self.old_certificate is not None:
            plain["old.crt"] = self.old_certificate
        if self.seal_key:
            plain["seal.key"] = self.seal_key
        return {name: base64.b64encode(value).decode() for name, value in plain.items()}

    @classmethod
    def from_secret(cls, data: dict[str, str]) -> AuthorityState:
        """Read the `data` of the Secret. Raises AuthorityError when a part is missing or broken."""
        try:
            plain = {name: base64.b64decode(value, validate=True) for name, value in data.items()}
            current = KeyPair(plain["ca.crt"], plain["ca.key"])
            following = KeyPair(plain["next.crt"], plain["next.key"]) if "next.crt" in plain else None
            state = cls(
                current=current, following=following, old_certificate=plain.get("old.crt"), seal_key=_seal_key(plain)
            )
            for pair in (state.current, state.following):
                if pair is not None:
                    _load(pair)
            if state.old_certificate is not None:
                _certificates(state.old_certificate)
        except AuthorityError:
            raise
        except (KeyError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise AuthorityError(
                "the Secret of the certificate authority is incomplete or broken (ca.crt and ca.key are needed); "
                "restore it from a backup, or delete it and enrol the agents anew"
            ) from error
        return state


def _seal_key(plain: dict[str, bytes]) -> bytes:
    """Return the key of the seals. A Secret from before there was one has its first CA's; a rotation writes it down."""
    return plain.get("seal.key") or hmac.new(plain["ca.key"], b"gatelift.dev/seal", hashlib.sha256).digest()


def new_state(now: dt.datetime) -> AuthorityState:
    """Make a first authority."""
    return AuthorityState(current=_new_ca(now), seal_key=secrets.token_bytes(SEAL_KEY_BYTES))


def announce(state: AuthorityState, now: dt.datetime) -> AuthorityState:
    """Put a next CA into the bundle. Raises AuthorityError while a rotation is under way."""
    if state.following is not None or state.old_certificate is not None:
        raise AuthorityError(
            "a rotation is under way: finish it with 'gatelift ca switch' and 'gatelift ca retire' first"
        )
    return replace(state, following=_new_ca(now))


def switch(state: AuthorityState) -> AuthorityState:
    """Sign with the next CA from now on; the present one stays trusted."""
    if state.following is None:
        raise AuthorityError("no next CA is announced: run 'gatelift ca announce' first and let every agent renew")
    return AuthorityState(current=state.following, old_certificate=state.current.certificate, seal_key=state.seal_key)


def retire(state: AuthorityState) -> AuthorityState:
    """Trust the old CA no more: certificates that it signed end with it."""
    if state.old_certificate is None:
        raise AuthorityError("there is no old CA to retire: run 'gatelift ca switch' first")
    return replace(state, old_certificate=None)


def key_digest(public_key: object) -> str:
    """Return the name of a key in WorkerCluster.status; AuthorityError for one that is not signed for here."""
    if not isinstance(public_key, ec.EllipticCurvePublicKey) or not isinstance(public_key.curve, CURVES):
        raise AuthorityError("the key is not an elliptic-curve key of a usual curve; make it with P-256")
    return identity.key_digest(public_key)


def fingerprints(bundle: bytes) -> frozenset[bytes]:
    """Return the names of the CAs of a bundle, for comparing with `issuer_of`."""
    return frozenset(each.fingerprint(hashes.SHA256()) for each in _certificates(bundle))


def issuer_of(certificate: bytes, bundle: bytes) -> bytes:
    """Return the name of the CA of the bundle that signed a certificate (PEM). AuthorityError when none did."""
    leaf = _certificates(certificate)[0]
    for each in _certificates(bundle):
        try:
            leaf.verify_directly_issued_by(each)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return each.fingerprint(hashes.SHA256())
    raise AuthorityError("certificate: no CA that is trusted here signed it; enrol the agent again")


def request_digest(request: bytes) -> str:
    """Return the key digest of a PEM signing request after checking its own signature."""
    return key_digest(_checked(request).public_key())


def sign_agent(state: AuthorityState, request: bytes, uri: str, lifetime: dt.timedelta, now: dt.datetime) -> bytes:
    """Sign a client certificate for the identity `uri`. The names in the request do not count.

    Returns the PEM certificate. Raises AuthorityError when the request is too large, malformed or its signature wrong.
    """
    checked = _checked(request)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, uri[-64:])])
    builder = _builder(state.current, name, checked.public_key(), lifetime, now)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)]), critical=False)
    return _signed(builder, state.current, ExtendedKeyUsageOID.CLIENT_AUTH)


def new_server(state: AuthorityState, names: tuple[str, ...], lifetime: dt.timedelta, now: dt.datetime) -> KeyPair:
    """Make key and certificate of the manager's gRPC ports for these DNS names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gatelift-manager")])
    builder = _builder(state.current, subject, key.public_key(), lifetime, now)
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
    )
    return KeyPair(_signed(builder, state.current, ExtendedKeyUsageOID.SERVER_AUTH), _key_pem(key))


def _certificates(text: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text)
    except ValueError as error:
        raise AuthorityError("certificate: is not PEM; enrol the agent again") from error


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _checked(request: bytes) -> x509.CertificateSigningRequest:
    if len(request) > REQUEST_BYTES_MAX:
        raise AuthorityError(
            f"request: {len(request)} bytes, {REQUEST_BYTES_MAX} allowed; send one PEM signing request"
        )
    try:
        parsed = x509.load_pem_x509_csr(request)
        key_digest(parsed.public_key())  # first: a signature of another kind of key may cost a hundred times as much
        valid = parsed.is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise AuthorityError("request: is no PEM certificate signing request; make it with the agent") from error
    if not valid:
        raise AuthorityError("request: its signature does not match its key; make it anew with the agent")
    return parsed


def _new_ca(now: dt.datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"gatelift-ca-{x509.random_serial_number() & 0xFFFFFFFF:08x}")]
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(sign_certificates=True), critical=True)
    )
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def _builder(
    ca: KeyPair, subject: x509.Name, public_key: object, lifetime: dt.timedelta, now: dt.datetime
) -> x509.CertificateBuilder:
    if not isinstance(public_key, ec.EllipticCurvePublicKey):
        raise AuthorityError("the key is not an elliptic-curve key; make it with P-256")
    issuer, _ = _load(ca)
    end = min(now + lifetime, issuer.not_valid_after_utc)
    if end <= now:
        raise AuthorityError("the certificate authority has run out; rotate it: gatelift ca announce, switch, retire")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(end)
    )


def _signed(builder: x509.CertificateBuilder, ca: KeyPair, purpose: x509.ObjectIdentifier) -> bytes:
    issuer, key = _load(ca)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return _pem(
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _load(pair: KeyPair) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    key = serialization.load_pem_private_key(pair.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AuthorityError("the certificate authority's key is not an elliptic-curve key; restore it from a backup")
    if certificate.public_key() != key.public_key():
        raise AuthorityError("the certificate authority's key is not its certificate's; restore both from one backup")
    return certificate, key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
