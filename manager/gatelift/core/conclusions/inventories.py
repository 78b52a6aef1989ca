"""A cluster's inventory against the record: set difference after a resync, by rules R1, R3, R4, P7, P10.

Equal ones are confirmed (by `placing`, once adopted), ones the agent does not know are gone under R4, ones the record
does not know are dropped, after the record was read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop

from gatelift.core import texts
from gatelift.core.clusters.link_values import PlacementsInventoried
from gatelift.core.conclusions import absences, belief, recovery_lists, reports, sized
from gatelift.core.conclusions.claims import Claim
from gatelift.core.dispatching import endings, membership, placing
from gatelift.core.records.attempt_states import LIVE, AttemptState, Wire
from gatelift.core.records.attempts import Attempt, Outcome
from gatelift.core.records.gone import Evidence, Inventory, is_gone, is_unexplained, known_session
from gatelift.core.records.work import NOBODYS
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import few_lines, predecessors
from gatelift.core.state.core import DOUBTS, Core
from gatelift.core.told import mirror
from gatelift_kube.objects.conditions import find
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Withdraw

HELD = frozenset({"OFFERED", "HELD"})
UNFINISHED = frozenset({"OFFERED", "HELD", "COMMITTED", "APPLYING"})
OVER = frozenset({"STOPPED", "REPORTED", "REFUSED", "EXPIRED"})
UNKNOWN_SHARE_MAX = 0.1
UNKNOWN_MAX = 10
"""More unexplained placements than both are not dropped without a person: the record, not the cluster, may be wrong."""


LATELY_SECONDS = 240.0
"""A node that is lost is seen as such after 40 s and its pods are tolerated for five minutes: nobody removes them by
force earlier. What was placed lately and never committed, as a leader died, is not held up by a node that is away."""

COMPARED_PER_CALL = 100
"""Placements compared in one call, at 10 to 20 us each: all others wait for no longer than that."""

CHEAP = 20
"""Entries that are only sorted or counted, for one that is compared."""


class Comparison:
    """A complete inventory being compared with the record, in bounded steps.

    Until it is done the cluster is told nothing but what the comparison itself says (`Core.sessions`).
    """

    __slots__ = ("_answers", "_facts", "_listed", "_owed", "_raised", "_steps", "_upcall")

    def __init__(self, core: Core, upcall: PlacementsInventoried) -> None:
        self._upcall = upcall
        self._listed: dict[PlacementKey, InventoryEntry] = {}
        self._answers = False
        self._raised: set[str] = set()
        self._facts = self._judged_by(core)
        core.sessions.compare(upcall.cluster)
        self._owed = core.sessions.take_owed(upcall.cluster)
        belief.begin(core, upcall.cluster)
        core.caution.lists_anew(upcall.cluster)
        recovery_lists.forget(core, upcall.cluster)
        self._steps = self._all(core)

    def step(self, core: Core) -> bool:
        """Compare some more; True when all is compared."""
        cluster = self._upcall.cluster
        self._facts = self._judged_by(core)
        if self._answers:
            core.sessions.compared(cluster)
        for _ in range(COMPARED_PER_CALL):
            if next(self._steps, self) is self:
                few_lines.end(core, cluster)
                core.sessions.compared(cluster)
                return True
        core.sessions.compare(cluster)
        return False

    def _judged_by(self, core: Core) -> Inventory:
        upcall = self._upcall
        return Inventory(
            session=upcall.session,
            latest_session=_latest(core, upcall),
            record_revision=upcall.record_revision,
            applied=upcall.applied,
            unproven=upcall.unproven,
            unproven_through=upcall.unproven_through,
            unheard=upcall.unheard,
        )

    def _all(self, core: Core) -> Iterator[None]:
        """Compare all, and rest after each placement, or after some entries that are only looked at."""
        cluster = self._upcall.cluster
        left = list(core.placements.at(cluster))
        heapify(left)  # the order of a sorted list, without sorting all of it at once
        for some in self._some():
            self._listed.update((entry.key, entry) for entry in some)
            yield
        placing.forget_unlisted(core, cluster, placing.of_what_is_kept(self._owed, self._listed))
        while left:
            uid = heappop(left)
            with Boundary(self._not_compared, core, uid, now=core.now):
                _compare(core, cluster, uid, self._listed, self._facts)
            yield
        again = core.caution.uncompared_at(cluster) - self._raised  # what raised last time
        for uid in again:
            core.caution.compared(cluster, uid)
        yield from self._others(core)
        for uid in again - self._raised:
            containment.compared(core, uid)

    def _others(self, core: Core) -> Iterator[None]:
        """Take what is listed beside what the record has there."""
        cluster = self._upcall.cluster
        aside, holder = core.caution.set_aside, core.knowledge.slices.holder  # nobody can tell what the records say
        unlisted = tuple(entry for entry in self._listed.values() if holder(entry.key.uid) not in aside)
        if core.caution.halted:  # nothing is concluded from what is missing, or from what nothing explains
            for entry in unlisted:
                self._note(core, entry)
                yield
            reports.let_go_unlisted(core, cluster)
            return
        self._answers = True
        core.sessions.compared(cluster)
        yield from self._remember(core)
        yield from self._drop_all(core, unlisted)
        reports.let_go_unlisted(core, cluster)
        core.agenda.mark(DOUBTS)
        core.links.compared(cluster, self._upcall.session)

    def _not_compared(self, core: Core, uid: str, error: Exception, now: float) -> None:
        """Set aside one placement with which comparing raised; all others are compared."""
        self._raised.add(uid)
        containment.not_compared(core, self._upcall.cluster, uid, error, now)

    def _some(self) -> Iterator[tuple[InventoryEntry, ...]]:
        entries = self._upcall.entries
        return (entries[begin : begin + CHEAP] for begin in range(0, len(entries), CHEAP))

    def _remember(self, core: Core) -> Iterator[None]:
        """Take what the inventory says of placements whose Workloads are gone."""
        alive: set[PlacementKey] = set()
        unexplained = False
        for some in self._some():
            keys = [entry.key for entry in some if not _over(entry)]
            alive.update(keys)
            unexplained = unexplained or any(core.knowledge.placed_workload(key.uid) is None for key in keys)
            yield
        predecessors.compared(core, self._upcall.cluster, alive, self._facts, unexplained=unexplained)

    def _drop_all(self, core: Core, entries: tuple[InventoryEntry, ...]) -> Iterator[None]:
        """Drop what the record does not know; not what no Workload explains if that is suspiciously much."""
        cluster, total, unknown = self._upcall.cluster, len(self._upcall.entries), 0
        for begin in range(0, len(entries), CHEAP):
            unknown += sum(_unexplained(core, cluster, entry) for entry in entries[begin : begin + CHEAP])
            yield
        suspicious = unknown > max(UNKNOWN_MAX, total * UNKNOWN_SHARE_MAX)
        if suspicious:
            text = f"{unknown} of {total} placements on cluster {cluster} are in no record: none of them is dropped"
            core.note(f"{text}; see docs/operations.md if the management cluster was restored", warning=True)
        for entry in entries:
            if not (suspicious and _unexplained(core, cluster, entry)):
                with Boundary(self._not_compared, core, entry.key.uid, now=core.now):
                    _drop(core, cluster, entry, core.now)
            yield

    def _note(self, core: Core, entry: InventoryEntry) -> None:
        """Note what the record does not explain, and leave it alone."""
        cluster = self._upcall.cluster
        if entry.state.upper() in HELD or _over(entry) or belief.is_nobodys(core, cluster, entry):
            return
        if _unexplained(core, cluster, entry) and entry.all_over:
            recovery_lists.idles(core, cluster, entry.key)
            core.doubts.postpone(cluster, entry.key, over=False, gated=True)
        elif _unexplained(core, cluster, entry):
            recovery_lists.leave_alone(core, cluster, entry.key, entry)
        else:
            reports.look_ahead(core, Claim(cluster, entry.key, over=False, gated=not entry.lifted, listed=entry))


def _compare(core: Core, cluster: str, uid: str, listed: dict[PlacementKey, InventoryEntry], facts: Inventory) -> None:
    """Compare one placement of the record with what the cluster listed."""
    known = core.knowledge
    holder = known.slices.holder(known.placed_uid(uid))  # it may have moved since the list was begun
    attempt = core.attempts.get(holder)
    if attempt is None or attempt.state not in LIVE:
        return
    entry = listed.pop(attempt.key, None)
    if entry is not None:
        _listed(core, attempt, entry, facts)
    elif placing.runs_here(core, attempt):
        attempt.want_objects()  # the user's own object runs, whatever its labels say: the agent is told which
    elif is_unexplained(_known(attempt), facts):
        placing.lose(core, attempt)
    else:
        _unlisted(core, cluster, attempt, facts, core.now)
    core.mark_attempt(attempt)


def _unlisted(core: Core, cluster: str, attempt: Attempt, facts: Inventory, now: float) -> None:
    """Conclude what can be from that a cluster does not list a placement of which it could be expected to know."""
    just_placed = _just_placed(core, attempt, now)
    if facts.unheard and not just_placed:
        placing.lose(core, attempt, texts.unheard(cluster))
    elif placing.is_home(core, attempt) is not None or just_placed:
        _begin_again(attempt)
    elif attempt.state is AttemptState.CHOSEN:
        if absences.is_over(core, attempt, now):
            _begin_again(attempt)
    elif not core.caution.halted and is_gone(_known(attempt), facts) and absences.is_over(core, attempt, now):
        text = texts.gone_from(cluster)
        membership.take_absent(core, attempt)
        endings.end(core, attempt, Wire.ABSENT, Outcome(how=Wire.ABSENT, message=text, cluster=cluster))


def _begin_again(attempt: Attempt) -> None:
    """Have a placement committed (again) of which nobody has heard since the record was written.

    The agent, which keeps no commit without a live hold and no epoch twice (R5), refuses if it cannot be. At `local`
    the user's own object carries nothing of ours before it is let go: that it was not listed proves nothing (R7).
    """
    attempt.follow(Wire.LISTED_HELD)
    attempt.want_objects()


def _just_placed(core: Core, attempt: Attempt, now: float) -> bool:
    """Say whether nothing speaks for it that a placement of which nobody has heard was ever let go.

    A leader that takes over knows it from what is written: how long ago it was placed, and whether it was seen to run.
    """
    known = core.knowledge.workloads.get(attempt.workload)
    work = core.knowledge.work_of(known) if known is not None else NOBODYS
    owner, shows = work.stands_for_all, work.gathered is not None and work.gathered.may_run
    admitted = find(known.status.conditions, texts.ADMITTED) if known is not None else None
    if attempt.state is not AttemptState.CHOSEN or admitted is None or owner is None or shows:
        return False
    if mirror.shows_run(owner.raw):
        return False
    return now - core.wall.at(admitted.last_transition_time, now) < LATELY_SECONDS


def _latest(core: Core, upcall: PlacementsInventoried) -> int:
    view = core.view(upcall.cluster)
    return view.session if view is not None else upcall.session


def _known(attempt: Attempt) -> Evidence:
    return Evidence(
        written_revision=attempt.written_revision,
        commit_session=attempt.commit_session,
        commit_sequence=attempt.commit_sequence,
        heard_session=known_session(attempt),
    )


def _listed(core: Core, attempt: Attempt, entry: InventoryEntry, facts: Inventory) -> None:
    others = belief.names_others(core, attempt, entry)
    if others and is_unexplained(_known(attempt), facts):
        placing.lose(core, attempt)  # what wears its labels shows nothing of who may not know of it
        return
    attempt.listed(facts.session, over=_over(entry), wants_objects=entry.state.upper() in UNFINISHED or others)
    if others and not _is_lost_group(core, attempt):
        return  # which objects are meant is said again; until that is answered it stays as it was
    sized.listed(core, attempt, entry, core.now)
    if entry.state.upper() in HELD:
        attempt.follow(Wire.LISTED_HELD)
    else:
        attempt.follow(Wire.LISTED_LIFTED if entry.lifted else Wire.LISTED_GATED)


def _is_lost_group(core: Core, attempt: Attempt) -> bool:
    """Say whether it is a group at a worker that counts as lost: to such a one nothing would be said (HD-528).

    Nothing that home still has may be left of it there. Who lists it is told which objects are meant, or to stop.
    """
    known = core.knowledge.workloads.get(attempt.workload)
    return attempt.state is AttemptState.LOST and known is not None and belief.is_group_elsewhere(core, attempt, known)


def _unexplained(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    return core.knowledge.placed_workload(entry.key.uid) is None and not reports.is_past(core, cluster, entry.key)


def _drop(core: Core, cluster: str, entry: InventoryEntry, now: float) -> None:
    if belief.is_nobodys(core, cluster, entry):
        return
    over = _over(entry) or core.doubts.is_over(cluster, entry.key)
    if entry.state.upper() in HELD:
        if placing.open_view(core, cluster) is not None and not _awaits_bid(core, cluster, entry):
            core.send(cluster, (Withdraw(key=entry.key),), now)
    elif _unexplained(core, cluster, entry) and entry.lifted and not (over or entry.all_over):
        recovery_lists.leave_alone(core, cluster, entry.key, entry)
    elif _unexplained(core, cluster, entry):
        if entry.all_over and not over:
            recovery_lists.idles(core, cluster, entry.key)
        core.ask_all(cluster, entry.key, entry.namespace, over=over)
    else:
        reports.stray(core, Claim(cluster, entry.key, over=over, gated=not entry.lifted, listed=entry))


def _over(entry: InventoryEntry) -> bool:
    return entry.state.upper() in OVER


def _awaits_bid(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    attempt = core.placed(entry.key)
    return (
        attempt is not None
        and attempt.key == entry.key
        and (attempt.cluster == cluster or (attempt.round is not None and cluster in attempt.round.offered))
        and attempt.state is not AttemptState.ENDED
    )
