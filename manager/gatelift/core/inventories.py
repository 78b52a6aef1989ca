"""A cluster's inventory against the record: set difference after a resync (design 5), by rules R1, R3, R4, P7, P10.

Equal ones are confirmed (by `placing`, once adopted), ones the agent does not know are gone under R4, ones the record
does not know are dropped, after the record was read again.
"""

from __future__ import annotations

from collections import deque

from gatelift.core import belief, endings, few_lines, mirror, placing, predecessors, recovery, reports, texts
from gatelift.core.attempts import LIVE, Attempt, AttemptState, Outcome, Wire
from gatelift.core.gone import Inventory, Known, is_gone, is_unexplained
from gatelift.core.link_values import PlacementsInventoried
from gatelift.core.state import DOUBTS, Core
from gatelift_kube.conditions import find
from gatelift_wire.inventory import InventoryEntry
from gatelift_wire.keys import PlacementKey
from gatelift_wire.messages import Withdraw

HELD = frozenset({"OFFERED", "HELD"})
UNFINISHED = frozenset({"OFFERED", "HELD", "COMMITTED", "APPLYING"})
OVER = frozenset({"STOPPED", "REPORTED", "REFUSED", "EXPIRED"})
UNKNOWN_SHARE_MAX = 0.1
UNKNOWN_MAX = 10
"""More unexplained placements than both are not dropped without a person: the record, not the cluster, may be wrong."""


LATELY_SECONDS = 240.0
"""A node that is lost is seen as such after 40 s and its pods are tolerated for five minutes: nobody removes them by
force earlier. What was placed lately and never committed, as a leader died, is not held up by a node that is away."""

COMPARED_PER_CALL = 400
"""Placements compared in one call, at 10 to 20 us each: a large inventory is cut, so that no call takes too long."""


class Comparison:
    """A complete inventory being compared with the record, in bounded steps.

    Until it is done the cluster is told nothing (`Core.comparing`).
    """

    __slots__ = ("_left", "_listed", "_strays", "_upcall")

    def __init__(self, core: Core, upcall: PlacementsInventoried) -> None:
        self._upcall = upcall
        self._listed = {entry.key: entry for entry in upcall.entries}
        self._left = deque(sorted(core.on_cluster.get(upcall.cluster, ())))
        self._strays: deque[InventoryEntry] | None = None
        core.comparing.add(upcall.cluster)
        core.owed.pop(upcall.cluster, None)
        belief.begin(core, upcall.cluster)
        reports.let_go(core, upcall.cluster)
        recovery.forget(core, upcall.cluster)

    def step(self, core: Core, now: float) -> bool:
        """Compare some more; True when all is compared."""
        facts = Inventory(
            session=self._upcall.session,
            latest_session=_latest(core, self._upcall),
            record_revision=self._upcall.record_revision,
            applied=self._upcall.applied,
            unproven=self._upcall.unproven,
            unproven_through=self._upcall.unproven_through,
            unheard=self._upcall.unheard,
        )
        for _ in range(min(COMPARED_PER_CALL, len(self._left))):
            _compare(core, self._upcall.cluster, self._left.popleft(), self._listed, facts, now)
        if self._left:
            return False
        if core.caution.halted:  # nothing is concluded from what is missing, or from what nothing explains
            self._note(core)
            few_lines.end(core, self._upcall.cluster)
            core.comparing.discard(self._upcall.cluster)
            return True
        core.comparing.discard(self._upcall.cluster)
        core.agenda.mark(DOUBTS)
        if self._strays is None:
            alive = tuple(entry for entry in self._upcall.entries if not _over(entry))
            predecessors.compared(core, self._upcall.cluster, alive, facts)
            self._strays = deque(_droppable(core, self._upcall.cluster, list(self._listed.values()), self._upcall))
        for _ in range(min(COMPARED_PER_CALL, len(self._strays))):
            _drop(core, self._upcall.cluster, self._strays.popleft(), now)
        if self._strays:
            return False
        few_lines.end(core, self._upcall.cluster)
        core.links.compared(self._upcall.cluster, self._upcall.session)
        return True

    def _note(self, core: Core) -> None:
        """Note what the record does not explain, and leave it alone."""
        for entry in self._listed.values():
            if entry.state.upper() in HELD or _over(entry) or belief.is_nobodys(core, self._upcall.cluster, entry):
                continue
            if _unexplained(core, self._upcall.cluster, entry):
                recovery.leave_alone(core, self._upcall.cluster, entry.key, entry)
            else:
                reports.look_ahead(
                    core, self._upcall.cluster, entry.key, over=False, gated=not entry.lifted, listed=entry
                )


def _compare(
    core: Core, cluster: str, uid: str, listed: dict[PlacementKey, InventoryEntry], facts: Inventory, now: float
) -> None:
    """Compare one placement of the record with what the cluster listed."""
    attempt = core.attempts.get(uid)
    if attempt is not None and attempt.state in LIVE:
        entry = listed.pop(attempt.key, None)
        if entry is not None:
            _listed(core, attempt, entry, facts.session)
        elif placing.runs_here(core, attempt):
            attempt.wants_objects = True  # the user's own object runs, whatever its labels say: the agent is told which
        elif is_unexplained(_known(attempt), facts):
            placing.lose(core, attempt)
        elif facts.unheard and not _just_placed(core, attempt, now):
            placing.lose(core, attempt, texts.unheard(cluster))
        elif attempt.state is AttemptState.CHOSEN or placing.is_home(core, attempt) is not None:
            # Nobody has heard of it since the record was written: it is committed (again), and the agent, which keeps
            # no commit without a live hold and no epoch twice (R5), refuses if it cannot be. At `local` the user's own
            # object carries nothing of ours before it is let go: that it was not listed proves nothing (R7).
            attempt.follow(Wire.LISTED_HELD)
            attempt.wants_objects = True
        elif not core.caution.halted and is_gone(_known(attempt), facts):
            text = texts.gone_from(cluster)
            endings.end(core, attempt, Wire.ABSENT, Outcome(how=Wire.ABSENT, message=text, cluster=cluster))
        core.mark_attempt(attempt)


def _just_placed(core: Core, attempt: Attempt, now: float) -> bool:
    """Say whether nothing speaks for it that a placement of which nobody has heard was ever let go.

    A leader that takes over knows it from what is written: how long ago it was placed, and whether it was seen to run.
    """
    known = core.knowledge.workloads.get(attempt.workload)
    owner = core.knowledge.owner_of(known) if known is not None else None
    admitted = find(known.status.conditions, texts.ADMITTED) if known is not None else None
    if attempt.state is not AttemptState.CHOSEN or admitted is None or owner is None or mirror.shows_run(owner.raw):
        return False
    return now - core.wall.at(admitted.last_transition_time, now) < LATELY_SECONDS


def _latest(core: Core, upcall: PlacementsInventoried) -> int:
    view = core.view(upcall.cluster)
    return view.session if view is not None else upcall.session


def _known(attempt: Attempt) -> Known:
    return Known(
        written_revision=attempt.written_revision,
        commit_session=attempt.commit_session,
        commit_sequence=attempt.commit_sequence,
        heard_session=max(attempt.heard_session, attempt.listed_session),
    )


def _listed(core: Core, attempt: Attempt, entry: InventoryEntry, session: int) -> None:
    attempt.listed_session, attempt.listed_over = session, _over(entry)
    others = belief.names_others(core, attempt, entry)
    attempt.wants_objects = entry.state.upper() in UNFINISHED or others
    if others:  # which objects are meant is said again; until that is answered it stays as it was
        return
    if entry.state.upper() in HELD:
        attempt.follow(Wire.LISTED_HELD)
    else:
        attempt.follow(Wire.LISTED_LIFTED if entry.lifted else Wire.LISTED_GATED)


def _droppable(
    core: Core, cluster: str, entries: list[InventoryEntry], upcall: PlacementsInventoried
) -> list[InventoryEntry]:
    """Return what the record does not know; without what no Workload explains if that is suspiciously much."""
    unknown = [entry for entry in entries if _unexplained(core, cluster, entry)]
    total = len(upcall.entries)
    if len(unknown) <= max(UNKNOWN_MAX, total * UNKNOWN_SHARE_MAX):
        return entries
    text = f"{len(unknown)} of {total} placements on cluster {cluster} are in no record: none of them is dropped"
    core.note(f"{text}; see docs/operations.md if the management cluster was restored", warning=True)
    return [entry for entry in entries if not _unexplained(core, cluster, entry)]


def _unexplained(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    return core.knowledge.workload_of(entry.key.uid) is None and not reports.is_past(core, cluster, entry.key)


def _drop(core: Core, cluster: str, entry: InventoryEntry, now: float) -> None:
    if belief.is_nobodys(core, cluster, entry):
        return
    over = _over(entry) or core.doubts.is_over(cluster, entry.key)
    if entry.state.upper() in HELD:
        if placing.open_view(core, cluster) is not None and not _awaits_bid(core, cluster, entry):
            core.send(cluster, (Withdraw(key=entry.key),), now)
    elif _unexplained(core, cluster, entry) and entry.lifted and not over:
        recovery.leave_alone(core, cluster, entry.key, entry)
    elif _unexplained(core, cluster, entry):
        core.ask_all(cluster, entry.key, entry.namespace, over=over)
    else:
        reports.stray(core, cluster, entry.key, now, over=over, gated=not entry.lifted, listed=entry)


def _over(entry: InventoryEntry) -> bool:
    return entry.state.upper() in OVER


def _awaits_bid(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    attempt = core.attempts.get(entry.key.uid)
    return (
        attempt is not None
        and attempt.key == entry.key
        and (attempt.cluster == cluster or (attempt.round is not None and cluster in attempt.round.offered))
        and attempt.state is not AttemptState.ENDED
    )
