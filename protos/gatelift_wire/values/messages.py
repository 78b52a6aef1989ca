"""Values of everything that crosses the wire, as the cores see it. Pure; `codec` turns them into protobuf and back.

A `Frame` is what one stream write carries. Its *control* values are not sequenced and mean something to the session
machine; its *messages* are sequenced, acknowledged, kept in the sender's outbox until acked, and delivered to the core
in order, once, and only in the session they belong to (rule R6). Times on the wire are durations in seconds or opaque
echoes of the sender's own clock, never wall clocks.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_wire.values.inventory import ForeignRun, InventoryChunk, InventoryRequest
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import LEASE_SECONDS, RENEW_SECONDS
from gatelift_wire.values.pod_sets import PodSetCounts as PodSetCounts  # noqa: PLC0414 (read here by all)
from gatelift_wire.values.pod_sets import PodSetRequest as PodSetRequest  # noqa: PLC0414
from gatelift_wire.values.refusals import CloseReason, Refusal
from gatelift_wire.values.release import Leaving
from gatelift_wire.values.single import DeleteObject, Leaver, SetUserGates
from gatelift_wire.values.sizes import Drained, PlacementSize, Resize, SizeRefused, SizeWanted, SliceFinished
from gatelift_wire.values.told import FailedContainer, PodTrouble

# --- the frame ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One write on the stream.

    `session` 0 only while greeting. `term` is the leader's (0 from an agent). `sequence` numbers the first of
    `messages` (each one behind it is one higher); without any, the next that will be sent. Numbers only grow for the
    life of a process; after a resync each end's first frame says where they begin. `acknowledged`: the highest handled.
    """

    session: int
    term: int = 0
    sequence: int = 0
    acknowledged: int = 0
    control: tuple[Control, ...] = ()
    messages: tuple[Message, ...] = ()


# --- control: agent to manager -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """First frame of an agent on a new stream.

    `instance` names this agent process, `peer_instance` the manager process it last had a session with ("" if none),
    `last_session` and `last_term` what it last knew (kept in the worker, so a lower one than WorkerCluster.status
    means a restored worker), `received` the highest command sequence it handled (for resume). `cluster_uid` says which
    cluster this is: the UID of its namespace kube-system ("" from an agent that does not know). `mark` is the number
    that the agent's Lease in the worker counted when this process took it over, until a session has begun; then what
    `LeaseRenew.mark` says. 0: it does not count.
    `counter` and `seal` are those of the grant with the highest counter that it ever got, as they came: they prove how
    far the manager had come. `lease`: namespace and name of the Lease by which this agent's replicas take turns (see
    `speakers`). `ticket`: that of the last `Close`, once the agent has listed all objects anew since it came.
    `adopts`: it takes in pods that a driver makes there, and counts them (`CountsReport.made_here`).
    """

    instance: str
    peer_instance: str = ""
    version_min: int = 1
    version_max: int = 1
    agent_version: str = ""
    last_session: int = 0
    last_term: int = 0
    received: int = 0
    kinds: tuple[str, ...] = ()
    credits: int = 0
    replicas: int = 1
    api_reachable: bool = True
    cluster_uid: str = ""
    mark: int = 0
    counter: int = 0
    seal: bytes = b""
    lease: str = ""
    ticket: str = ""
    adopts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRenew:
    """Asks to lengthen the lease. `sent_at` is the agent's clock, echoed, so that its deadline runs from sending.

    `mark`: the number that the agent's own Lease in the worker counts now. It grows with each renewal of that Lease, so
    a worker that comes back with a lower one was restored from a backup. 0: it does not count.
    """

    sent_at: float
    api_reachable: bool = True
    replicas: int = 1
    mark: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditGrant:
    """How many un-applied placements the agent takes now (a level, not a delta; 0 while its API server is slow)."""

    credits: int


# --- control: manager to agent -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Sent only after the session number was written to WorkerCluster.status (R2).

    `keeps_quota`: pods that are done keep their room until the placement ends (KEP-78 is off); older managers say none.
    """

    session: int
    instance: str
    version: int
    resume: bool
    origin: str  # UID of the management cluster's namespace kube-system
    received: int = 0
    lease_seconds: float = LEASE_SECONDS
    renew_seconds: float = RENEW_SECONDS
    credit_window: int = 256
    keeps_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseGranted:
    """The lease runs `seconds` from the moment the agent sent the renewal with this `sent_at`.

    `counter` is how often the leader's own Lease was written, `seal` the manager's proof of it, opaque to agents; both
    come back in `Hello`. 0 and empty where nobody counts.
    """

    sent_at: float
    seconds: float
    counter: int = 0
    seal: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Says why the stream ends; `retry_after_seconds` is advice. With a `ticket` ANOTHER_AGENT is let in next time."""

    reason: CloseReason
    text: str = ""
    retry_after_seconds: float = 1.0
    ticket: str = ""


Control = Hello | LeaseRenew | CreditGrant | InventoryChunk | Welcome | LeaseGranted | InventoryRequest | Close

# --- messages: manager to agent (commands) -----------------------------------------------------------------------


class DisconnectPolicy(enum.Enum):
    """What happens to a placement when its cluster is lost."""

    WAIT = "wait"
    FAILOVER = "failover"
    UNFENCED = "unfenced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Asks to hold room for `hold_seconds`, before any object exists.

    `size` 0: for a whole placement. Else for what a live one grows by to that size.
    """

    key: PlacementKey
    kind: str  # "Pod", "Job": a name of gatelift_kinds
    namespace: str
    name: str  # of the workload's (first) user object
    queue: str  # LocalQueue
    priority: int = 0
    pod_sets: tuple[PodSetRequest, ...] = ()
    hold_seconds: float = 30.0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateBlob:
    """A spec as raw JSON; travels once per hash and session window and is referred to afterwards."""

    hash: str  # sha256 of content, hex
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTemplate:
    """One object to create: `template` is the hash of its spec, `marks` that of `metadata`: its labels and annotations.

    `marks` "": they come along. `uid`: of the user's object, "" where only that one can be meant. On `local` nothing is
    created: `template` is that UID, since another one may have its name by now. There, `joined`: it was named after the
    placement had its quota, so it may stand in the place of one that is gone.
    """

    name: str
    pod_set: str
    template: str
    metadata: bytes = b"{}"
    uid: str = ""
    marks: str = ""
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The record says that this placement is this cluster's: create gated, admit, lift.

    `size`: of elastic work, the number of its size, whose counts are those of `pod_sets`. 0: it has none.
    """

    key: PlacementKey
    kind: str
    namespace: str
    name: str
    queue: str
    objects: tuple[ObjectTemplate, ...]
    pod_sets: tuple[PodSetRequest, ...] = ()
    policy: DisconnectPolicy = DisconnectPolicy.WAIT
    stop_after_seconds: float = 2400.0
    release: str = "OnTerminal"
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Objects join and leave a live placement. `number` grows in a session that was not resumed; a lower one is late.

    A join says that the object may be made and let go as there is room, never that more may run than was granted.
    `pod_sets`: those of the joining objects, as in the Commit; they raise no grant. From version 2 on.
    """

    key: PlacementKey
    number: int
    join: tuple[ObjectTemplate, ...] = ()
    leave: tuple[Leaver, ...] = ()
    pod_sets: tuple[PodSetRequest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """These placements are live in the manager's record, written in its own term (R1, R3); `sizes`: with which size."""

    keys: tuple[PlacementKey, ...]
    sizes: tuple[PlacementSize, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdraw:
    """Let the hold go. Answered by nothing; no object of an un-committed placement exists. `size`: the offer's."""

    key: PlacementKey
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the placement: stop its pods, answer `Stopped` when nothing of it runs or can start any more (R7, R5)."""

    key: PlacementKey
    reason: str
    message: str = ""
    grace_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """The final state is recorded: drop finalizers, delete what is left, free the memory (but not R5's).

    What the worker keeps after its end, to be looked at, stays; `gone`: the user's object is gone, and so goes that.
    """

    key: PlacementKey
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordon:
    """The manager's word on new work for this cluster."""

    cordoned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRenewed:
    """Answer to CertificateRequest: PEM chain and the bundle of CAs to trust from now on."""

    certificate: bytes
    ca_bundle: bytes


# --- messages: agent to manager (reports) ------------------------------------------------------------------------


class BidKind(enum.Enum):
    """How an agent answers an offer."""

    HELD = "held"
    WOULD_PREEMPT = "would-preempt"
    NEEDS_TIME = "needs-time"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """Answer to an Offer. `cost` is comparable among bids of one offer (lower is better)."""

    key: PlacementKey
    kind: BidKind
    refusal: Refusal | None = None
    text: str = ""
    cost: float = 0.0
    hold_seconds: float = 0.0
    size: int = 0  # that of the offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """All objects exist, gated. `waits`: something of it may start only once it is confirmed in this session (R1)."""

    key: PlacementKey
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesLifted:
    """Every object of the placement is lifted."""

    key: PlacementKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReport:
    """Status (raw JSON) of one worker object of a user's object (`owner_uid`, if it says). Newer replaces older.

    `deleting`: it is being deleted, by whomever; of one that is gone: the agent has deleted it. `waits`: nobody has let
    it go, since no slot of its pod set is free.
    """

    key: PlacementKey
    kind: str
    name: str
    uid: str
    status: bytes
    deleting: bool = False
    gone: bool = False
    owner_uid: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsReport:
    """Counts per pod set of an object whose pods have no report of their own, as a Job; sent when they change.

    Of any object while it stops, from when all of it `leaving` on: older agents never say that.
    `made_here`: of pods that a driver has made there by itself, which have no object at home.
    """

    key: PlacementKey
    pod_sets: tuple[PodSetCounts, ...]
    reclaimable: tuple[tuple[str, int], ...] = ()
    troubles: tuple[PodTrouble, ...] = ()  # of its pods, the first; older agents tell of none
    leaving: Leaving | None = None
    made_here: tuple[PodSetCounts, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The work came to its own end. The agent keeps the objects until Forget.

    `failed` is None where it succeeded, and where its agent knows of no container that failed, or says none.
    `kept_seconds`: for how long at most they stay after it, to be looked at; 0: they go.
    """

    key: PlacementKey
    succeeded: bool
    reason: str = ""
    message: str = ""
    objects: tuple[ObjectReport, ...] = ()
    failed: FailedContainer | None = None
    kept_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Nothing of this epoch runs, and no write of mine for it is in flight (R7). Final.

    `members`: as in `Evicted`, where `objects` were too heavy and went ahead.
    """

    key: PlacementKey
    reason: str = ""
    message: str = ""
    objects: tuple[ObjectReport, ...] = ()
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A commit that cannot be carried out. As strong as Stopped (R7): nothing of this epoch exists or will.

    `members`: as in `Evicted`.
    """

    key: PlacementKey
    refusal: Refusal
    text: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """The worker ended or lost the placement on its own (object deleted by somebody, preempted); pods have stopped.

    `members`: UIDs of home's objects of which the agent knows; who ran and is none of them is gone, whoever heard how.
    """

    key: PlacementKey
    reason: str
    message: str = ""
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityEntry:
    """Capacity of one flavor and resource."""

    flavor: str
    resource: str
    nominal: int
    used: int
    largest_fit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """All of the worker's capacity, sent when it changes, coalesced. Empty: the worker does no quota of its own."""

    entries: tuple[CapacityEntry, ...] = ()
    namespaces: tuple[str, ...] = ()  # that accept work
    foreign: tuple[ForeignRun, ...] = ()  # as in an inventory, when it changes
    unheard: bool = False  # as in an inventory, until it is so no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateRequest:
    """Asks for a renewal: PEM certificate signing request of the same identity."""

    request: bytes


Command = (
    Offer
    | TemplateBlob
    | Commit
    | Change
    | Resize
    | Confirm
    | Withdraw
    | Stop
    | Forget
    | DeleteObject
    | SetUserGates
    | Cordon
    | CertificateRenewed
)
Report = (
    Bid
    | Applied
    | GatesLifted
    | ObjectReport
    | CountsReport
    | Finished
    | Stopped
    | Refused
    | Evicted
    | Capacity
    | CertificateRequest
    | SliceFinished
    | Drained
    | SizeRefused
    | SizeWanted
)
Message = Command | Report
