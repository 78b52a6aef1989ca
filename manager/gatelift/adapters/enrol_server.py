"""The gRPC server of `Enroll`: TLS authenticated by the server only, since who asks here has no certificate yet.

Checks signatures and sizes, hands the question to the core, waits a bounded time for its answer. A burst of requests is
answered *ask again*, never queued without limit.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from gatelift.adapters import authority
from gatelift.adapters.handshakes import Shown, credentials_of_now
from gatelift.core.commands import AnswerEnrolment, EnrolmentVerdict, IssueCertificate
from gatelift.core.events import CertificateIssued, EnrolmentAsked, Event
from gatelift_kube.repetitions import Repetitions
from gatelift_wire import identity
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

REQUEST_BYTES_MAX = 64 * 1024
"""A signing request, a certificate and a signature are below 8 KiB."""

CONNECTIONS_MAX = 512
"""Anybody gets beyond the handshake here, and may be silent for a minute. Sessions and renewals have another port."""

_OPTIONS = (
    ("grpc.max_allowed_incoming_connections", CONNECTIONS_MAX),
    ("grpc.max_receive_message_length", REQUEST_BYTES_MAX),
    ("grpc.max_concurrent_streams", 4),
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
    """Serves `EnrolService.Enroll`. `leads` says whether this process may answer."""

    def __init__(
        self,
        post: Callable[[Event], None],
        state: Callable[[], authority.AuthorityState],
        server_pair: Callable[[], authority.KeyPair],
        leads: Callable[[], bool],
    ) -> None:
        self._post = post
        self._state = state
        self._server_pair = server_pair
        self._leads = leads
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[AnswerEnrolment]] = {}
        self._server: grpc.aio.Server | None = None
        self._log = structlog.get_logger("gatelift.enrol")
        self._repetitions = Repetitions(ANSWER_TOLD_SECONDS)
        self._refusals = Repetitions()  # of strangers: a line a minute for each reason, whatever names they think of
        self.port = 0

    async def start(self, address: str) -> None:
        """Listen on `host:port` (port 0 takes a free one). Raises RuntimeError when the address is taken."""
        server = grpc.aio.server(
            options=_OPTIONS,
            maximum_concurrent_rpcs=REQUESTS_MAX,
        )
        handlers = {"Enroll": grpc.unary_unary_rpc_method_handler(self._enroll)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))

        self.port = server.add_secure_port(address, credentials_of_now(self._shown))
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await self._server.stop(grace=1.0)

    def _shown(self) -> Shown:
        """Return the server's certificate and, behind it, all CAs: an agent finds there the one its token names."""
        pair = self._server_pair()
        return Shown(key=pair.key, chain=pair.certificate + self._state().bundle)

    def answer(self, command: AnswerEnrolment) -> None:
        """Hand an answer to whoever waits for it."""
        waiting = self._waiting.get(command.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(command)

    def issue(self, command: IssueCertificate, lifetime: dt.timedelta, now: dt.datetime) -> None:
        """Sign; the outcome is posted in the loop's next turn, since the core waits for this to return."""
        state = self._state()
        try:
            uri = identity.uri_of(command.cluster)
            _check_key(command)
            certificate = authority.sign_agent(state, command.request, uri, lifetime, now)
        except (authority.AuthorityError, identity.IdentityError) as error:
            issued = CertificateIssued(request_id=command.request_id, certificate=b"", ca_bundle=b"", text=str(error))
        else:
            issued = CertificateIssued(request_id=command.request_id, certificate=certificate, ca_bundle=state.bundle)
        asyncio.get_running_loop().call_soon(self._post, issued)

    async def _enroll(self, data: bytes, context: Any) -> bytes:
        try:
            request = pb.EnrollRequest.FromString(data)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "request: is not an EnrollRequest")
            raise
        if not self._leads():
            return _response(EnrolmentVerdict.PENDING, "this manager is a standby; ask again")
        request_id = next(self._ids)
        try:
            event = _question(request_id, request)
        except (authority.AuthorityError, identity.IdentityError) as error:
            return _response(EnrolmentVerdict.REFUSED, str(error))
        waiting = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        self._post(event)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await waiting
        except TimeoutError:
            return _response(EnrolmentVerdict.PENDING, "the manager is busy; ask again")
        finally:
            self._waiting.pop(request_id, None)
        self._tell(request.cluster, answer)
        return _response(answer.verdict, answer.text, answer.certificate, answer.ca_bundle)

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


def _question(request_id: int, request: pb.EnrollRequest) -> EnrolmentAsked:
    """Check what can be checked without the core: name, size, and the request's own signature.

    That signature proves that whoever asks holds the key, so no token is needed to renew with a key that was approved.
    A replayed request yields a certificate that only the key's owner can use.
    """
    cluster = identity.check_cluster_name(request.cluster)
    digest = authority.request_digest(request.request)
    return EnrolmentAsked(
        request_id=request_id, cluster=cluster, token=request.token, key_digest=digest, request=request.request
    )


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
