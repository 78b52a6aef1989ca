"""The gRPC server of `Enroll`: TLS authenticated by the server only, since who asks here has no certificate yet.

Checks sizes and signatures, hands the question to the core, waits a bounded time for its answer. A burst of requests is
answered *ask again*, never queued without limit. A call without a body holds nothing but its connection's place; of
whoever shows a token that nobody expects no signature is looked at, and his answer takes its time. Neighbours: `gate`
(who gets in), `signing` (who goes first).
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from gatelift.adapters import authority
from gatelift.adapters.gate import Gate, GateLimits
from gatelift.adapters.handshakes import ServerCredentials, credentials_of_now
from gatelift.adapters.known_addresses import KnownAddresses
from gatelift.adapters.signing import Rank, Signing, SigningBusyError
from gatelift.core.api.commands import AnswerEnrolment, EnrolmentVerdict, IssueCertificate
from gatelift.core.api.events import CertificateIssued, EnrolmentAsked, Event
from gatelift_kube.process.repetitions import Repetitions
from gatelift_kube.process.tasks import spawn
from gatelift_wire.streams import identity
from gatelift_wire.v1 import agent_pb2 as pb

SERVICE = "gatelift.wire.v1.EnrolService"

ANSWER_SECONDS = 30.0
"""How long the core may take: two writes and a signature."""

RETRY_SECONDS = 3.0
"""How soon an agent that waits for a person asks again."""

ANSWER_TOLD_SECONDS = 600.0
"""How often the same answer to the same cluster is worth a line: a person may come tomorrow."""

REQUESTS_MAX = 64
"""Requests being answered; each agent asks one at a time."""

BODY_SECONDS = 3.0
"""From the call to the end of its body, which an agent writes at once."""

STRANGER_SECONDS = 3.0
"""Before who proves nothing has his answer: his next question comes no sooner. An agent waits as long by itself."""

CALLS_PER_CONNECTION = 2
"""An agent makes one."""

REQUEST_BYTES_MAX = 32 * 1024
"""A signing request, a certificate and a signature are below 8 KiB."""

CONNECTIONS_MAX = 512
"""Anybody gets beyond the handshake here: whoever comes displaces what has been unfinished for longest."""

CONNECTIONS_PER_SECOND = 100.0
"""Handshakes that are begun, each a millisecond of CPU and more. A fleet enrols once."""

UNANSWERED_BYTES_MAX = REQUEST_BYTES_MAX + 16 * 1024
"""Of one connection: a request, and the handshake and headers before it."""

GATE = GateLimits(
    connections_max=2 * CONNECTIONS_MAX,
    unproven_max=CONNECTIONS_MAX,
    pace=CONNECTIONS_PER_SECOND,
    unproven_bytes_max=UNANSWERED_BYTES_MAX,
    bytes_max=UNANSWERED_BYTES_MAX,
)

_OPTIONS = (
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_concurrent_streams", CALLS_PER_CONNECTION),
    ("grpc.max_connection_idle_ms", 60_000),
    ("grpc.max_connection_age_ms", 300_000),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.so_reuseport", 0),
)
"""Anyone may knock at this port, so that a connection holds little and not for long."""

_STATUS = {
    EnrolmentVerdict.PENDING: pb.ENROLL_STATUS_PENDING,
    EnrolmentVerdict.APPROVED: pb.ENROLL_STATUS_APPROVED,
    EnrolmentVerdict.REFUSED: pb.ENROLL_STATUS_REFUSED,
}


class EnrolServer:
    """Serves `EnrolService.Enroll`. `leads` says whether this process may answer.

    `expects` says of a cluster and a token whether they belong together; it decides who goes first, and nothing else.
    """

    def __init__(
        self,
        post: Callable[[Event], None],
        state: Callable[[], authority.AuthorityState],
        server_pair: Callable[[], authority.KeyPair],
        leads: Callable[[], bool],
        expects: Callable[[str, str], bool],
        *,
        limits: GateLimits = GATE,
        known: KnownAddresses | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._post = post
        self._state = state
        self._server_pair = server_pair
        self._leads = leads
        self._expects = expects
        self._pause = pause
        self.gate = Gate("enrolment", limits, known if known is not None else KnownAddresses())
        self._signing = Signing()
        self._answering = 0
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[AnswerEnrolment]] = {}
        self._server: grpc.aio.Server | None = None
        self._log = structlog.get_logger("gatelift.enrol")
        self._repetitions = Repetitions(ANSWER_TOLD_SECONDS)
        self._refusals = Repetitions()  # of strangers: a line a minute for each reason, whatever names they think of
        self.port = 0

    async def start(self, address: str) -> None:
        """Listen on `host:port` (port 0 takes a free one). Raises RuntimeError when the address is taken."""
        server = grpc.aio.server(options=_OPTIONS)  # calls are bounded by connections; those that have a body below
        handlers = {"Enroll": grpc.stream_unary_rpc_method_handler(self._enroll)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

        inner_port = server.add_secure_port("127.0.0.1:0", credentials_of_now(self._shown))
        await server.start()
        self._server = server
        await self.gate.open(address, inner_port)
        self.port = self.gate.port

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.stop(grace=1.0)
        await self.gate.close()
        self._signing.stop()

    def _shown(self) -> ServerCredentials:
        """Return the server's certificate and, behind it, all CAs: an agent finds there the one its token names."""
        pair = self._server_pair()
        return ServerCredentials(key=pair.key, chain=pair.certificate + self._state().bundle)

    def answer(self, command: AnswerEnrolment) -> None:
        """Hand an answer to whoever waits for it."""
        waiting = self._waiting.get(command.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(command)

    def issue(self, command: IssueCertificate, lifetime: dt.timedelta, now: dt.datetime) -> None:
        """Sign beside the loop and post the outcome later; what came in a session goes first."""
        spawn(f"certificate of {command.cluster}", self._issue(command, lifetime, now))

    async def _issue(self, command: IssueCertificate, lifetime: dt.timedelta, now: dt.datetime) -> None:
        rank = Rank.SESSION if command.key_digest else Rank.EXPECTED
        try:
            issued = await self._signing.run(rank, command.cluster, _signed, self._state(), command, lifetime, now)
        except SigningBusyError as error:
            issued = _unsigned(command, f"{error}; ask again")
        self._post(issued)

    async def _enroll(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        """Answer one call. Until its body is there it is nobody's, and ends soon."""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await anext(requests, b"")
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"no request came within {BODY_SECONDS:g} s")
            raise
        peer = context.peer()
        self.gate.begins_answer(peer)
        self._answering += 1
        try:
            if self._answering > REQUESTS_MAX:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "many requests are being answered; ask again")
            answered, known = await self._answered(data, context)
        finally:
            self._answering -= 1
            self.gate.answered(peer)
        if not known:
            await self._pause(STRANGER_SECONDS)
        return answered

    async def _answered(self, data: bytes, context: Any) -> tuple[bytes, bool]:
        """Return the answer, and whether it is for somebody who is expected."""
        try:
            request = pb.EnrollRequest.FromString(data)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "request: is not an EnrollRequest")
            raise
        if not self._leads():
            return _response(EnrolmentVerdict.PENDING, "this manager is a standby; ask again"), True
        request_id = next(self._ids)
        try:
            event = await self._question(request_id, request, self.gate.address_of(context.peer()))
        except (authority.AuthorityError, identity.IdentityError) as error:
            return _response(EnrolmentVerdict.REFUSED, str(error)), False
        except SigningBusyError as error:
            return _response(EnrolmentVerdict.PENDING, f"{error}; ask again"), False
        waiting = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        self._post(event)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await waiting
        except TimeoutError:
            return _response(EnrolmentVerdict.PENDING, "the manager is busy; ask again"), True
        finally:
            self._waiting.pop(request_id, None)
        if answer.verdict is EnrolmentVerdict.APPROVED:
            self.gate.recognised(context.peer(), request.cluster)
        self._tell(request.cluster, answer)
        return _response(answer.verdict, answer.text, answer.certificate, answer.ca_bundle), not answer.why

    async def _question(self, request_id: int, request: pb.EnrollRequest, address: str) -> EnrolmentAsked:
        """Check what can be checked without the core: name, size, and the request's own signature.

        That signature proves that whoever asks holds the key, so no token is needed to renew with a key that was
        approved. A replayed request yields a certificate that only the key's owner can use. Of who shows a token that
        is not expected nothing is checked, and nothing taken for proven: no key is asked about.
        """
        cluster = identity.check_cluster_name(request.cluster)
        digest = ""
        expected = bool(request.token) and self._expects(cluster, request.token)
        if expected or not request.token:
            rank = Rank.EXPECTED if expected else Rank.STRANGER
            digest = await self._signing.run(rank, address, authority.request_digest, request.request)
        return EnrolmentAsked(
            request_id=request_id, cluster=cluster, token=request.token, key_digest=digest, request=request.request
        )

    def _tell(self, cluster: str, answer: AnswerEnrolment) -> None:
        """Log an answer; an agent that waits for a person is given the same one every few seconds."""
        if answer.why:
            untold = self._refusals.untold(answer.why)
            if untold is not None:
                self._log.warning(
                    "enrolment", cluster=cluster, verdict=answer.verdict.value, text=answer.why, times_before=untold
                )
            return
        if self._repetitions.untold((cluster, answer.verdict, answer.text)) is not None:
            log = self._log.warning if answer.verdict is EnrolmentVerdict.REFUSED else self._log.info
            log("enrolment", cluster=cluster, verdict=answer.verdict.value, text=answer.text)


def _signed(
    state: authority.AuthorityState, command: IssueCertificate, lifetime: dt.timedelta, now: dt.datetime
) -> CertificateIssued:
    try:
        uri = identity.uri_of(command.cluster)
        _check_key(command)
        certificate = authority.sign_agent(state, command.request, uri, lifetime, now)
    except (authority.AuthorityError, identity.IdentityError) as error:
        return _unsigned(command, str(error))
    return CertificateIssued(request_id=command.request_id, certificate=certificate, ca_bundle=state.bundle)


def _unsigned(command: IssueCertificate, text: str) -> CertificateIssued:
    return CertificateIssued(request_id=command.request_id, certificate=b"", ca_bundle=b"", text=text)


def _check_key(command: IssueCertificate) -> None:
    """Raise AuthorityError when the request is of another key than the one that was approved."""
    if command.key_digest and authority.request_digest(command.request) != command.key_digest:
        raise authority.AuthorityError(
            "request: is of another key than the approved one; renew with the same key, or enrol anew with a token"
        )


def _response(verdict: EnrolmentVerdict, text: str, certificate: bytes = b"", ca_bundle: bytes = b"") -> bytes:
    return pb.EnrollResponse(
        status=_STATUS[verdict],
        certificate=certificate,
        ca_bundle=ca_bundle,
        text=text,
        retry_after_seconds=RETRY_SECONDS,
    ).SerializeToString()
