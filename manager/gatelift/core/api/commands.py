"""All that the manager's machine can want, as values. Imperative. Adapters carry them out; outcomes come as events."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_kube.deciding.writes import ApiWrite, EmitEvent
from gatelift_kube.values.resources import ObjectRef, Resource
from gatelift_wire.values.messages import Close, Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToAgent:
    """Write a frame to a stream. Never waits: an agent that does not read has its stream broken by the adapter."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseAgentStream:
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
    """List the objects that were taken over, wait for no node's word and are in no watch of ours, by quorum reads.

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
    """A fact for the log, with the workload and epoch it is about."""

    level: str  # "info" or "warning"
    text: str
    workload: str = ""
    epoch: int = 0
    cluster: str = ""
    fields: tuple[tuple[str, str], ...] = ()


class Happened(enum.Enum):
    """What has happened to a workload; the value is what the log says."""

    RESERVED = "reserved"
    ADMITTED = "admitted"
    LIFTED = "lifted"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    READY = "ready"
    FREED = "freed"
    """Its quota, while its pods stop (KEP-6143)."""
    RELEASED = "released"
    FINISHED = "finished"


class Span(enum.Enum):
    """Between which two moments seconds lie; the value is what the log says."""

    QUEUED = "queued_seconds"
    CHECKS = "checks_seconds"
    LIFT = "lift_seconds"
    READY = "ready_seconds"
    ADMITTED = "admitted_seconds"
    DRAINED = "drained_seconds"
    RAN = "ran_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Note):
    """A note that metrics count: what has happened, to what is charged to which queue, and how long it took.

    `cluster_queue` of what was preempted is the one that preempts. `is_first`: of all evictions for that reason.
    """

    happened: Happened
    cluster_queue: str
    local_queue: str = ""
    priority_class: str = ""
    reason: str = ""
    cause: str = ""
    is_first: bool = False
    seconds: Mapping[Span, float] = field(default_factory=dict)


class OfSlice(enum.Enum):
    """What has become of a slice of elastic work; the value is what log and metrics say."""

    MADE = "made"
    EDITED = "edited"
    ADMITTED = "admitted"
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    LOWERED = "lowered"
    RELEASED = "released"
    RUNNING = "running"
    REFUSED = "refused"
    ROLLED_BACK = "rolled_back"
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceMoment(Note):
    """A note that metrics count: what has become of a slice; `seconds` since it was wanted, where that is measured."""

    moment: OfSlice
    cluster_queue: str
    seconds: float | None = None


Command = (
    ApiWrite
    | Read
    | ReadAll
    | ListOutOfSight
    | ListAnew
    | EmitEvent
    | SendToAgent
    | CloseAgentStream
    | IssueCertificate
    | AnswerEnrolment
    | StepDown
    | SettleLease
    | Note
)
