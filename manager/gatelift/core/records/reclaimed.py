"""Pods of a placement that need quota no longer (KEP-78): by the word of the cluster where they ran, and no other.

What the cluster of the live epoch says is counted anew with each of its reports, of the granted pods, and may fall
(decision 84). By that the Workload of a user's object is charged, whatever `status.reclaimablePods` says, which anybody
may write who may write a status: there it stands for people, and for the next leader. What that one finds in the record
is believed until it has heard the cluster: charged in full, others would be preempted for what is free (decision 65).
Not where counts of the pod sets were lowered since: of pods that were asked for and not granted that makes granted
ones. Of a kind that gives nothing back before its end nothing is believed. That of a Workload without an owner is its
controller's to write, and believed. Pure. Neighbours: `rules.reclaim_books` charges by it, `works.reclaiming` has it
written, `rules.kept_record` asks what to charge.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.attempt_states import LIVE, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import ReclaimablePod, Workload

_CHARGED = LIVE | {AttemptState.ENDED}
"""What has ended is charged until that is written, by what its cluster has said last (HD-601)."""
Reclaimed = tuple[tuple[str, int], ...]
"""Pods by pod set, in the order of the Workload, without zeros."""


def due(known: Workload, attempt: Attempt) -> Reclaimed:
    """Return the pods per pod set that count as needing quota no longer.

    Counted from what was asked for, as Kueue reads them: of 8 asked and 5 granted 6 are over when 2 are left to run.
    """
    granted, over = record.granted(known), still_over(known, attempt)
    return tuple(
        (one.name, given + max(one.count, granted[one.name]) - granted[one.name])
        for one in known.spec.pod_sets
        if one.name in granted and (given := min(over.get(one.name, 0), granted[one.name])) > 0
    )


def still_over(known: Workload, attempt: Attempt) -> dict[str, int]:
    """Return how many of the pods that are granted now count as over, per pod set.

    They were counted of those that were granted then. Where these are fewer now, as of elastic work whose size was
    lowered, as many as before are left to run, up to all of them (HD-551).
    """
    granted, of = record.granted(known), attempt.size.given_of
    return {name: _left(count, of.get(name), granted.get(name, 0)) for name, count in attempt.given_back.items()}


def _left(over: int, of: int | None, granted: int) -> int:
    return over if of is None else max(0, over - max(0, of - granted))


def lowered(known: Workload, granted: Mapping[str, int]) -> Reclaimed:
    """Return what the status is to say of it once so many are granted."""
    before = record.granted(known)
    left = ((name, _left(count, before.get(name), granted.get(name, 0))) for name, count in written(known))
    return tuple((name, count) for name, count in left if count)


def said(known: Workload, attempt: Attempt) -> dict[str, int]:
    """Return how many of the granted pods are over, per pod set, as the cluster has said last; none where it has not.

    What holds resources there keeps its quota, whatever has been counted as done.
    """
    counts = attempt.counts
    if counts is None or known.status.admission is None:
        return {}
    granted = record.granted(known)
    held = {one.name: one.remaining for one in counts.pod_sets}
    both = held.keys() & granted.keys()
    of = attempt.size.counts_of
    over = {
        name: min(_left(count, of.get(name), granted[name]), granted[name] - held[name])
        for name, count in counts.reclaimable
        if name in both
    }
    return {name: count for name, count in over.items() if count > 0}


def believed(known: Workload, attempt: Attempt | None, *, counted: bool) -> Workload:
    """Return the Workload of a user's object as it is to be charged: so much is free as is known to be over.

    `counted`: clusters report how many pods of its kind are over, and it asks for as many as when that was written.
    """
    if counted and _is_found(known, attempt):
        return known
    over = due(known, attempt) if attempt is not None and attempt.state in _CHARGED else ()
    return _saying(known, over)


def with_pods(known: Workload, over: Mapping[str, int]) -> Workload:
    """Return a Workload as it is to be charged, of which so many pods count as over of those that are asked for."""
    return _saying(known, asked(known, over))


def asked(known: Workload, over: Mapping[str, int]) -> Reclaimed:
    """Return pods per pod set, counted from what was asked for, in the order of the Workload."""
    return tuple((one.name, over[one.name]) for one in known.spec.pod_sets if over.get(one.name, 0))


def _saying(known: Workload, over: Reclaimed) -> Workload:
    if over == written(known):
        return known
    pods = tuple(ReclaimablePod(name, count) for name, count in over)
    return msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, reclaimable_pods=pods))


def written(known: Workload) -> Reclaimed:
    """Return what the status says of it."""
    return tuple((one.name, one.count) for one in known.status.reclaimable_pods if one.count)


def _is_found(known: Workload, attempt: Attempt | None) -> bool:
    """Say whether it was admitted under an earlier leader, and its cluster has told this one nothing of it yet."""
    if attempt is None:
        return is_true(known.status.conditions, texts.ADMITTED)
    return attempt.state in LIVE and attempt.counts is None and attempt.reserved_for is None
