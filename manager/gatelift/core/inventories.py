"""A cluster's inventory against the record: set difference after a resync (design 5), by rules R1, R3, R4 and P7.

Equal ones are confirmed (by `placing`, once adopted), ones the agent does not know are gone under R4, ones the record
does not know are dropped, after the record was read again.
"""

from __future__ import annotations

from gatelift.core import endings, placing, reports, texts
from gatelift.core.attempts import LIVE, Attempt, AttemptState, Outcome, Wire
from gatelift.core.gone import Inventory, Known, is_gone
from gatelift.core.link_values import PlacementsInventoried
from gatelift.core.state import Core
from gatelift_wire.messages import InventoryEntry, Withdraw

HELD = frozenset({"OFFERED", "HELD"})
UNFINISHED = frozenset({"OFFERED", "HELD", "COMMITTED", "APPLYING"})
OVER = frozenset({"STOPPED", "REPORTED", "REFUSED", "EXPIRED"})
UNKNOWN_SHARE_MAX = 0.1
UNKNOWN_MAX = 10
"""More unexplained placements than both are not dropped without a person: the record, not the cluster, may be wrong."""


def inventoried(core: Core, upcall: PlacementsInventoried, now: float) -> None:
    """Compare a complete inventory with the record."""
    cluster = upcall.cluster
    listed = {entry.key: entry for entry in upcall.entries}
    facts = Inventory(
        session=upcall.session,
        latest_session=_latest(core, upcall),
        record_revision=upcall.record_revision,
        applied=upcall.applied,
        restored=upcall.restored,
    )
    for uid in sorted(core.on_cluster.get(cluster, ())):
        attempt = core.attempts.get(uid)
        if attempt is None or attempt.state not in LIVE:
            continue
        entry = listed.pop(attempt.key, None)
        if entry is not None:
            _listed(attempt, entry)
        elif attempt.state is AttemptState.CHOSEN:
            # Nobody has heard of it since the record was written: it is committed (again), and the agent, which keeps
            # no commit without a live hold and no epoch twice (R5), refuses if it cannot be.
            attempt.wants_objects = True
        elif is_gone(_known(attempt), facts):
            text = texts.gone_from(cluster)
            endings.end(core, attempt, Wire.ABSENT, Outcome(how=Wire.ABSENT, message=text, cluster=cluster))
        core.mark_attempt(attempt)
    _unlisted_by_record(core, cluster, list(listed.values()), len(upcall.entries), now)


def _latest(core: Core, upcall: PlacementsInventoried) -> int:
    view = core.view(upcall.cluster)
    return view.session if view is not None else upcall.session


def _known(attempt: Attempt) -> Known:
    return Known(
        written_revision=attempt.written_revision,
        commit_session=attempt.commit_session,
        commit_sequence=attempt.commit_sequence,
    )


def _listed(attempt: Attempt, entry: InventoryEntry) -> None:
    attempt.wants_objects = entry.state.upper() in UNFINISHED
    if entry.state.upper() in HELD:
        attempt.follow(Wire.LISTED_HELD)
    else:
        attempt.follow(Wire.LISTED_LIFTED if entry.lifted else Wire.LISTED_GATED)


def _unlisted_by_record(core: Core, cluster: str, entries: list[InventoryEntry], total: int, now: float) -> None:
    """Drop what the record does not know, unless that is suspiciously much."""
    unknown: list[InventoryEntry] = []
    for entry in entries:
        if entry.state.upper() in HELD:
            if placing.open_view(core, cluster) is not None and not _awaits_bid(core, cluster, entry):
                core.send(cluster, (Withdraw(key=entry.key),), now)
        elif core.knowledge.workload_of(entry.key.uid) is None and not core.knowledge.saw_go(entry.key.uid):
            unknown.append(entry)
        else:
            reports.stray(core, cluster, entry.key, now, over=_over(entry))
    if len(unknown) > max(UNKNOWN_MAX, total * UNKNOWN_SHARE_MAX):
        text = f"{len(unknown)} of {total} placements on cluster {cluster} are in no record: none of them is dropped"
        core.note(f"{text}; if the management cluster was restored, run `gatelift recover`", warning=True)
        return
    for entry in unknown:
        core.ask_all(cluster, entry.key, entry.namespace, over=_over(entry))


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
