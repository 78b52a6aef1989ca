"""All that the manager's machine can want, as values. Imperative. Adapters carry them out; outcomes come as events."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_kube.resources import ObjectRef, Resource
from gatelift_kube.writes import ApiWrite, EmitEvent
from gatelift_wire.messages import Close, Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFrame:
    """Write a frame to a stream. Never waits: an agent that does not read has its stream broken by the adapter."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseStream:
    """Tell the peer why, and end the stream."""

    stream_id: int
    close: Close


class EnrolmentVerdict(enum.Enum):
    """Answer to an enrolment request."""

    PENDING = "Pending"
    APPROVED = "Approved"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueCertificate:
    """Sign a certificate for `cluster`; the outcome is `CertificateIssued` with the same `request_id`.

    With `key_digest`, only if the request is of that key.
    """

    request_id: int
    cluster: str
    request: bytes
    key_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEnrolment:
    """Answer an enrolment request. `why`: what only the log says, "" where that is no more than `text`."""

    request_id: int
    verdict: EnrolmentVerdict
    text: str
    why: str = ""
    certificate: bytes = b""
    ca_bundle: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Read one object by a quorum read (no resourceVersion); answered once by `ReadDone` or `ReadFailed`.

    Asked for after a write whose outcome nobody can tell, and before a placement that is missing in the cache is
    stopped (protocol rule R3). The answer arrives after every watch event that the executor delivered before it.
    """

    read_id: int
    ref: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAll:
    """List a kind by a quorum read, one namespace or ("") all; answered once by `ReadAllDone` or `ReadFailed`.

    Asked for before placements are stopped that no cache knows and whose Workload's name nobody can tell (R3).
    """

    read_id: int
    resource: Resource
    namespace: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOutOfSight:
    """List the pods that were taken over, wait for no node's word and are shown by no watch of ours, by a quorum read.

    Answered once by `OutOfSightListed` or `ReadFailed`. Asked for once in a term.
    """

    read_id: int


@dataclass(frozen=True, slots=True)
class ListAnew:
    """List every watched kind by quorum reads that begin after this; each is answered by `Synced`, behind its changes.

    Asked for by who begins to lead: how far behind its watches are nobody can tell.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDown:
    """Give up the leader Lease and start anew as a standby (R3: a higher term was read)."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleLease:
    """Have our Lease say from its next renewal on whether the record is the newest, as far as this lead knows.

    Who follows a lead that had yet to hear clusters waits for them as well, though it saw the Lease move.
    """

    term: int
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A fact for the log and the metrics, with the workload and epoch it is about."""

    level: str  # "info" or "warning"
    text: str
    workload: str = ""
    epoch: int = 0
    cluster: str = ""
    fields: tuple[tuple[str, str], ...] = ()


Command = (
    ApiWrite
    | Read
    | ReadAll
    | ListOutOfSight
    | ListAnew
    | EmitEvent
    | SendFrame
    | CloseStream
    | IssueCertificate
    | AnswerEnrolment
    | StepDown
    | SettleLease
    | Note
)
