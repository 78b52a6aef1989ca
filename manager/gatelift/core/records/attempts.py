"""The attempt: one admission cycle of one Workload. Only this module writes it. Neighbours: `following`, `dispatch`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gatelift.core.api.agenda import Key, Look
from gatelift.core.records.attempt_states import LIVE, AttemptState, Internal, Wire, follow
from gatelift.core.records.drains import AllLeave
from gatelift.core.records.heard_troubles import TroubledObjects
from gatelift.core.records.offer_round import OfferRound
from gatelift.core.records.shown_objects import MERGE_SECONDS, next_pause
from gatelift.core.records.size_states import PlacedSize
from gatelift.core.records.told import ToldMembers
from gatelift_admission.values.model import Reserve
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.kueue import Admission, PodSet
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CountsReport, DisconnectPolicy, ObjectReport
from gatelift_wire.values.told import FailedContainer


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why an attempt has to stop; `evict` false: nothing is written of it, the object goes or is finished."""

    reason: str
    message: str
    evict: bool = True
    preempted: str = ""
    """Reason of the condition Preempted, "" if nobody else took its place."""
    cause: str = ""
    """What is behind the reason, where Kueue counts that apart (a time-out of start or of recovery)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a placement ended, by the agent's, the inventory's or a person's word."""

    how: Wire | Internal
    reason: str = ""
    message: str = ""
    succeeded: bool = False
    cluster: str = ""
    failed: FailedContainer | None = None
    """What its cluster says of the container that failed first; it is in `message` as well."""
    kept_seconds: float = 0.0
    """For how long what failed can be looked at there; it is in `message` as well."""


class AskedReservation(NamedTuple):
    """A reservation that was asked to be written."""

    epoch: int
    admission: Admission


ASKED_MAX = 8
"""Reservations on one version of a Workload that are remembered: each was given up after ten seconds, unheard of."""


@dataclass(slots=True, kw_only=True)
class Attempt(TroubledObjects):
    """All that the manager keeps in memory of one attempt; a restart rebuilds it from the record and inventories.

    `written_revision`: the machine's record revision at which the winner was written (rule R4). `heard_session`: the
    session in which the agent was told to go on (Commit or Confirm), 0 if not yet. `listed_session`: the last one in
    which its inventory had it. `wants_objects`: the agent has yet to make some, so it needs the Commit with their
    templates once more. `waiting` (reason, message): no cluster can take it. `epoch_spent`: an agent knows this epoch
    as used (R5), so it must be raised. `reserved_for`: the pod sets that quota was reserved for, None if read from it.
    """

    uid: str  # of the Workload that is its record
    workload: ObjectKey
    epoch: int
    chain: str = ""  # by what it is placed, where that is not its record's UID: of the first slice of its chain
    state: AttemptState = AttemptState.PENDING
    cluster: str = ""
    reserve: Reserve | None = None
    reserved_for: tuple[PodSet, ...] | None = None
    reserved_at: float = 0.0
    asked_on: str = ""  # the version on which its reservations were last asked to be written
    asked_for: tuple[AskedReservation, ...] = ()
    round: OfferRound | None = None
    written_revision: int = 0
    policy: DisconnectPolicy = DisconnectPolicy.WAIT
    heard_session: int = 0
    listed_session: int = 0
    placed_session: int = 0  # in which its cluster was chosen, 0 where that is not known
    found: bool = False  # a leader before this one has placed it
    listed_over: bool = False  # its cluster has listed it as over, and is to report how
    commit_session: int = 0
    commit_sequence: int = 0
    wants_objects: bool = False
    wants_word: bool = False  # it runs, and its agent has something to start again: it is confirmed as what waits is
    stop_session: int = 0
    forgotten: bool = False
    deleted_by_us: bool = False  # its Workload, as this process asked for: nobody wants its object to end
    unreported: bool = False  # its end was seen at the user's own object, and its cluster has not told it yet
    leave: AllLeave | None = None  # all of it is on its way out, as its cluster last said
    released: bool = False  # that its quota is free before it has stopped is to be believed of its record
    ending: Ending | None = None
    outcome: Outcome | None = None
    reports: dict[str, ObjectReport] = field(default_factory=dict)
    counts: CountsReport | None = None
    given_back: dict[str, int] = field(default_factory=dict)  # by pod set, how many of its pods count as over
    fewer_since: float | None = None  # since when fewer are said to be over than count
    falls: int = 0  # how often fewer have come to count
    given_back_at: float = float("-inf")  # when that was last asked to be written
    given_back_pause: float = MERGE_SECONDS  # seconds from then to the next time
    reported_at: float = 0.0  # when its cluster last told how an object of it is
    replacements_said_at: float = 0.0  # when the Workload was to say how many objects lack
    withdrawn: dict[str, int] = field(default_factory=dict)  # cluster -> session in which its hold was let go
    waiting: tuple[str, str] | None = None
    epoch_spent: bool = False
    ended_at: float = 0.0
    end_refused: bool = False  # the user's object does not take the status that was reported with the end
    words_left_out: bool = False  # what its cluster said of the end was refused with it
    end_unshown: str = ""  # why the user's object does not show the end
    reservation_told: bool = False
    checks_told: str = ""  # what people were told last of what others' checks say
    admitted_at: float | None = None
    absent_until: float | None = None  # it is not listed where it was placed; what may run has stopped by then
    gates_told: tuple[str, ...] = ()  # those of the user's own that its cluster was told of, in `gates_session`
    gates_session: int = 0
    _told: ToldMembers | None = None
    why_not: dict[str, str] = field(default_factory=dict)  # cluster -> why it was not used, for explain
    size: PlacedSize = field(default_factory=PlacedSize)
    key: PlacementKey = field(init=False)  # on the wire
    look: Key = field(init=False)  # on the agenda

    def __post_init__(self) -> None:
        """Name both once; every step asks for them."""
        self.key = PlacementKey(self.chain or self.uid, self.epoch)
        self.look = Key(Look.WORKLOAD, self.workload)

    @property
    def told(self) -> ToldMembers:
        """Which of its objects its cluster was told of, where they come and go."""
        if self._told is None:
            self._told = ToldMembers()
        return self._told

    def moves_to(self, uid: str, workload: ObjectKey, reserve: Reserve | None) -> None:
        """Take that its record is another slice of its chain: what is placed goes on, by the name that it has."""
        self.uid, self.workload, self.look = uid, workload, Key(Look.WORKLOAD, workload)
        self.reserve, self.reserved_for, self.asked_on, self.asked_for = reserve, None, "", ()

    @property
    def live(self) -> bool:
        """Say whether something of it may exist at its cluster."""
        return self.state in LIVE and bool(self.cluster)

    # --- quota ----------------------------------------------------------------------------------------------------

    def take_reserve(self, reserve: Reserve, pod_sets: tuple[PodSet, ...] | None, now: float) -> None:
        """Take the engine's decision, and for which pod sets it is, as far as the Workload is known."""
        self.reserve, self.reserved_for, self.reserved_at = reserve, pod_sets, now

    def recall_reserve(self, reserve: Reserve | None, now: float) -> None:
        """Take a reservation that stands in the record, of which people were told."""
        self.reserve, self.reserved_at, self.reservation_told = reserve, now, True

    def require(self, checks: tuple[str, ...]) -> None:
        """Take which checks its queue requires now."""
        if self.reserve is not None:
            self.reserve = self.reserve._replace(checks=checks)

    def give_back_reserve(self) -> None:
        """Take that its reservation is struck."""
        self.reserve = self.reserved_for = None

    def reservation_is_told(self) -> None:
        """Take that people are told of its reservation."""
        self.reservation_told = True

    def checks_are_told(self, text: str) -> None:
        """Take what people are told of what others' checks say."""
        self.checks_told = text

    def admitted(self, now: float) -> None:
        """Take that its admission is written."""
        self.admitted_at = now

    def wait_for(self, why: tuple[str, str] | None) -> None:
        """Take why its reservation is on its way back (reason, message); None: that is said."""
        self.waiting = why

    def spend_epoch(self) -> None:
        """Take that an agent knows its epoch as used (R5)."""
        self.epoch_spent = True

    def raises_epoch(self) -> None:
        """Take that a higher epoch is being written."""
        self.epoch_spent = False

    # --- its cluster ----------------------------------------------------------------------------------------------

    def begin_round(self, asked: OfferRound) -> None:
        """Take that clusters are asked anew."""
        self.round = asked

    def end_round(self, withdrawn: dict[str, int]) -> None:
        """Take that its offers are taken back, and from which clusters in which session."""
        self.withdrawn.update(withdrawn)
        self.round = None

    def not_used(self, cluster: str, why: str) -> None:
        """Take why a cluster is not used."""
        self.why_not[cluster] = why

    def used_nowhere(self, why: dict[str, str]) -> None:
        """Take that no cluster is used, and why; what was said before is over."""
        self.why_not = why

    def choose(self, cluster: str, policy: DisconnectPolicy, session: int, *, found: bool = False) -> None:
        """Take which cluster has won, and in which of its sessions, 0 where that is not known; `found`: by the record.

        That it was this leader's own choice before stays true.
        """
        self.found = found and (self.found or cluster != self.cluster)
        self.placed_session = max(session, self.placed_session if cluster == self.cluster else 0)
        self.cluster, self.policy = cluster, policy

    def winner_is_written(self, revision: int) -> None:
        """Take that the record names the winner since this revision."""
        self.waiting, self.written_revision = None, revision

    # --- what its cluster is told -----------------------------------------------------------------------------------

    def committed(self, session: int, sequence: int, gates: tuple[str, ...]) -> None:
        """Take that the Commit was sent, and which gates of the user's it named."""
        self.tell_gates(gates, session)
        self.wants_objects = False
        self.heard_session = self.commit_session = session
        self.commit_sequence = sequence

    def confirmed(self, session: int) -> None:
        """Take that the agent was told to go on."""
        self.heard_session = session

    def has_word(self) -> None:
        """Take that it was told that in this session."""
        self.wants_word = False

    def tell_gates(self, gates: tuple[str, ...], session: int) -> None:
        """Take which gates of the user's own its cluster was told of."""
        self.gates_told, self.gates_session = gates, session

    def asked_to_stop(self, session: int) -> None:
        """Take that its cluster was told to stop it."""
        self.stop_session = session

    def deletes_workload(self) -> None:
        """Note that we ask for the deletion of its Workload ourselves."""
        self.deleted_by_us = True

    def forget(self) -> None:
        """Take that its end is acknowledged."""
        self.forgotten = True

    # --- what its cluster says --------------------------------------------------------------------------------------

    def applied(self, *, waits: bool) -> None:
        """Take that all is made; `waits`: and that a word is awaited before it is started."""
        self.wants_word = self.wants_word or waits

    def listed(self, session: int, *, over: bool, wants_objects: bool) -> None:
        """Take that an inventory has it."""
        if session != self.listed_session:
            self.leave = None  # it is said anew in each session, once: not after a second inventory of the same one
        self.listed_session, self.listed_over, self.absent_until = session, over, None
        self.wants_objects = wants_objects

    def want_objects(self) -> None:
        """Take that the agent needs the Commit with its objects (once more)."""
        self.wants_objects = True

    def absent(self, until: float) -> None:
        """Take that it is not listed where it was placed, and until when it may run."""
        self.absent_until = until

    def report(self, report: ObjectReport, now: float) -> None:
        """Take what was said of one of its objects."""
        self.reports[report.name] = report
        self.reported_at = now

    def count(self, counts: CountsReport) -> bool:
        """Take how many pods are over; True by the first word of it."""
        is_first, self.counts = self.counts is None, counts
        return is_first

    def gives_back(self, over: Mapping[str, int]) -> None:
        """Take that so many of its pods count as over, by pod set, and that this is what its cluster says."""
        self.given_back, self.fewer_since = dict(over), None

    def fewer_are_over(self, now: float) -> float:
        """Take that fewer are said to be over than count; return since when that has been said."""
        if self.fewer_since is None:
            self.fewer_since = now
        return self.fewer_since

    def gives_more_back(self, over: Mapping[str, int]) -> None:
        """Take that of some pod sets more count as over, while of others fewer are said to be."""
        self.given_back = {**self.given_back, **over}

    def takes_back(self, over: Mapping[str, int]) -> None:
        """Take that fewer count as over than before."""
        self.gives_back(over)
        self.falls += 1

    def shows_given_back(self, now: float) -> None:
        """Take that what counts as over was asked to be written."""
        self.given_back_pause = next_pause(self.given_back_pause, self.given_back_at, now)
        self.given_back_at = now

    # --- its end ----------------------------------------------------------------------------------------------------

    def end_for(self, ending: Ending | None) -> None:
        """Take why it has to stop; None: it need not."""
        self.ending = ending

    def all_leave(self, leave: AllLeave | None) -> None:
        """Take that all of it is on its way out, or that it is not."""
        self.leave = leave

    def may_be_released(self) -> None:
        """Take that its quota is free before it has stopped, once its record says so."""
        self.released = True

    def ended_as(self, outcome: Outcome) -> None:
        """Take how it ended."""
        self.outcome = outcome

    def leave_words_out(self, message: str) -> bool:
        """Say this of the end instead of what its cluster said; False when there is no end, or that is done."""
        if self.outcome is None or self.words_left_out:
            return False
        self.words_left_out = True
        self.outcome = replace(self.outcome, reason="", message=message)
        return True

    def seen_to_end(self) -> None:
        """Take that its end is seen at the user's own object: what is live has its cluster still to tell."""
        self.unreported = self.live

    def reported_over(self) -> None:
        """Take that its cluster has told the end."""
        self.unreported = False

    # --- what is shown of it ----------------------------------------------------------------------------------------

    def says_replacements(self, now: float) -> None:
        """Take that the Workload is to say how many objects lack."""
        self.replacements_said_at = now

    def await_shown_end(self, now: float) -> bool:
        """Wait until the user's object shows the end; True when that begins."""
        begins = not self.ended_at
        self.ended_at = self.ended_at or now
        return begins

    def end_not_shown(self, why: str) -> None:
        """Take why the user's object does not show the end."""
        self.end_unshown = why

    def refuse_end(self) -> None:
        """Take that the user's object does not take the status that was reported with the end."""
        self.end_refused = True

    # --- writes and transitions ---------------------------------------------------------------------------------------

    def asks(self, version: str) -> None:
        """Note that its reservation is asked to be written on a version of its Workload."""
        if self.asked_on != version:
            self.asked_on, self.asked_for = version, ()
        if self.reserve is not None:
            self.asked_for = (*self.asked_for[1 - ASKED_MAX :], AskedReservation(self.epoch, self.reserve.admission))

    def regranted(self, reserve: Reserve, version: str) -> None:
        """Take that less is asked to be charged, on a version of its Workload."""
        self.reserve = reserve
        self.asks(version)

    def has_asked(self, version: str, epoch: int, admission: Admission | None) -> bool:
        """Say whether just this was asked to be written on that version."""
        if self.asked_on != version:
            return False
        return any(each.epoch == epoch and known_part(each.admission) == admission for each in self.asked_for)

    def follow(self, event: Internal | Wire) -> bool:
        """Take the transition; False when the table has a typed no-op. Raises IllegalTransition, changing nothing."""
        after = follow(self.state, event)
        if after is None:
            return False
        self.state = after
        return True
