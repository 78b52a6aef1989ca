"""What is charged to a cluster that is connected and does not know of it, while that proves nothing (rule R4).

The worker was restored from a backup, or is another cluster than the one that was placed on (`identity`). Such a
placement counts as lost: it stays charged, nothing is said about it to who does not know it, and no answer about it is
believed. It ends by a person's word, or goes on when an inventory lists it after all. Neighbours: `inventories`,
`placing`, `reports`.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.clusters.unheard import NOTHING_UNDECIDED, Undecided
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.gone import known_session
from gatelift.core.state.core import Core


def is_unexplained(attempt: Attempt, view: ClusterView) -> bool:
    """Say whether who serves the cluster now cannot be expected to know of a placement, and has not listed it.

    What was placed there since, by a person's word that it gets work all the same, is none of that.
    """
    return view.unproven and known_session(attempt) <= view.unproven_through


def is_compared(core: Core, view: ClusterView) -> bool:
    """Say whether the inventory of a cluster's present session has been compared with the record."""
    return view.open and core.sessions.resynced(view.name) == view.resynced_session


def count(core: Core, cluster: str) -> int | None:
    """Return how many placements are charged to a cluster and unexplained; None while its inventory is not compared."""
    view = core.view(cluster)
    if view is None or not is_compared(core, view):
        return None
    if not view.unproven:
        return 0
    lost = sum(attempt.state is AttemptState.LOST for attempt in _placed(core, cluster))
    return lost + core.predecessors.unheard(cluster, view.unproven_through)


def undecided(core: Core, cluster: str) -> Undecided:
    """Return how many placements of a cluster its next inventory may decide, and when by time alone (`unheard`)."""
    view = core.view(cluster)
    if view is None:
        return NOTHING_UNDECIDED
    for_good = core.predecessors.unheard(cluster, view.unproven_through) if view.unproven else 0
    lost = [attempt for attempt in _placed(core, cluster) if attempt.state is AttemptState.LOST]
    count = sum(not is_unexplained(attempt, view) for attempt in lost) + core.predecessors.count(cluster) - for_good
    count += cluster in core.caution.recovery.unproven
    over_at = min((attempt.absent_until for attempt in lost if attempt.absent_until is not None), default=None)
    return Undecided(count, over_at)


def _placed(core: Core, cluster: str) -> Iterable[Attempt]:
    return (core.attempts[uid] for uid in core.placements.at(cluster) if uid in core.attempts)
