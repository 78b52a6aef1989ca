"""What is asked of a cluster for each pod set of a placement, as its Commit and each Resize say it. Pure.

Of elastic work it is what its size lets run: no more than its record asks for, though more may be charged until its
cluster has answered (Size 2). One number always has the same counts. Neighbours: `placing`, `resizing`,
`growth_offers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gatelift.core.dispatching import additions, fit
from gatelift.core.dispatching.several import with_needs
from gatelift.core.dispatching.uncounted import with_uncounted
from gatelift.core.records.attempts import Attempt
from gatelift.core.state.core import Core
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared.sizes import counts_of
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.pod_sets import PodSetRequest


def is_sized(core: Core, uid: str) -> bool:
    """Say whether a Workload is a slice of elastic work: what is placed by it has a size."""
    return core.knowledge.slices.slice_of(uid) is not None


def number_of(core: Core, uid: str) -> int:
    """Return the number of the size that a record has; 0 where it has none, or nobody can tell it."""
    return core.knowledge.slices.number_of(uid)


def of_size(core: Core, attempt: Attempt, known: Workload) -> tuple[PodSetRequest, ...]:
    """Return what each pod set was granted; of elastic work no more than its size lets run."""
    granted = fit.pod_set_requests(attempt, known)
    if not is_sized(core, attempt.uid):
        return granted
    asked = counts_of(known)
    return tuple(of_pods(one, min(one.count, asked.get(one.name, one.count))) for one in granted)


def said(core: Core, attempt: Attempt, kind: Kind[Any]) -> tuple[PodSetRequest, ...]:
    """Return the pod sets as a Commit or a Resize says them, with what is added to their pods.

    KindError: checks contradict each other in what they add.
    """
    known = core.knowledge.workloads[attempt.workload]
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    asked = with_uncounted(core, of_size(core, attempt, known), known)
    marks = additions.NO_MARKS if kind.pods_are_children else additions.start_marks(known)
    asked = additions.with_additions(asked, known, checks, marks)
    return with_needs(asked, known) if attempt.cluster == LOCAL_CLUSTER else asked


def more(target: Sequence[PodSetRequest], placed: Sequence[PodSetRequest]) -> tuple[PodSetRequest, ...]:
    """Return by what each pod set grows, of those that do."""
    known = {one.name: one.count for one in placed}
    grown = ((one, one.count - known.get(one.name, 0)) for one in target)
    return tuple(of_pods(one, count) for one, count in grown if count > 0)


def of_pods(one: PodSetRequest, count: int) -> PodSetRequest:
    """Return the request for so many pods instead."""
    if count == one.count or not one.count:
        return one
    return replace(one, count=count, requests=tuple((name, total // one.count * count) for name, total in one.requests))
