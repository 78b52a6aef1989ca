"""How many pods of a work of several objects need quota no longer: by those objects, as they are seen at home. Pure.

Members that succeeded give their share back while others run (KEP-78), and are not charged again in the next epoch:
both are counted from what the Workload asks for. Members that were ended keep it until all have (KEP-6143), but in a
ClusterQueue that says `gatelift.dev/release-partial: "true"`: there each gives its share back as it is over. That does
not fall while it stops: who comes meanwhile runs in no epoch before the next.

Where they run at a worker, no end that a pod shows at home frees anything by itself: beyond those that were not granted
again it takes the worker's word, or, for who leads since, what its record says; and as they stop the worker's counts.
Neighbours: `kept_record` charges by it,
`reclaim_books` looks whether it has changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift.core import texts
from gatelift.core.records import reclaimed, record
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import release
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload


def over(core: Core, known: Workload, attempt: Attempt | None, gathered: Gathered) -> dict[str, int]:
    """Return how many pods per pod set, of as many as are asked for, are charged no longer; without zeros."""
    granted = record.granted(known)
    found, there = gathered.over(known, granted), (known.status.cluster_name or LOCAL_CLUSTER) != LOCAL_CLUSTER
    if there:
        found = _by_word(known, granted, found, gathered.unproven())
        if attempt is not None and attempt.state is AttemptState.ENDED:
            return _most(found, attempt.given_back)  # nothing of it runs: what its worker said of each stays so
    if attempt is None or not _leaves_by_parts(core, known, attempt):
        return found
    if attempt.state is not AttemptState.ENDING:
        return _most(found, attempt.given_back)
    left = _stopped(known, granted, attempt) if there else gathered.left(known, granted, attempt.epoch)
    return _most(found, attempt.given_back, left)


def _by_word(
    known: Workload, granted: dict[str, int], found: dict[str, int], unproven: Mapping[str, int]
) -> dict[str, int]:
    """Return how many are over by their worker's word of those that show it; what was not granted needs none."""
    written = dict(reclaimed.written(known))
    asked = {each.name: each.count for each in known.spec.pod_sets}
    proven: dict[str, int] = {}
    for name, count in found.items():
        beside = asked.get(name, 0) - granted.get(name, asked.get(name, 0))
        most = max(written.get(name, 0), count - max(0, unproven.get(name, 0) - beside))
        proven[name] = min(count, most)
    return {name: count for name, count in proven.items() if count > 0}


def _stopped(known: Workload, granted: dict[str, int], attempt: Attempt) -> dict[str, int]:
    """Return how many of those that are being stopped hold nothing at their worker any more, by its last word.

    Of a pod set that it does not name it knows nothing: its agent may have begun since, and one may run (HD-664).
    """
    counts = attempt.counts
    if attempt.leave is None or counts is None:
        return {}
    held = {each.name: each.remaining for each in counts.pod_sets}
    asked = (
        (each.name, each.count - min(granted.get(each.name, 0), held.get(each.name, each.count)))
        for each in known.spec.pod_sets
    )
    return {name: count for name, count in asked if count > 0}


def _leaves_by_parts(core: Core, known: Workload, attempt: Attempt) -> bool:
    """Say whether it is being stopped after an eviction, in a queue where each member gives its own share back."""
    if attempt.state not in {AttemptState.ENDING, AttemptState.LOST}:
        return False
    return is_true(known.status.conditions, texts.EVICTED) and release.is_partial(core, known)


def _most(*counts: dict[str, int]) -> dict[str, int]:
    names = {name for each in counts for name in each}
    return {name: max(each.get(name, 0) for each in counts) for name in sorted(names)}
