"""Enrolment of agents: who gets a certificate, who waits for a person, who is refused. Pure.

Double opt-in: a bootstrap token (single-use: it belongs to the first key that shows it) makes a request known, a person
approves that key (`WorkerCluster.spec.approvedRequest`), or the setting `approve_by_token` does. After a long cut the
same key renews without a person for `renew_by_key_seconds` beyond its certificate's end. What a certificate opens is
written to `WorkerCluster.status` before the certificate is handed out. Neighbours: `links` (refuses streams of other
keys; says when a certificate is used), `values.tokens`.

Whoever proves nothing gets one answer, so that nobody learns which names there are; why stands in the manager's log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from gatelift.core.api.commands import AnswerEnrolment, Command, EnrolmentVerdict, IssueCertificate, Note
from gatelift.core.api.events import CertificateIssued, EnrolmentAsked
from gatelift.core.clusters.link_values import WriteIds
from gatelift_kube.deciding.writes import Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values import tokens

REQUESTS_MAX = 64
"""Requests being worked on at once; one takes two writes, an agent asks every few seconds: more is abuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentSettings:
    """Times in seconds. `approve_by_token`: a valid token is approval enough (policy of the demo)."""

    certificate_seconds: float = 24 * 3600.0
    renew_by_key_seconds: float = 30 * 24 * 3600.0
    approve_by_token: bool = False


@dataclass(slots=True)
class _Ask:
    request_id: int
    cluster: str
    key_digest: str
    request: bytes
    certificate: bytes = b""
    ca_bundle: bytes = b""


class Enrolments:
    """All requests under way. The machine passes EnrolmentAsked, CertificateIssued and outcomes of its own writes."""

    def __init__(self, ids: WriteIds, settings: EnrolmentSettings) -> None:
        self._ids = ids
        self._settings = settings
        self._writing: dict[int, _Ask] = {}
        self._issuing: dict[int, _Ask] = {}
        self._handled: int | None = None
        """The request that is being decided on: it is answered though that raises."""

    def owns_write(self, write_id: int) -> bool:
        """Say whether this outstanding write belongs here."""
        return write_id in self._writing

    def owns_request(self, request_id: int) -> bool:
        """Say whether a certificate with this request id was asked for here."""
        return request_id in self._issuing

    def cluster_of(self, request_id: int) -> str:
        """Return the cluster that a certificate was asked for."""
        return self._issuing[request_id].cluster

    def not_taken(self) -> list[Command]:
        """Answer the request that raised an exception, if it was one: its agent asks again."""
        request_id, self._handled = self._handled, None
        if request_id is None:
            return []
        return [_answer(request_id, EnrolmentVerdict.PENDING, "it could not be handled now; ask again")]

    def asked(self, event: EnrolmentAsked, found: WorkerCluster | None, unix_seconds: float) -> list[Command]:
        """Decide on a request; `found` is the WorkerCluster of that name, `unix_seconds` the wall clock."""
        self._handled = event.request_id
        said = self._asked(event, found, unix_seconds)
        self._handled = None
        return said

    def _asked(self, event: EnrolmentAsked, found: WorkerCluster | None, unix_seconds: float) -> list[Command]:
        if len(self._writing) + len(self._issuing) >= REQUESTS_MAX:
            return [_answer(event.request_id, EnrolmentVerdict.PENDING, "many requests are being answered; ask again")]
        if event.cluster == LOCAL_CLUSTER:
            text = "cluster: 'local' is the management cluster itself and needs no agent; choose another name"
            return [_answer(event.request_id, EnrolmentVerdict.REFUSED, text)]
        if found is None or not _proves_something(event, found):
            text, why = _nothing_proven(event.cluster), _unproven(event, found)
            return [AnswerEnrolment(request_id=event.request_id, verdict=EnrolmentVerdict.REFUSED, text=text, why=why)]
        refusal = _refusal(event, found)
        if refusal:
            return [_answer(event.request_id, EnrolmentVerdict.REFUSED, refusal)]
        if not event.token:
            return self._renewal(event, found, unix_seconds)
        return self._by_token(event, found, unix_seconds)

    def wrote(self, event: WriteDone | WriteFailed) -> list[Command]:
        """Go on after a write to WorkerCluster.status."""
        ask = self._writing.pop(event.write_id)
        self._handled = ask.request_id
        said = self._wrote(ask, event)
        self._handled = None
        return said

    def _wrote(self, ask: _Ask, event: WriteDone | WriteFailed) -> list[Command]:
        if isinstance(event, WriteFailed):
            again = event.error in {WriteError.CONFLICT, WriteError.PRECONDITION, WriteError.UNKNOWN}
            text = "the record has just changed; ask again" if again else f"could not be recorded: {event.message}"
            return [_answer(ask.request_id, EnrolmentVerdict.PENDING, text)]
        if ask.certificate:
            return [
                AnswerEnrolment(
                    request_id=ask.request_id,
                    verdict=EnrolmentVerdict.APPROVED,
                    text="approved",
                    certificate=ask.certificate,
                    ca_bundle=ask.ca_bundle,
                ),
                Note(level="info", text="certificate issued", cluster=ask.cluster),
            ]
        if self._settings.approve_by_token:
            return self._issue(ask)
        return [_answer(ask.request_id, EnrolmentVerdict.PENDING, _waits(ask.cluster))]

    def issued(self, event: CertificateIssued, found: WorkerCluster | None) -> list[Command]:
        """Record the key whose certificates open sessions from now on, then hand the certificate out."""
        ask = self._issuing.pop(event.request_id)
        self._handled = ask.request_id
        said = self._issued(ask, event, found)
        self._handled = None
        return said

    def _issued(self, ask: _Ask, event: CertificateIssued, found: WorkerCluster | None) -> list[Command]:
        if not event.certificate:
            return [_answer(ask.request_id, EnrolmentVerdict.REFUSED, event.text)]
        if found is None or found.spec.revoked:
            return [_answer(ask.request_id, EnrolmentVerdict.REFUSED, _nothing_proven(ask.cluster))]
        ask.certificate, ask.ca_bundle = event.certificate, event.ca_bundle
        status: dict[str, object] = {"keyDigest": ask.key_digest}
        if found.status.key_digest != ask.key_digest:
            status["certificateIssuedAt"] = None  # until this key has used one; that is written by who sees it used
        return [self._write(ask, found, status)]

    def _by_token(self, event: EnrolmentAsked, found: WorkerCluster, unix_seconds: float) -> list[Command]:
        ask = _Ask(event.request_id, event.cluster, event.key_digest, event.request)
        made = found.status.enrolment
        used = made is not None and made.token_digest == found.spec.token_digest
        if used and made is not None and made.key_digest != event.key_digest:
            text = f"token: was used by another key; print a new one with 'gatelift cluster add {event.cluster}'"
            return [_answer(event.request_id, EnrolmentVerdict.REFUSED, text)]
        if not used:
            status = {
                "enrolment": {
                    "keyDigest": event.key_digest,
                    "requestedAt": timestamps.to_text(unix_seconds),
                    "tokenDigest": found.spec.token_digest,
                }
            }
            expires = found.spec.token_expires_at
            if expires is not None and timestamps.to_seconds(expires) < unix_seconds:
                text = f"token: expired at {expires}; print a new one with 'gatelift cluster add {event.cluster}'"
                return [_answer(event.request_id, EnrolmentVerdict.REFUSED, text)]
            return [self._write(ask, found, status)]
        if not _newer_than_certificate(found, event.key_digest):
            return self._renewal(event, found, unix_seconds)  # a used token is worth no more than the key it was for
        if found.spec.approved_request == event.key_digest or self._settings.approve_by_token:
            return self._issue(ask)
        return [_answer(event.request_id, EnrolmentVerdict.PENDING, _waits(event.cluster))]

    def _renewal(self, event: EnrolmentAsked, found: WorkerCluster, unix_seconds: float) -> list[Command]:
        issued_at = found.status.certificate_issued_at or _asked_at(found)
        window = self._settings.certificate_seconds + self._settings.renew_by_key_seconds
        if not _has_approved_key(event, found):
            text = f"key: is not the one that was approved for {event.cluster}; enrol anew with a token"
            return [_answer(event.request_id, EnrolmentVerdict.REFUSED, text)]
        if issued_at is None or timestamps.to_seconds(issued_at) + window < unix_seconds:
            days = round(self._settings.renew_by_key_seconds / 86400)
            text = f"key: its certificate ended more than {days} days ago; enrol {event.cluster} anew with a token"
            return [_answer(event.request_id, EnrolmentVerdict.REFUSED, text)]
        return self._issue(_Ask(event.request_id, event.cluster, event.key_digest, event.request))

    def _issue(self, ask: _Ask) -> list[Command]:
        self._issuing[ask.request_id] = ask
        return [IssueCertificate(request_id=ask.request_id, cluster=ask.cluster, request=ask.request)]

    def _write(self, ask: _Ask, found: WorkerCluster, status: Mapping[str, object]) -> Patch:
        write_id = self._ids.take()
        self._writing[write_id] = ask
        body = {
            "metadata": {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version},
            "status": status,
        }
        return Patch(
            write_id=write_id,
            ref=ObjectRef(WORKER_CLUSTER, ObjectKey("", ask.cluster)),
            body=json.dumps(body).encode(),
            subresource="status",
        )


def _has_approved_key(event: EnrolmentAsked, found: WorkerCluster) -> bool:
    return bool(found.status.key_digest) and found.status.key_digest == event.key_digest


def _proves_something(event: EnrolmentAsked, found: WorkerCluster) -> bool:
    """Say whether somebody asks who knows of the cluster: by its token, or by the key that was approved for it."""
    return tokens.matches(event.token, found.spec.token_digest) or _has_approved_key(event, found)


def _unproven(event: EnrolmentAsked, found: WorkerCluster | None) -> str:
    """Return for the log why nothing is proven."""
    if found is None:
        return "there is no WorkerCluster of that name"
    if found.spec.revoked:
        return "the cluster was revoked"
    return "the token is not the one last printed" if event.token else "the key is not the one that was approved"


def _refusal(event: EnrolmentAsked, found: WorkerCluster) -> str:
    if found.spec.revoked:
        return f"cluster: {event.cluster} was revoked; 'gatelift cluster add {event.cluster}' takes it in again"
    if event.token and not tokens.matches(event.token, found.spec.token_digest):
        return f"token: is not the one last printed for {event.cluster}; run 'gatelift cluster add {event.cluster}'"
    return ""


def _newer_than_certificate(found: WorkerCluster, key_digest: str) -> bool:
    """Say whether the recorded request came after the last certificate of that key, so that an approval is about it."""
    made, issued_at = found.status.enrolment, found.status.certificate_issued_at
    if found.status.key_digest != key_digest or issued_at is None or made is None:
        return True
    return (made.requested_at or "") > issued_at


def _asked_at(found: WorkerCluster) -> str | None:
    """Return when the approved key was shown, of which no certificate has been used yet."""
    made = found.status.enrolment
    return made.requested_at if made is not None and made.key_digest == found.status.key_digest else None


def _nothing_proven(cluster: str) -> str:
    return (
        f"cluster: {cluster} is not expected here with this token or key; run 'gatelift cluster add {cluster}' in the "
        "management cluster and give its token to the agent"
    )


def _waits(cluster: str) -> str:
    return f"waits for a person: 'gatelift cluster approve {cluster}'"


def _answer(request_id: int, verdict: EnrolmentVerdict, text: str) -> AnswerEnrolment:
    return AnswerEnrolment(request_id=request_id, verdict=verdict, text=text)
