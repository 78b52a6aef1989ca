"""The border between the machine and its sessions: what `links` tells the machine (upcalls) and is asked for.

`links.Links` owns all that belongs to a cluster and not to a workload: greeting, rule R2's writes to WorkerCluster,
leases, credits, inventories, revocation, capacity. The machine owns workloads. `links` calls nothing: it returns
commands to carry out and upcalls to look at. Neighbours: `links` (has what `LinksPort` asks), `machine`, `fit`.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gatelift.core.api.commands import Command
from gatelift.core.api.counter import Proof
from gatelift.core.api.events import Event
from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.clusters.unheard import NOTHING_UNDECIDED, Undecided
from gatelift_kube.objects.gatelift import ForeignRunStatus, Predecessor, WorkerCluster
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import DisconnectPolicy, Message, Report


class WriteIds:
    """The one counter of `write_id` and `read_id` that machine and links share, so that ids never meet."""

    __slots__ = ("_next",)

    def __init__(self, first: int = 1) -> None:
        self._next: Iterator[int] = itertools.count(first)

    def take(self) -> int:
        """Return an id that was never returned before."""
        return next(self._next)


class LinkState(enum.Enum):
    """State of a worker cluster as the manager counts it."""

    UNKNOWN = "Unknown"
    CONNECTED = "Connected"
    SUSPECT = "Suspect"
    LOST = "Lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouching:
    """Who can tell what was placed in a cluster and a restored record may have lost (`identity`).

    `doubted_through`: the last session of which who serves the cluster now cannot. `fenced_after`: the finding of a
    restore that was known to who said *fenced*, of which session is `fenced_after_through`. `served_by`: UID of the
    cluster and Lease of the agent, as they are recorded.
    """

    doubted_through: int = 0
    served_by: tuple[str, str] = ("", "")
    fenced_after: str = ""
    fenced_after_through: int = 0

    def fenced_through(self, finding: str) -> int:
        """Return the last session that a person's word covers after the finding of that `since`; 0 for none."""
        return self.fenced_after_through if self.fenced_after == finding else 0

    def unvouched_through(self, finding: str) -> int:
        """Return the last session of which neither who serves the cluster tells nor a person has since; 0 for none."""
        return self.doubted_through if self.doubted_through > self.fenced_through(finding) else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """What dispatch and explain see of one worker cluster now.

    `open` is true when messages may be sent: the session is resynced or resumed, its number is written, and the own
    leader lease is valid. `accepted_namespaces` is the worker's own word (`Capacity.namespaces`), None until it said
    so. `allowed_namespaces` is the person's (WorkerCluster.spec), empty means no limit. `capacity` is empty when the
    worker does no quota of its own. `fenced_through`, `fenced_by`: a person's word that counts now, 0 for none.
    `version`: of the protocol, as spoken in the session that began last, 0 before the first.
    `resynced_session`: the session of the last inventory. `unproven`, `unproven_through`: see `PlacementsInventoried`.
    """

    name: str
    state: LinkState = LinkState.UNKNOWN
    session: int = 0
    open: bool = False
    cordoned: bool = False
    why_cordoned: str = ""
    """Why it gets no new work where no person has cordoned it."""
    draining: bool = False
    kinds: frozenset[str] = frozenset()
    accepted_namespaces: frozenset[str] | None = None
    allowed_namespaces: tuple[str, ...] = ()
    capacity: Mapping[str, ResourceRoom] = field(default_factory=dict)
    credits: int = 0
    adopts: bool = False
    """Its agent takes in and counts pods that a driver makes there by itself."""
    version: int = 0
    labels: tuple[tuple[str, str], ...] = ()
    weight: int = 1
    policy: DisconnectPolicy | None = None
    api_reachable: bool = True
    replicas: int = 1
    predecessors: tuple[Predecessor, ...] = ()
    fenced_through: int = 0
    fenced_by: str = ""
    foreign: tuple[ForeignRunStatus, ...] = ()
    """What other management clusters left there and may run, but for those that a person said not to wait for."""
    resynced_session: int = 0
    unproven: bool = False
    unproven_through: int = 0
    vouching: Vouching = Vouching()
    left_out: bool = False
    """Something that its agent says of itself cannot be written (`informing`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Outcome of `Links.send`.

    `session` 0: not sent, nothing was queued (the link is not open). `first_sequence` is the sequence number of the
    first message; the i-th has `first_sequence + i` at the most (R4 compares a Commit's with an inventory's
    `applied`). `refused`: a message breaks a rule of the wire (field and rule), so it never can be sent.
    """

    commands: tuple[Command, ...] = ()
    session: int = 0
    first_sequence: int = 0
    refused: str = ""


# --- upcalls: what the links tell the machine, in the order in which it happened ----------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOpened:
    """A session may carry commands from now on. After a resync the `PlacementsInventoried` upcall came before it.

    `resumed`: the outboxes of both sides were kept (R6), nothing needs to be sent again but confirmations (R1).
    """

    cluster: str
    session: int
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBroken:
    """The session ended (stream closed, fenced, lost): what was sent in it and not answered counts as not sent."""

    cluster: str
    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A sequenced message of the cluster's present session (of another one never reaches the machine, R6)."""

    cluster: str
    session: int
    sequence: int
    message: Report


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementsInventoried:
    """A complete inventory of the cluster's present session.

    `record_revision` is what `Links.handle` was given when the inventory was asked for, `applied` the last command
    sequence that the agent had applied: the two facts of rule R4. The machine decides by `gone.is_gone`.
    `unproven`: the worker came back from a backup, or is another cluster than before, so absence of what was placed in
    a session up to `unproven_through` proves nothing. `unheard`: not all of its nodes were heard of since its agent
    watches, so absence proves nothing yet (`unheard`).
    """

    cluster: str
    session: int
    record_revision: int
    applied: int
    entries: tuple[InventoryEntry, ...]
    unproven: bool = False
    unproven_through: int = 0
    unheard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterProved:
    """An agent greets, whatever comes of it: what the counter proves that it brings back, and the term it has seen."""

    cluster: str
    proof: Proof
    counter: int = 0
    term: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSuspect:
    """No renewal for a while: no new offers, nothing else."""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLost:
    """The lease ran out on the manager's side, and that is written to WorkerCluster.status (R2)."""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRecovered:
    """SUSPECT ended by a renewal in the same session; after LOST there is a new session, so `LinkOpened`."""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChanged:
    """Something in `ClusterView` changed (spec, labels, capacity, credits, namespaces): look at waiting work again."""

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedByPerson:
    """A person's word, accepted only for a LOST cluster and written with who said it (R1, R2).

    Nothing that was placed in a session up to and including `through_session` runs any more.
    """

    cluster: str
    through_session: int
    who: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HigherTermRead:
    """A higher term than our own stands in WorkerCluster.status (R3): the Lease is asked (`higher_terms`).

    `found` is the version that shows it; nothing is written there until that is answered.
    An agent that says it saw one is not believed: its word only makes the links look (by a conditional write).
    """

    cluster: str
    term: int
    found: WorkerCluster | None = None


Upcall = (
    LinkOpened
    | LinkBroken
    | Reported
    | PlacementsInventoried
    | LinkSuspect
    | LinkLost
    | LinkRecovered
    | ClusterChanged
    | FencedByPerson
    | HigherTermRead
    | CounterProved
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksOutcome:
    """What `Links.handle` returns."""

    commands: tuple[Command, ...] = ()
    upcalls: tuple[Upcall, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceCounts:
    """How many placements and offers a cluster has.

    `unexplained`: how many of them its inventory does not list while that proves nothing; None while that inventory
    is not compared. `undecided`: how many may be decided by the next inventory. `no_new_work`: reason and message
    of a cluster that dispatch places nothing on for what it has said, ("", "") of others; None: not known yet.
    """

    placements: int
    offers: int
    unexplained: int | None
    undecided: Undecided = NOTHING_UNDECIDED
    no_new_work: tuple[str, str] | None = None


class LinksPort(Protocol):
    """Sessions of all worker clusters. Implemented by `links.Links`; tests of the machine use a fake."""

    def handle(self, event: Event, now: float, *, record_revision: int) -> LinksOutcome:
        """Take an event that may concern links.

        The machine passes: Leadership*, Stream*, FrameArrived, Ticked, everything about WORKER_CLUSTER, and
        WriteDone, WriteFailed of ids that `owns_write` names. `record_revision` only grows; it is remembered with
        each InventoryRequest that is sent from within this call.
        """
        ...

    def owns_write(self, write_id: int) -> bool:
        """Say whether this outstanding write is one of the links'."""
        ...

    def send(self, cluster: str, messages: Iterable[Message], now: float) -> Sent:
        """Put messages into the session's outbox and frame them, in order; nothing is kept if the link is not open."""
        ...

    def place_counts(self, cluster: str, counts: PlaceCounts) -> None:
        """Tell what the cluster has, for WorkerCluster.status (coalesced by the links)."""
        ...

    def placed_in(self, cluster: str, namespaces: frozenset[str]) -> None:
        """Tell in which namespaces of a cluster something is placed; the next inventory is asked for with them."""
        ...

    def compared(self, cluster: str, session: int) -> None:
        """Tell that all has been concluded from the inventory of a session: only now may that session be resumed."""
        ...

    def remember(self, cluster: str, predecessors: tuple[Predecessor, ...], over: frozenset[PlacementKey]) -> None:
        """Have these stand in WorkerCluster.status, and none of those that are over; others that do stay."""
        ...

    def given(self, cluster: str, placed: PlacementKey, namespace: str, name: str) -> str:
        """Return the mark of what is given to a cluster (see `given`); "" where there is no key."""
        ...

    def state(self, cluster: str) -> ClusterView | None:
        """Return the view of a cluster; None when there is no WorkerCluster of that name."""
        ...

    def counted(self, found: WorkerCluster) -> WorkerCluster:
        """Return a WorkerCluster with the status that a leader believes in place of what stands there.

        That is what it knows where somebody else has edited it (`cluster_numbers`), and the status of before while it
        asks whose a higher term is (`higher_terms`). What no link knows is returned as it is.
        """
        ...

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all WorkerClusters, sorted."""
        ...

    def expects(self, cluster: str, token: str) -> bool:
        """Say whether a token is the one that was printed last for a cluster."""
        ...

    def next_deadline(self) -> float | None:
        """Return the moment at which `handle(Ticked())` has something to do."""
        ...
