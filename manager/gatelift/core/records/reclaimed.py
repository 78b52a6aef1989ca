"""Pods of a placement that need quota no longer (KEP-78): by the word of the cluster where they ran, and no other.

`status.reclaimablePods` is where that is written, and anybody may write it who may write a status. So it frees no more
than the cluster has reported of this epoch, and nothing of what waits. What a leader finds in the record is believed
until it has heard the cluster: charged in full, others would be preempted for what is free (decision 65). Not where
counts of the pod sets were lowered since: of pods that were asked for and not granted that makes granted ones. Of a Pod
nothing is ever given back before its end, and no cluster counts it: nothing is believed. That of a Workload without an
owner is its controller's to write, and believed. Pure. Neighbours: `reclaiming` has it written, `kept_record` asks what
to charge.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.attempt_states import LIVE
from gatelift.core.records.attempts import Attempt
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import ReclaimablePod, Workload


def due(known: Workload, attempt: Attempt) -> tuple[tuple[str, int], ...]:
    """Return the pods per pod set that need quota no longer, as the cluster has reported; none where it has not.

    Counted from what was asked for, as Kueue reads them: of 8 asked and 5 granted 6 are over when 2 are left to run.
    """
    granted = record.granted(known)
    asked = {pod_set.name: max(pod_set.count, granted.get(pod_set.name, 0)) for pod_set in known.spec.pod_sets}
    return tuple(
        (name, count + asked[name] - granted[name])
        for name, count in over(known, attempt).items()
        if name in asked and count > 0
    )


def over(known: Workload, attempt: Attempt) -> dict[str, int]:
    """Return how many of the granted pods are over, per pod set, as the cluster has reported; none where it has not.

    What holds resources there keeps its quota, whatever has been counted as done. In one attempt never fewer than
    counted before, as in Kueue: others hold that quota by then, and would be ended for it.
    """
    said = attempt.counts
    if said is None or known.status.admission is None:
        return {}
    granted = record.granted(known)
    held = {one.name: one.remaining for one in said.pod_sets}
    both = held.keys() & granted.keys()
    counted = {name: min(count, granted[name] - held[name]) for name, count in said.reclaimable if name in both}
    given = {name: count for name, count in attempt.given_back.items() if name in granted}
    return counted | {name: max(count, counted.get(name, 0)) for name, count in given.items()}


def believed(known: Workload, attempt: Attempt | None, *, counted: bool) -> Workload:
    """Return the Workload of a user's object as it is to be charged: no more is free than is known to be over.

    `counted`: clusters report how many pods of its kind are over, and it asks for as many as when that was written.
    """
    if not known.status.reclaimable_pods or (counted and _is_found(known, attempt)):
        return known
    most = dict(due(known, attempt)) if attempt is not None and attempt.state in LIVE else {}
    pods = tuple(
        ReclaimablePod(one.name, min(one.count, most[one.name]))
        for one in known.status.reclaimable_pods
        if one.name in most
    )
    return msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, reclaimable_pods=pods))


def _is_found(known: Workload, attempt: Attempt | None) -> bool:
    """Say whether it was admitted under an earlier leader, and its cluster has told this one nothing of it yet."""
    if attempt is None:
        return is_true(known.status.conditions, texts.ADMITTED)
    return attempt.state in LIVE and attempt.counts is None and attempt.reserved_for is None
