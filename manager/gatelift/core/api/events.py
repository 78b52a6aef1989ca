"""All that can happen to the manager's machine, as values. Past tense. See `commands` for what it wants in return."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_kube.deciding.election import Tenure
from gatelift_kube.deciding.writes import ApiEvent, KubeObject
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipGained:
    """This process leads, under `term` (grows with each change of leader, taken from the Lease object).

    `warm`: it saw the Lease move a moment before it took it, and who held it was settled, so the record is the newest;
    else the Lease, and with it all records, may be of long ago. `lease` is the Lease's name (None: nobody can ask it),
    `holder` who we are there; `counter`, `tenures`: what it counts, and who took over when. `seal_key` seals the
    counter for those who bring it back; without one nobody counts.
    """

    term: int
    warm: bool = True
    lease: ObjectKey | None = None
    holder: str = ""
    counter: int = 0
    tenures: tuple[Tenure, ...] = ()
    seal_key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipExtended:
    """The own leader Lease was renewed: it is valid until `valid_until` on this process's monotonic clock.

    `counter` is the number that stands in it now.
    """

    valid_until: float
    counter: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipLost:
    """This process no longer leads: it commands and writes nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStreamOpened:
    """An agent opened a Session stream. `cluster` is what its certificate says, `key_digest` the digest of its key.

    `issued_at`: when that certificate was issued, in seconds since 1970 by the wall clock of who did; 0: there is none.
    """

    stream_id: int
    cluster: str
    key_digest: str
    issued_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFrameArrived:
    """A frame came on a stream, decoded and within limits."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamViolated:
    """What came on a stream could not be decoded or broke a limit; the stream is to be closed."""

    stream_id: int
    text: str
    too_large: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStreamClosed:
    """A stream ended, whoever ended it."""

    stream_id: int
    text: str = ""


NOT_TAKEN = "what was said could not be taken; greet anew"
"""Text of a close after an exception: the manager's log has it."""
UNPROVED = "a placement was named that the record does not know; greet anew, and list what there is"
"""Text of a close after a report whose proof only an inventory brings (`claims`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakOff:
    """What a cluster said could not be taken: its streams end, and it greets anew."""

    cluster: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TermUnconfirmed:
    """This version of a WorkerCluster shows a term above ours, and by the Lease no leader has written it."""

    found: WorkerCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolmentAsked:
    """An agent asked for a certificate on the Enroll port.

    `token` is the bootstrap token, or "" when the request proves by `key_digest` (signature checked by the adapter)
    that it holds a key that was approved before.
    """

    request_id: int
    cluster: str
    token: str = field(repr=False)
    key_digest: str
    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateIssued:
    """The certificate asked for by `IssueCertificate`; empty `certificate` means it failed, `text` says why."""

    request_id: int
    certificate: bytes
    ca_bundle: bytes
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDone:
    """Answer to `Read`: the object as it is now, or None when there is none."""

    read_id: int
    ref: ObjectRef
    object: KubeObject | None
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAllDone:
    """Answer to `ReadAll`: all objects (typed, and their JSON) as they are now."""

    read_id: int
    objects: tuple[tuple[KubeObject, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfSightListed:
    """Answer to `ListOutOfSight`: which objects there are, and their UIDs."""

    read_id: int
    objects: tuple[tuple[ObjectRef, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailed:
    """What was to be read or listed could not be (retries are behind it); `ref` only for a `Read`.

    `asked` False: it found no room and never left the process, so nothing is wrong with the API server.
    """

    read_id: int
    message: str
    ref: ObjectRef | None = None
    asked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WentBack:
    """The API server shows what is older than what was told before: what this process knows is of a lost history."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRead:
    """The wall clock showed `unix_seconds` at the `now` of this event. For texts that people read only.

    Sent once before anything else and again now and then; between two readings the machine adds monotonic time.
    """

    unix_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """The deadline that `next_deadline()` named has passed, or a long cycle asked to go on."""


StreamEvent = AgentStreamOpened | AgentFrameArrived | StreamViolated | AgentStreamClosed
Event = (
    ApiEvent
    | ReadDone
    | ReadAllDone
    | OutOfSightListed
    | ReadFailed
    | WentBack
    | ClockRead
    | LeadershipGained
    | LeadershipExtended
    | LeadershipLost
    | AgentStreamOpened
    | AgentFrameArrived
    | StreamViolated
    | AgentStreamClosed
    | BreakOff
    | TermUnconfirmed
    | EnrolmentAsked
    | CertificateIssued
    | Ticked
)
