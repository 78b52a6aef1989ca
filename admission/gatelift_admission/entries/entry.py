"""One Workload as the engine keeps it, and how its object is read: class of life, what waits, what was granted.

The object is the truth for what was written; `phase` adds the one thing that the object cannot show yet, a
reservation that is still on its way (ASSUMED). Neighbours: `state` holds the entries, `pending` queues them,
`ledger` charges them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from gatelift_admission import texts
from gatelift_admission.demand.grants import NOTHING, Grant
from gatelift_admission.entries.ordering import condition, is_true, unix_seconds
from gatelift_admission.entries.standings import QueueMove, QueueStanding, Stander
from gatelift_admission.flavors.assignment import Cursor
from gatelift_admission.values.model import ElasticSlice, PodSetDemand, Usage
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.numbers import signed
from gatelift_kube.values.resources import ObjectKey

ADMISSION_GATE: Final = "kueue.x-k8s.io/admission-gated-by"
PRIORITY_BOOST: Final = "kueue.x-k8s.io/priority-boost"
Shape = tuple[object, ...]
SPARED_ROUNDS_MAX: Final = 16
"""Rounds of which a loser spares the winners: more than it loses between two events of any load that was played."""
ALL: Final = 2**31
"""Of the entries that are admitted in a round: more than there are."""
SEARCHES_MAX: Final = 64
"""How often the search for flavors goes on before a workload is parked: as many as one resource group may have."""


class Phase(enum.Enum):
    """Where a workload stands; `value` is what people read."""

    __hash__ = object.__hash__  # members are singletons; the one of Enum is Python code on the hot path

    PENDING = "pending"
    ASSUMED = "reserved, not yet written"
    RESERVED = "quota reserved"
    ADMITTED = "admitted"
    FINISHED = "finished"


RESERVING: Final = frozenset({Phase.ASSUMED, Phase.RESERVED, Phase.ADMITTED})
"""A set, not a tuple: who is none of them would be compared with each, which costs more than to hash one."""


@dataclass(slots=True, eq=False, init=False)
class Entry(Stander):
    """A Workload in the engine. Only `state`, `pending`, `ledger` and `cycle` change it."""

    uid: str
    key: ObjectKey
    workload: Workload
    local_queue: ObjectKey
    """The LocalQueue it was submitted to."""
    phase: Phase
    priority: int
    timestamp: float
    pod_sets: tuple[PodSetDemand, ...]
    shape: Shape
    obstacle: str
    """Why no cycle can admit it, whatever the quota."""
    grant: Grant
    evicted: bool
    """Holds quota and is on its way out: its object says so, or a cycle has just decided it."""
    preempted: bool
    """A cycle has decided so for a waiting workload: what it gives back is no event from outside."""
    came_back: bool
    """It has stopped after a preemption and is not queued again yet: that is no event from outside either."""
    preempted_of: tuple[int, int] | None
    """What had happened from outside (`State.outside_of`) when it was preempted last: once in one state is enough."""
    reserved_at: float
    """Unix time of the reservation, as long as the object does not show it."""
    charged: Usage
    charged_queue: str
    charged_local: ObjectKey | None
    counted: Phase | None
    held_counts: dict[str, int] | None
    """Pods per pod set that the ledger still charges, once it has spoken; None: what the object says."""
    runs: bool
    """Something of it runs whether its object shows a reservation or not: where it shows none, it is a ghost."""
    runs_in: str
    """In which ClusterQueue that is charged, as the caller remembers; "" for what its LocalQueue says."""
    ghost: bool
    """Its object shows no reservation, or a freed one, and it runs all the same: charged by `held_counts`, see
    `ghosts`."""
    on_hold: bool
    """The caller keeps it out of the queues, wherever it stands (`Engine.block`)."""
    backoff_until: float | None
    queue: str
    """The ClusterQueue in whose pending set this is, empty if in none."""
    queued_local: ObjectKey | None
    ticket: int
    """Raised at each change of place, which makes older places in heaps void."""
    cursor: Cursor
    cursor_of: tuple[int, int, int]
    """When the cursor was set: build of the tree, generation of the queue's holders, round of the tree."""
    overtaken: bool
    """Lost to another entry while its flavors were gone through: once more from the first before it is parked."""
    reserves: bool
    """Somewhere in the search for flavors others only stood in its way: it may keep room for itself."""
    cursors: list[Cursor]
    """Where the search for flavors was continued since it began at the first; none is tried twice in one state."""
    cursors_of: tuple[int, int] | None
    """State of the tree for which `cursors` holds: what was in vain before a change need not be so after it."""
    searched: tuple[int, int] | None
    """State of the tree in which all its flavors were gone through in vain; once is enough."""
    restarted: tuple[int, int] | None
    """State of the tree in which it began at the first flavor again after it had lost; once is enough."""
    spares: tuple[tuple[dict[str, int], int], ...]
    """Who was let in, by UID, in each round that it lost, or after which it goes on to its next flavors; and how many
    of them count. It does not preempt them: they would win again as soon as they have stopped."""
    spares_of: tuple[int, int]
    """What had happened from outside by then (`State.outside_of`); once more has, it spares nobody."""
    told: tuple[str, str] | None
    want: tuple[str, str] | None
    said_in: str
    """Root of the tree among whose texts (`stale`) that of this one is, "" for none."""
    asked: tuple[str, str] | None
    """The eviction asked for last, so that it is asked for once."""
    of_chain: ElasticSlice | None
    """Which slice of an elastic workload it is (`chains`); None for all others."""
    superseded: bool
    """A later slice of its chain holds quota, so that this one is charged nothing."""

    def __init__(self, uid: str, key: ObjectKey, workload: Workload, local_queue: ObjectKey) -> None:
        """Begin with what an object says, and nothing else known of it."""
        self.uid, self.key, self.workload, self.local_queue = uid, key, workload, local_queue
        self.phase, self.standing = Phase.PENDING, QueueStanding.OUT
        self.priority = self.ticket = 0
        self.timestamp = self.reserved_at = 0.0
        self.pod_sets = self.shape = self.cursor = self.spares = ()
        self.obstacle = self.charged_queue = self.runs_in = self.queue = self.said_in = ""
        self.grant = NOTHING
        self.evicted = self.preempted = self.came_back = False
        self.runs = self.ghost = self.on_hold = self.overtaken = self.reserves = False
        self.charged, self.cursors = {}, []
        self.charged_local = self.queued_local = self.counted = self.held_counts = self.backoff_until = None
        self.preempted_of = self.cursors_of = self.searched = self.restarted = None
        self.cursor_of, self.spares_of = (0, 0, 0), (0, 0)
        self.told = self.want = self.asked = self.of_chain = None
        self.superseded = False

    def stand_aside(self) -> None:
        """Be in no queue, since it raised an exception as it was looked at."""
        self.move(QueueMove.RAISE)
        self.queue, self.queued_local, self.ticket = "", None, 0

    def search_anew(self) -> None:
        """Let the next search for flavors begin at the first."""
        self.cursor, self.overtaken, self.reserves = (), False, False
        self.cursors.clear()

    def spare(self, admitted: dict[str, int], number: int, outside: tuple[int, int]) -> None:
        """Note the first `number` who are let in in a round, which may go on, as those whom it does not preempt."""
        if self.spares_of != outside:
            self.spares, self.spares_of = (), outside
        known = [one for one in self.spares if one[0] and one[0] is not admitted]
        self.spares = (*known[1 - SPARED_ROUNDS_MAX :], (admitted, number))

    def goes_on(self, cursor: Cursor, now: tuple[int, int]) -> bool:
        """Note where the search would go on; False if it has been there with the tree like this, or often enough."""
        if self.cursors_of != now:
            self.cursors_of = now
            self.cursors.clear()
        if cursor in self.cursors or len(self.cursors) >= SEARCHES_MAX:
            return False
        self.cursors.append(cursor)
        return True


def phase_of(workload: Workload) -> Phase:
    """Return the class of life that the object shows; the later one wins."""
    if is_true(workload, "Finished"):
        return Phase.FINISHED
    if workload.status.admission is not None and is_true(workload, "QuotaReserved"):
        return Phase.ADMITTED if is_true(workload, "Admitted") else Phase.RESERVED
    return Phase.PENDING


def effective_priority(workload: Workload, *, boost: bool) -> int:
    """Return spec.priority, 0 if none; with `boost` plus what the annotation says, if that is a 32-bit number."""
    priority = workload.spec.priority or 0
    if not boost:
        return priority
    found = signed(workload.metadata.annotations.get(PRIORITY_BOOST, ""))
    return priority + found if found is not None and -(2**31) <= found < 2**31 else priority


def out_of_queue_reason(workload: Workload) -> tuple[str, str] | None:
    """Return (reason, message) why a pending workload may not sit in a queue by its own doing, None if it may.

    An empty reason means: it stays out, and nothing has to be said.
    """
    if workload.metadata.deletion_timestamp is not None:
        return "", ""
    if not workload.spec.active:
        return texts.DEACTIVATED, texts.WORKLOAD_DEACTIVATED
    gate = workload.metadata.annotations.get(ADMISSION_GATE, "")
    if gate:
        return texts.ADMISSION_GATED, texts.gated_by(gate)
    reserved = condition(workload, "QuotaReserved")
    if reserved is not None and reserved.status == "False" and reserved.reason == "OnHold":
        return "", ""
    return ("", "") if is_true(workload, "WaitingForReplacementPods") else None


def has_failed_checks(workload: Workload) -> bool:
    """Return whether a check says Retry or Rejected."""
    checks = workload.status.admission_checks
    return bool(checks) and any(check.state in {"Retry", "Rejected"} for check in checks)


def backoff_unix(workload: Workload) -> float | None:
    """Return the Unix time before which it is not queued, None for none; infinite while Requeued is False."""
    requeued = condition(workload, "Requeued")
    if requeued is not None and requeued.status == "False":
        return float("inf")
    state = workload.status.requeue_state
    return unix_seconds(state.requeue_at) if state is not None and state.requeue_at else None
