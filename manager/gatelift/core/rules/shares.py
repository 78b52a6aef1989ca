"""How many pods of a work of several objects need quota no longer: by those objects, which are seen at home. Pure.

Members that succeeded give their share back while others run (KEP-78), and are not charged again in the next epoch:
both are counted from what the Workload asks for. Members that were ended keep it until all have (KEP-6143), but in a
ClusterQueue that says `gatelift.dev/release-partial: "true"`: there each gives its share back as it is over. That does
not fall while it stops: who comes meanwhile runs in no epoch before the next. Neighbours: `kept_record` charges by it,
`reclaim_books` looks whether it has changed.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import release
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Workload


def over(core: Core, known: Workload, attempt: Attempt | None, gathered: Gathered) -> dict[str, int]:
    """Return how many pods per pod set, of as many as are asked for, are charged no longer; without zeros."""
    granted = record.granted(known)
    found = gathered.over(known, granted)
    if attempt is None or not _leaves_by_parts(core, known, attempt):
        return found
    left = gathered.left(known, granted, attempt.epoch) if attempt.state is AttemptState.ENDING else {}
    return _most(found, attempt.given_back, left)


def _leaves_by_parts(core: Core, known: Workload, attempt: Attempt) -> bool:
    """Say whether it is being stopped after an eviction, in a queue where each member gives its own share back."""
    if attempt.state not in {AttemptState.ENDING, AttemptState.LOST}:
        return False
    return is_true(known.status.conditions, texts.EVICTED) and release.is_partial(core, known)


def _most(*counts: dict[str, int]) -> dict[str, int]:
    names = {name for each in counts for name in each}
    return {name: max(each.get(name, 0) for each in counts) for name in sorted(names)}
