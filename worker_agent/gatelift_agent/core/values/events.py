"""All that can happen to the agent's machine, as values. Past tense. See `commands` for what it wants in return."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_agent.core.values.node_room import RoomOfNodes
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, ApiEvent
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_wire.values.messages import Frame
from gatelift_wire.values.refusals import CloseReason


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeadershipGained:
    """This replica holds the agent's Lease in the worker (R8); its quorum lists come after it (`Synced`).

    `settle_seconds`: how long a write of the predecessor may still be in flight. 0 only where there was none, or it
    gave the Lease back after its last write was answered. `mark`: what the Lease counted when it was taken over, 0 for
    one that does not count. `unix`: seconds since 1970 by the wall clock, 0 where nobody asked it.
    """

    term: int
    settle_seconds: float = WRITE_SECONDS_MAX
    mark: int = 0
    unix: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeadershipExtended:
    """The replica's own Lease is valid until `valid_until` on this process's clock (CLOCK_BOOTTIME).

    `mark`: what the Lease counts now, 0 if it does not count.
    """

    valid_until: float
    mark: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeadershipLost:
    """This replica creates, lifts and reports nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerStreamOpened:
    """The stream that `OpenStream` asked for is open."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerFrameArrived:
    """A frame came from the manager, decoded and within limits."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameViolated:
    """What came on a stream could not be decoded or is over a limit; `reason` and `text` are the violation's."""

    stream_id: int
    reason: CloseReason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceSynced:
    """Pods and Jobs of a namespace (`WatchNamespaces`) have been listed completely, by quorum reads; "" means all."""

    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRefused:
    """The API server does not let us list a namespace that is not listed yet; it is asked again by itself."""

    namespace: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsRead:
    """Answer to `ReadPods`: the pods that were there at some moment after it was asked; `raws` has each one's JSON."""

    read_id: int
    pods: tuple[Pod, ...]
    raws: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsNotRead:
    """`ReadPods` could not be carried out."""

    read_id: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRead:
    """Answer to `ReadNamespace`: the Namespace as it was at some moment after it was asked, None where there is none.

    None is the API server's own 404 and nothing else.
    """

    read_id: int
    namespace: Namespace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceNotRead:
    """`ReadNamespace` could not be carried out."""

    read_id: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerStreamClosed:
    """A stream ended or could not be opened."""

    stream_id: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiHealthChanged:
    """What the adapter sees of the worker's API server: reachable or not, and the write latency (seconds, smoothed)."""

    reachable: bool
    latency_seconds: float
    throttled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomSeen:
    """What the nodes have and what runs there, as sums; where they decide, told at first and when it has changed."""

    room: RoomOfNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletsRead:
    """All Leases of kubelets: of each node, when it renewed its own last, in its words.

    `asked_at`: when the list was asked for. Nothing is said of one that failed.
    """

    asked_at: float
    renewals: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDue:
    """The certificate wants renewal; `request` is a fresh signing request (PEM) of the same identity."""

    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityReplaced:
    """There is a certificate for a new key, in the place of one that the manager refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTicked:
    """The deadline that `next_deadline()` named has passed."""


ClusterNews = ApiHealthChanged | RoomSeen | KubeletsRead

ReadAnswer = PodsRead | PodsNotRead | NamespaceRead | NamespaceNotRead

Event = (
    ApiEvent
    | AgentLeadershipGained
    | AgentLeadershipExtended
    | AgentLeadershipLost
    | ManagerStreamOpened
    | ManagerFrameArrived
    | FrameViolated
    | NamespaceSynced
    | NamespaceRefused
    | PodsRead
    | PodsNotRead
    | NamespaceRead
    | NamespaceNotRead
    | ManagerStreamClosed
    | ApiHealthChanged
    | RoomSeen
    | KubeletsRead
    | CertificateDue
    | IdentityReplaced
    | AgentTicked
)
