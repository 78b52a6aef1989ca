"""How the agent gets its certificate, and keeps it valid: key, signing request, the unary call `Enroll`.

First start: a bootstrap token and a person's approval. Later: renewal over the stream; after a long cut the same key
renews through `Enroll` without a token. The manager's CA is trusted by the token's hash of it, or by a file.

An identity that the manager does not take any more (`refused`) is replaced by a new key where a token is configured
that it was not enrolled with; the old one is kept until the new one has its certificate. So is one that does not know
the manager's authority, where that token names it: nobody who is not trusted can be heard to refuse.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exception

from gatelift_agent.adapters.identity_store import Identity, IdentityChangedError, IdentityStore
from gatelift_agent.adapters.targets import Endpoint
from gatelift_kube.process.waiting import failure
from gatelift_wire.streams import identity as wire_identity
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import tokens

METHOD = "/gatelift.wire.v1.EnrolService/Enroll"

CALL_SECONDS = 40.0
"""Longer than the manager takes to answer (30 s): its *ask again* arrives as such."""

ASK_AGAIN_SECONDS_MIN = 0.5
ASK_AGAIN_SECONDS_MAX = 30.0

RENEW_SHARE = 2 / 3
"""A certificate is renewed when this part of its life has passed: two days' cut fits into a six-day one."""

NO_TARGET = "enrol: no valid certificate is there, and no address to enrol at; set enrol: host:port"

EXPIRY_MARGIN_SECONDS = 30.0
"""A certificate that ends within this is not used for a new stream any more."""


class EnrolmentError(Exception):
    """Enrolment was refused, or cannot be tried; one line with the way out."""


class _RefusedError(EnrolmentError):
    """The manager said no."""


class _NotYetError(EnrolmentError):
    """Nobody answers, or a person has to approve first; it is asked again after so many seconds."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """From when to when a certificate is valid (UTC)."""

    not_before: dt.datetime
    not_after: dt.datetime

    def seconds_left(self, now: dt.datetime) -> float:
        """Return how long it is still valid; negative when it is over."""
        return (self.not_after - now).total_seconds()

    def renew_in(self, now: dt.datetime) -> float:
        """Return in how many seconds it wants renewal; 0 or less: now."""
        life = (self.not_after - self.not_before).total_seconds()
        return self.seconds_left(now) - life * (1 - RENEW_SHARE)


class Enrolment:
    """The agent's identity over time. `current` is what new streams use."""

    def __init__(
        self,
        store: IdentityStore,
        cluster: str,
        target: Endpoint | None,
        token: str,
        ca_bundle: bytes,
        *,
        utc_now: Callable[[], dt.datetime],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._target = target
        self._token = token
        self._ca_bundle = ca_bundle
        self._utc_now = utc_now
        self._log = structlog.get_logger("gatelift.agent.enrolment")
        self._lock = asyncio.Lock()
        self._anew = False
        self._doubted = False
        self.current: Identity | None = None
        self.waiting_for = ""
        """What people see while there is no certificate."""

    def refused(self, text: str) -> bool:
        """Take that the manager does not take this identity any more; True: `enrol_anew` is to be called.

        `text` is the manager's. Without a token that was not used yet one line is logged: the way out.
        """
        if self._has_new_token(self.current):
            self._log.warning("identity refused, enrolling anew with the configured token", why=text)
            return True
        self._log.error(
            "identity refused",
            why=text,
            way_out=f"put the token that 'gatelift cluster add {self._cluster}' prints in the management cluster into"
            " the agent's configuration (token) and restart the agent",
        )
        return False

    async def enrol_anew(self) -> None:
        """Get a certificate for a new key by the configured token; waits for a person, raises as `ready` does.

        Where it comes to nothing the old identity stays, and the next refusal of it begins anew.
        """
        self._anew = True
        try:
            async with self._lock:
                kept = await self._store.load()
                if kept is not None and self.current is not None and kept.key != self.current.key:
                    self.current = kept  # another replica was faster
                else:
                    await self._replace(kept or self.current)
        finally:
            self._anew = False

    async def ready(self) -> Identity:
        """Return an identity with a valid certificate; enrols, and waits for a person, if need be.

        Raises EnrolmentError when it is refused, IdentityStoreError when it cannot be kept.
        """
        if self._anew:
            raise EnrolmentError(f"the agent is being enrolled anew: {self.waiting_for or 'asking'}")
        async with self._lock:
            if self.current is None:
                self.current = _matching(await self._store.load())
            if self.current is None:
                self.current = Identity(key=await asyncio.to_thread(new_key), bundle=self._ca_bundle)
                await self._save(self.current)
            if self._doubted or not self._is_valid(self.current):
                self._doubted = False
                await self._mend(self.current)
            while not self._is_valid(self.current):
                try:
                    await self._ask_for(self._lacking)
                except _RefusedError:
                    if not self.current.certificate or not self._has_new_token(self.current):
                        raise
                    await self._replace(self.current)
            return self.current

    def unreached(self) -> None:
        """Take that no connection came about: the certificates may not match any more, at either end."""
        self._doubted = True

    def usable(self) -> bool:
        """Say whether a new stream may use what is there."""
        return self.current is not None and not self._anew and self._is_valid(self.current)

    def signing_request(self) -> bytes:
        """Return a request for the next certificate of the same key and name. EnrolmentError before `ready`."""
        if self.current is None:
            raise EnrolmentError("there is no key yet; wait until the agent is enrolled")
        return signing_request(self.current.key, self._cluster)

    async def install(self, certificate: bytes, ca_bundle: bytes) -> None:
        """Use and keep a renewed certificate, if it is ours. Raises EnrolmentError, IdentityStoreError."""
        if self.current is None:
            raise EnrolmentError("a certificate came before there was a key; it is dropped")
        await self._install(self.current, certificate, ca_bundle)

    async def _install(self, current: Identity, certificate: bytes, ca_bundle: bytes) -> Identity:
        _check(certificate, current.key, self._cluster)
        fresh = replace(current, certificate=certificate, bundle=ca_bundle or current.bundle)
        await self._save(fresh)
        self.current = fresh
        self._log.info("certificate installed", valid_until=validity(certificate).not_after.isoformat())
        return fresh

    async def _save(self, identity: Identity) -> None:
        """Keep an identity. Where another replica has kept one meanwhile, that is used from now on, and this raises."""
        try:
            await self._store.save(identity)
        except IdentityChangedError:
            self.current = None  # what is there is read by whoever asks next, if not now
            self.current = _matching(await self._store.load())
            raise

    def renew_in(self) -> float:
        """Return in how many seconds the certificate wants renewal."""
        if self.current is None or not self.current.certificate:
            return ASK_AGAIN_SECONDS_MAX
        return validity(self.current.certificate).renew_in(self._utc_now())

    def _is_valid(self, current: Identity) -> bool:
        if not current.certificate:
            return False
        return validity(current.certificate).seconds_left(self._utc_now()) > EXPIRY_MARGIN_SECONDS

    def _lacking(self) -> Identity | None:
        return None if self.current is None or self._is_valid(self.current) else self.current

    def _has_new_token(self, current: Identity | None) -> bool:
        used = current.token_digest if current is not None else b""
        return bool(self._token) and tokens.digest(self._token).encode() != used

    async def _replace(self, old: Identity | None) -> None:
        """Enrol a new key in the place of an identity that is worth nothing any more; it is kept until then."""
        if old is None:
            return
        if not old.next_key:
            old = replace(old, next_key=await asyncio.to_thread(new_key))
            await self._save(old)
        self.current = old
        fresh = Identity(key=old.next_key, bundle=self._ca_bundle)
        await self._ask_for(lambda: fresh if self.current is old else None)

    async def _ask_for(self, lacking: Callable[[], Identity | None]) -> None:
        """Ask for a certificate of the identity that lacks one until none does, as long as a person takes to approve.

        Raises EnrolmentError when it is refused.
        """
        asking = AsyncRetrying(
            retry=retry_if_exception_type(_NotYetError), wait=wait_exception(_pause), before_sleep=self._wait_for
        )
        async for attempt in asking:
            with attempt:
                identity = lacking()
                if identity is not None:
                    await self._ask(identity)

    async def _ask(self, current: Identity) -> None:
        """Ask once. Raises _NotYetError when it is to be asked again, EnrolmentError when it is refused."""
        if self._target is None:
            raise EnrolmentError(NO_TARGET)
        token = self._token if not current.certificate else ""
        bundle = current.bundle or await self._pinned_bundle()
        request = pb.EnrollRequest(
            cluster=self._cluster, request=signing_request(current.key, self._cluster), token=token
        )
        response = await _call(self._target, bundle, request)
        if response.status == pb.ENROLL_STATUS_APPROVED:
            self.waiting_for = ""
            used = tokens.digest(token).encode() if token else current.token_digest
            enrolled = replace(current, bundle=bundle, token_digest=used)
            fresh = await self._install(enrolled, response.certificate, response.ca_bundle)
            if not self._is_valid(fresh):
                raise EnrolmentError("certificate: is not valid by this machine's clock; set the clock and try again")
        elif response.status == pb.ENROLL_STATUS_REFUSED:
            raise _RefusedError(f"enrolment of {self._cluster} was refused: {response.text}")
        else:
            digest = wire_identity.key_digest(_private_key(current.key).public_key())
            pause = min(ASK_AGAIN_SECONDS_MAX, max(ASK_AGAIN_SECONDS_MIN, response.retry_after_seconds))
            raise _NotYetError(f"{response.text or 'waiting for approval'}; the key of this agent is {digest}", pause)

    def _wait_for(self, state: RetryCallState) -> None:
        text = str(failure(state))
        if text != self.waiting_for:
            self._log.info("not enrolled yet", cluster=self._cluster, why=text)
        self.waiting_for = text

    async def _mend(self, current: Identity) -> None:
        """Make good what a change of the authority did that this identity could not hear of (HD-632).

        The enrolment port shows its certificate and all CAs that are trusted there. A certificate of none of them is
        renewed by its key. Where ours have not signed the port's, nobody there can be asked or heard, and the CA that
        an unused token names counts.
        """
        try:
            shown = await self._shown() if current.certificate else []
        except EnrolmentError:
            return
        if not shown:
            return
        if _is_signed(shown[0], current.bundle):
            if not _is_signed(current.certificate, b"".join(shown[1:])):
                with suppress(EnrolmentError):  # as it is for now; who is not taken asks again
                    await self._ask(current)
        elif self._has_new_token(current) and _is_signed(shown[0], _pinned(shown, self._token)):
            self._log.warning("the authority is another one, enrolling anew with the configured token")
            await self._replace(current)

    async def _shown(self) -> list[bytes]:
        """Return the certificates that the enrolment port shows, its own first. Trusts nothing."""
        if self._target is None:
            raise EnrolmentError(NO_TARGET)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await asyncio.to_thread(_served_chain, self._target)
        except (OSError, TimeoutError, ssl.SSLError) as error:
            raise _unanswered(self._target, f"cannot be reached ({error})") from error

    async def _pinned_bundle(self) -> bytes:
        """Return the CA that the token's hash names, read from the enrolment port itself."""
        if self._ca_bundle:
            return self._ca_bundle
        if not self._token:
            raise EnrolmentError("token: is needed for the first certificate; 'gatelift cluster add NAME' makes one")
        shown = await self._shown()
        pinned, address = _pinned(shown, self._token), self._target.address if self._target is not None else ""
        if not pinned:
            raise EnrolmentError(
                f"enrol {address}: its certificate is not signed by the CA that the token names;"
                " use the token and the address of the same manager"
            )
        if not _is_signed(shown[0], pinned):
            raise EnrolmentError(
                "token: names a CA that signs no more since 'gatelift ca switch'; use a new one, which"
                f" 'gatelift cluster add {self._cluster}' prints"
            )
        return pinned


def _matching(kept: Identity | None) -> Identity | None:
    """Return an identity without a certificate of another key: a crash came between the writing of the two."""
    if kept is None or not kept.certificate:
        return kept
    try:
        same = x509.load_pem_x509_certificate(kept.certificate).public_key() == _private_key(kept.key).public_key()
    except ValueError as error:
        raise EnrolmentError("certificate: cannot be read; remove the identity and enrol the agent again") from error
    return kept if same else replace(kept, certificate=b"")


def new_key() -> bytes:
    """Return a new private key (P-256), PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def signing_request(key: bytes, cluster: str) -> bytes:
    """Return a signing request of the key for this cluster's identity, PEM. EnrolmentError for an unreadable key."""
    private = _private_key(key)
    uri = x509.UniformResourceIdentifier(wire_identity.uri_of(cluster))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, cluster)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    builder = builder.add_extension(x509.SubjectAlternativeName([uri]), critical=False)
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def validity(certificate: bytes) -> Validity:
    """Return when a certificate (PEM, first of a chain) is valid. EnrolmentError when it cannot be read."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise EnrolmentError("certificate: cannot be read; enrol the agent again") from error
    return Validity(not_before=parsed.not_valid_before_utc, not_after=parsed.not_valid_after_utc)


def _private_key(key: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except ValueError as error:
        raise EnrolmentError("key: cannot be read; remove the identity and enrol the agent again") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise EnrolmentError("key: is not an elliptic-curve key; remove the identity and enrol the agent again")
    return private


def _check(certificate: bytes, key: bytes, cluster: str) -> None:
    """Refuse a certificate of another key or name: it would only be found out at the next dial."""
    try:
        parsed = x509.load_pem_x509_certificate(certificate)
        peer = wire_identity.peer_of(certificate)
    except (ValueError, wire_identity.IdentityError) as error:
        raise EnrolmentError(f"certificate: cannot be used ({error}); it is dropped") from error
    if parsed.public_key() != _private_key(key).public_key():
        raise EnrolmentError("certificate: is for another key; it is dropped")
    if peer.cluster != cluster:
        raise EnrolmentError(f"certificate: is for cluster {peer.cluster}, this is {cluster}; it is dropped")


def _pause(error: BaseException) -> float:
    return error.seconds if isinstance(error, _NotYetError) else 0.0


def _unanswered(target: Endpoint, why: str) -> _NotYetError:
    return _NotYetError(f"enrol {target.address}: {why}; it is tried again", ASK_AGAIN_SECONDS_MAX / 10)


async def _call(target: Endpoint, bundle: bytes, request: pb.EnrollRequest) -> pb.EnrollResponse:
    credentials = grpc.ssl_channel_credentials(root_certificates=bundle)
    async with grpc.aio.secure_channel(target.address, credentials, options=target.options()) as channel:
        call = channel.unary_unary(
            METHOD,
            request_serializer=pb.EnrollRequest.SerializeToString,
            response_deserializer=pb.EnrollResponse.FromString,
        )
        try:
            response: pb.EnrollResponse = await call(request, timeout=CALL_SECONDS)
        except grpc.aio.AioRpcError as error:
            text = (error.details() or error.code().name).splitlines()[0]
            raise _unanswered(target, f"no answer ({text})") from error
    return response


def _pinned(shown: list[bytes], token: str) -> bytes:
    """Return which of the certificates that are shown is the CA that a token names; b"" where none is."""
    wanted = tokens.parse(token).ca_hash
    return next((each for each in shown if tokens.ca_hash(each) == wanted), b"")


def _is_signed(certificate: bytes, bundle: bytes) -> bool:
    """Say whether one of the CAs of a bundle has signed a certificate (PEM)."""
    with suppress(ValueError):
        leaf = x509.load_pem_x509_certificate(certificate)
        for each in x509.load_pem_x509_certificates(bundle):
            with suppress(ValueError, TypeError, InvalidSignature):
                leaf.verify_directly_issued_by(each)
                return True
    return False


def _served_chain(target: Endpoint) -> list[bytes]:
    """Return the certificates (PEM) that the enrolment port shows. Trusts nothing: the caller compares hashes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with target.connect(CALL_SECONDS) as plain, context.wrap_socket(plain, server_hostname=target.tls_name) as secure:
        inner = secure._sslobj  # type: ignore[attr-defined]  # noqa: SLF001  # the chain is public from 3.13 on only
        shown = inner.get_unverified_chain() or []
    found = []
    for each in shown:
        with suppress(ValueError):
            der = each.public_bytes(1)  # 1: ENCODING_PEM of _ssl
            found.append(der.encode() if isinstance(der, str) else der)
    return found


def read_bundle(path: str) -> bytes:
    """Return a CA bundle from a file, empty for no path. EnrolmentError when it cannot be read."""
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise EnrolmentError(f"caFile {path}: cannot be read ({error.strerror}); name a readable PEM bundle") from error
