"""The placement at the agent: its state table, and what is known of each of its objects.

One attempt of one workload in this cluster. The table is the whole of what may follow what; `progress` asks for moves,
`orders` feeds the manager's messages in. The way of a single pod: OFFERED, HELD, COMMITTED, APPLYING, GATED, RUNNING,
then DRAINING and STOPPED (by a stop, or by its own end), REPORTED, and gone after Forget; or KEPT for a while (`kept`).
Between GATED and RUNNING it is ADMITTING for as long as the backend of the remote admission takes its time, and GATED
again once that has granted; whatever else happens to it then happens as to one that is GATED.

Orthogonal to the state is `confirmed_session`: the session in which the manager last said that this placement is live
(rule R1). Nothing is created or lifted in any other session.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from gatelift_agent.core.placement import calm
from gatelift_agent.core.placement.calm import Calm
from gatelift_agent.core.placement.made import Made
from gatelift_agent.core.placement.membership import Membership, nothing
from gatelift_agent.core.placement.pods_of_jobs import Hidden, Shortage
from gatelift_agent.core.placement.sizes import Sizing
from gatelift_kinds.shared.pod_trouble import Trouble
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.values.resources import ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CountsReport, DisconnectPolicy, PodSetRequest
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.told import FailedContainer


class PlacementState(enum.Enum):
    """Where a placement stands; the value is the name that inventories and metrics carry."""

    __hash__ = object.__hash__  # members are singletons; the one of Enum is Python code on the hot path

    OFFERED = "Offered"
    HELD = "Held"
    COMMITTED = "Committed"
    APPLYING = "Applying"
    GATED = "Gated"
    ADMITTING = "Admitting"
    RUNNING = "Running"
    DRAINING = "Draining"
    FENCING = "Fencing"
    STOPPED = "Stopped"
    REPORTED = "Reported"
    KEPT = "Kept"
    REFUSED = "Refused"
    EXPIRED = "Expired"
    GONE = "Gone"


class Move(enum.Enum):
    """What happens to a placement."""

    HOLD = "room was found for the offer"
    REFUSE = "the offer or the commit is refused and nothing of it exists"
    EXPIRE = "the hold ran out or was withdrawn"
    COMMIT = "the manager chose this cluster"
    APPLY = "the first object is asked for"
    APPLIED = "every object exists, held back"
    WAIT = "the backend was asked for room and has not granted it, or takes it back"
    GRANT = "the backend grants room; what else a lift needs is asked anew"
    LIFTED = "every object is let go"
    END = "its end was decided: stop, refusal, eviction, or the work says that it is over"
    FENCE = "its deadline passed without a renewed lease"
    STILL = "nothing of it runs or can start, and no write is in flight"
    REPORTED = "the final state was handed to the session"
    KEEP = "the manager forgot it, and what is left of it stays a while to be looked at"
    CLEARED = "the manager forgot it and nothing is left here"
    AGAIN = "somebody else let go what had been stopped"
    TAKEN_UP = "what was to be refused runs, let go under its very record"


TABLE: dict[PlacementState, dict[Move, PlacementState]] = {
    PlacementState.OFFERED: {Move.HOLD: PlacementState.HELD, Move.REFUSE: PlacementState.REFUSED},
    PlacementState.HELD: {
        Move.COMMIT: PlacementState.COMMITTED,
        Move.EXPIRE: PlacementState.EXPIRED,
        Move.REFUSE: PlacementState.REFUSED,
    },
    PlacementState.COMMITTED: {
        Move.APPLY: PlacementState.APPLYING,
        Move.REFUSE: PlacementState.REFUSED,
        Move.END: PlacementState.DRAINING,
        Move.FENCE: PlacementState.FENCING,
    },
    PlacementState.APPLYING: {
        Move.APPLIED: PlacementState.GATED,
        Move.END: PlacementState.DRAINING,
        Move.FENCE: PlacementState.FENCING,
    },
    PlacementState.GATED: {
        Move.WAIT: PlacementState.ADMITTING,
        Move.LIFTED: PlacementState.RUNNING,
        Move.END: PlacementState.DRAINING,
        Move.FENCE: PlacementState.FENCING,
    },
    PlacementState.ADMITTING: {
        Move.GRANT: PlacementState.GATED,
        Move.LIFTED: PlacementState.RUNNING,  # a lift that was asked for before the room was taken back
        Move.END: PlacementState.DRAINING,
        Move.FENCE: PlacementState.FENCING,
    },
    PlacementState.RUNNING: {Move.END: PlacementState.DRAINING, Move.FENCE: PlacementState.FENCING},
    PlacementState.DRAINING: {
        Move.STILL: PlacementState.STOPPED,
        Move.FENCE: PlacementState.FENCING,
        Move.TAKEN_UP: PlacementState.RUNNING,
    },
    PlacementState.FENCING: {Move.STILL: PlacementState.STOPPED, Move.END: PlacementState.FENCING},
    PlacementState.STOPPED: {
        Move.REPORTED: PlacementState.REPORTED,
        Move.KEEP: PlacementState.KEPT,
        Move.CLEARED: PlacementState.GONE,
        Move.AGAIN: PlacementState.DRAINING,
    },
    PlacementState.REPORTED: {
        Move.KEEP: PlacementState.KEPT,
        Move.CLEARED: PlacementState.GONE,
        Move.AGAIN: PlacementState.DRAINING,
    },
    PlacementState.KEPT: {Move.CLEARED: PlacementState.GONE, Move.AGAIN: PlacementState.DRAINING},
    PlacementState.REFUSED: {},
    PlacementState.EXPIRED: {},
    PlacementState.GONE: {},
}
"""A missing entry is illegal: `Placement.move` raises and changes nothing. Messages are for `orders`."""

FIRST_STATES = frozenset(
    {
        PlacementState.OFFERED,
        PlacementState.COMMITTED,
        PlacementState.APPLYING,
        PlacementState.GATED,
        PlacementState.RUNNING,
        PlacementState.STOPPED,
    }
)
"""Where a placement may begin: with an offer, or rebuilt from the worker's objects or records after a restart."""

HELD_BACK = frozenset({PlacementState.GATED, PlacementState.ADMITTING})
"""Every object exists, and is not let go, or not all of them are."""
STARTING = HELD_BACK | {PlacementState.COMMITTED, PlacementState.APPLYING}
LIVE = STARTING | {PlacementState.RUNNING}
ENDING = frozenset({PlacementState.DRAINING, PlacementState.FENCING})
ENDED = frozenset({PlacementState.STOPPED, PlacementState.REPORTED})


class IllegalMoveError(Exception):
    """An internal event that the table does not know in this state: an error of ours, never of the peer."""


SUPERSEDED = "Superseded"
"""Reason of an ending that nobody is told of: a newer attempt is here, or the manager had the final state already."""


class EndingKind(enum.Enum):
    """What a placement that ends is reported as."""

    FINISHED = "Finished"
    STOPPED = "Stopped"
    REFUSED = "Refused"
    EVICTED = "Evicted"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementEnding:
    """Why and as what a placement ends. `succeeded` matters for FINISHED, `refusal` for REFUSED only."""

    kind: EndingKind
    reason: str = ""
    message: str = ""
    succeeded: bool = False
    refusal: Refusal = Refusal.INVALID
    grace_seconds: float | None = None


@dataclass(slots=True, kw_only=True)
class Tracked:
    """One object of a placement: what it should be, and what is known of it.

    `object` None: not seen, or not there any more. `template` "": rebuilt after a restart, so it cannot be created
    again. At most one write to it is under way: `asked` is that write's id, 0 for none. `raw` stays as last seen.
    """

    ref: ObjectRef
    pod_set: str = ""
    template: str = ""
    metadata: bytes = b"{}"
    user_uid: str = ""
    """UID of the user's object that it stands for, "" where nobody said."""
    uid: str = ""
    joined: bool = False
    """It came to a placement that was live (`members`)."""
    slotless: bool = False  # it may be let go, and no slot was free as that was looked at last
    made_here: bool = False
    """A driver made it at this worker: it has no object at home, and is the agent's to count (`adopting`)."""
    object: KubeObject | None = None
    raw: bytes = b""
    last_object: KubeObject | None = None
    asked: int = 0
    attempts: int = 0
    untaken_answers: int = 0
    """Answers in a row that raised an exception (`answers`)."""
    retry_at: float = 0.0
    carried_out: tuple[Hashable, ...] = ()
    """The write that succeeded last (purpose and form). The same one, due again at once, had no effect: before
    `again_at` it is not asked for, and later each time it is `repeated`."""
    repeated: int = 0
    again_at: float = 0.0
    doubt_until: float | None = None
    """A create whose outcome is unknown may land until then (R7); after that a probe tells. None: no doubt."""
    missing: bool = False
    """The watch says that it is gone and we did not remove it: perhaps only its labels were taken away."""
    unproven: bool = False
    """Its namespace went, or an answer about it could not be taken: what is known of it is not believed until an answer
    that was asked for since."""
    unproven_since: float = 0.0
    vanished: bool = False
    """It was there and is not any more, and we did not remove it."""
    doubt: str = ""
    """Not found at a start, where others were let go: what stands for it in `doubts`, since its UID is not known."""
    succeeded: bool = False
    """It is gone and had succeeded: it keeps its slot."""
    waited_for_since: float | None = None  # for our finalizer, while it is not recorded that it succeeded
    blocked_since: float | None = None
    """Since when something else has its name, None: nothing has."""
    granted: dict[str, int] | None = None
    """What one pod of it may ask for; None: made by a process before this one (`allowances`)."""
    sampled: Mapping[str, Mapping[str, int]] = field(default_factory=nothing)
    """What a pod of each pod set of it would ask for here, as the API server said from `sampled_at` on."""
    sampled_at: float = 0.0
    made: Made | None = None
    lift_known: bool = False
    """`made` is what our lift was answered, or says of itself: no mark that comes later is ours."""
    put_back: bool = False
    """An edit of somebody else was put back; the next one ends the run."""
    edit_told: bool = False
    """People were told of an edit that stays until it may be put back."""
    uncharged_told: dict[str, str] | None = None
    """Digests that people were told of (`Made.uncharged`), until the mark is asked to say so."""
    refused: str = ""
    """`local`: why it could not be let go, where the others of its placement go on; it is tried again."""
    refused_as: bytes = b""
    """At a worker: what is told of it once it is gone, where it was given up and the others go on."""
    lift_asked: bool = False
    """A write that lets it go was asked for: whatever was seen of it last, it may run."""
    stop_written: bool = False
    """A write of ours changed it after its end was decided, so that a late lift fails (R7)."""
    noted: str = ""
    """`local`: what the object said of how it was before it was let go, as it was seen first since then."""
    restore_tried: bool = False
    """`local`: what gives the user's own object back was carried out, or is refused for good: no stop waits for it."""
    end_told: bool = False
    """What says on the object why, or that, it is stopped was written, or refused: no stop waits for it."""
    deleted_by_us: bool = False
    check_at: float | None = None
    removed: bool = False
    """We dropped the finalizer and asked for the deletion: what is left of it is not ours to wait for."""
    delete_asked: bool = False
    """The user deleted this one object of a live placement."""
    leave_said: bool = False
    """Its end was told in this session, before it is removed; `leave_heard`: and the manager has that."""
    leave_heard: bool = False
    grace_seconds: float | None = None
    user_gates: tuple[str, ...] | None = None
    reported: Hashable = None
    """What the last report said of it: a `Seen`."""
    told_of: KubeObject | None = None
    """The version of which just that is seen: it need not be looked into again."""

    @property
    def is_gone(self) -> bool:
        """Say whether it was there and is not any more, whoever removed it: it is never made again."""
        return self.object is None and (self.vanished or self.removed)

    @property
    def name(self) -> str:
        """The object's name, which messages refer to."""
        return self.ref.key.name


@dataclass(slots=True, kw_only=True)
class Placement:
    """One attempt of one workload here. Changed by `progress`, `commits`, `stops` and `rebuilding` only."""

    key: PlacementKey
    kind: str
    namespace: str
    name: str
    queue: str = ""
    state: PlacementState = PlacementState.OFFERED
    policy: DisconnectPolicy = DisconnectPolicy.WAIT
    stop_after_seconds: float = 0.0
    release: str = ""
    priority: int = 0
    pod_sets: tuple[PodSetRequest, ...] = ()
    objects: dict[str, Tracked] = field(default_factory=dict)
    objects_wanted: int = 0
    change_number: int = 0
    """Of the last `Change` that was taken in sessions that followed each other by resume."""
    membership: Membership | None = None
    """Of objects that come and go, once any has (`heirs`, `left`, `turned_away`)."""
    found: bool = False
    """Made of what a start found, and not named by a commit since; `unsure`: and what had vanished before may run."""
    unsure: bool = False
    confirmed_session: int = 0
    word_asked: int = 0
    """The session in which its confirmation was asked for last; again at `word_again_at`."""
    word_again_at: float = 0.0
    hold_until: float = 0.0
    waits_for: str = ""  # why the backend has not granted room, as the log has it
    room_given_back: bool = False  # its room was released, and it was asked for none since
    room_reclaimed: tuple[tuple[str, int], ...] = ()
    """Of how many pods per pod set its room was given back while the others run (KEP-78)."""
    ending: PlacementEnding | None = None
    failed: FailedContainer | None = None
    """Which container failed first, where it ended so: told with its end (`failures`)."""
    stop_asked: str | None = None
    """Reason of a stop that came after the end was decided for another cause: it is answered as well."""
    forget: bool = False
    gives_way: bool = False
    """Nothing of it is kept any longer once it is forgotten (`kept`)."""
    over_before: bool = False
    """Found at a start, over and without our finalizer: the manager had its end from a process before this one."""
    kept_seconds: float = 0.0
    """For how long it is to be kept after its end, as the manager is told; `kept_until` once it is."""
    kept_until: float = 0.0
    ended_at: float | None = None
    leaving_since: float | None = None  # since when all of it is on its way out (`all_leaving`)
    committed_at: float = 0.0
    counts_reported: CountsReport | None = None
    report_at: float | None = None
    trouble: Trouble | None = None
    """Of a Job's pods, as the manager is told of it; another one, or none, from `trouble_at` on if it stands."""
    trouble_at: float | None = None
    shortages: dict[str, Shortage] = field(default_factory=dict)
    judged: frozenset[tuple[str, int]] = frozenset()
    """Pods of a Job that ask for no more than was granted, by UID and generation."""
    lost_children: dict[str, KubeObject] = field(default_factory=dict)
    """Pods of a Job that vanished without a terminal phase, by UID: their containers may still run (P10)."""
    hidden: dict[str, Hidden] = field(default_factory=dict)
    """Pods of a Job that the watch calls gone and nobody has asked for yet, by UID."""
    children_gone: int = 0
    """Pods of a Job that are gone and were seen to end, or are in `lost_children`."""
    before: str = ""
    """Found at a start: the name of the doubt about pods that vanished before (`doubts`). "": there is none."""
    unseen_ends: int = 0
    """Pods of a Job that vanished before anybody here watched: what its controller counted, and what it did not."""
    uncounted: int = 0
    """Of these, what its controller has not counted."""
    cut_short: bool = False
    """It was found while it stopped: pods that vanished are not counted."""
    pods_asked: bool = False
    """A list of a Job's pods is under way; `pods_clear`: one that began after the stop showed none that may run."""
    pods_clear: bool = False
    pods_read_at: float = 0.0
    wait_told: str = ""
    """What the manager was told of a stop that waits while the namespace goes."""
    namespace_asked: bool = False  # a read of it is under way
    look_from: float = 0.0
    """Of many objects: while it is as it was then (`looked_as`) it is not looked at before (`machine`)."""
    looked_as: PlacementState | None = None
    sizing: Sizing | None = None  # of elastic work alone
    calm: Calm | None = None  # which of its objects are at rest; None: all of them are to be looked at
    child_retry_at: Mapping[str, float] = field(default_factory=nothing)
    """Pods of a Job that is gone, by UID: when their deletion may be asked for again."""

    @property
    def came_and_went(self) -> Membership:
        """What is known of objects that come and go."""
        if self.membership is None:
            self.membership = Membership()
        return self.membership

    @property
    def to_look_at(self) -> tuple[Tracked, ...]:
        """The objects that are not at rest."""
        names = self.objects if self.calm is None else self.calm.restless
        return tuple([self.objects[name] for name in names])

    def calms(self) -> Calm:
        """Return which objects are at rest, from now on."""
        self.calm = self.calm or calm.of(self.objects)
        return self.calm

    def stirs(self) -> None:
        """Take that all objects are to be looked at."""
        self.calm = None

    def move(self, move: Move, *, stays_calm: bool = False) -> None:
        """Follow the table; IllegalMoveError where it has no entry. `stays_calm`: who rests does so from then on."""
        target = TABLE[self.state].get(move)
        if target is None:
            raise IllegalMoveError(f"placement {self.key}: {move.name} in state {self.state.value}")
        self.state, self.calm = target, self.calm if stays_calm else None
