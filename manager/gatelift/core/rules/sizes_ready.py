"""Elastic work whose pods are to be ready in time (waitForPodsReady, KEP-77): a growth gives its size back (SL-37).

Ready is who runs as many as he is granted, whatever his user wants besides. While a record grows, as many as ran before
are enough: what it grew by may be late, and evicts nothing. Where those are not ready within the time-out, the record
comes down to the size of before, by a later size and its answer, as by a user's own shrink (Size 3); what is wanted is
tried again at pauses that grow, as an eviction would have it. Whether a growth was ready is memory: each leader counts
anew. Neighbour: `readiness` asks.
"""

from __future__ import annotations

import math

from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.chain import REPLACED, Chain
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import backoff
from gatelift.core.told import slice_moments
from gatelift_kinds.shared import sizes
from gatelift_kinds.shared.sizes import Counts
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER


def are_ready(case: Case, owner: Owner) -> bool:
    """Say whether the pods of an object are ready: of what is elastic as many as are granted, or as ran before."""
    number = case.core.knowledge.slices.number_of(case.rec.uid)
    if not number or not owner.kind.gated(owner.object):
        return owner.kind.pods_ready(owner.object)
    granted = _granted(case)
    if owner.kind.are_ready(owner.object, granted):
        case.attempt.size.is_ready(number, granted)
        return True
    before = _grows_from(case, number)
    return before is not None and owner.kind.are_ready(owner.object, sizes.lowered(granted, before))


def is_growing(case: Case) -> bool:
    """Say whether a record has grown, and what it grew by was not ready yet."""
    number = case.core.knowledge.slices.number_of(case.rec.uid)
    return bool(number) and _grows_from(case, number) is not None


def watch(case: Case) -> None:
    """Count how long what a record grew by is not ready; after the time-out it is to be given back.

    Not at home: nobody could stop those that are late there, whose user's object wants them.
    """
    core, attempt, settings = case.core, case.attempt, case.core.settings.readiness
    number = core.knowledge.slices.number_of(case.rec.uid)
    if settings is None or not number or attempt.cluster == LOCAL_CLUSTER or not is_growing(case):
        return
    owner = case.work.only_object  # what has a size is one object's
    if owner is None:
        return
    due = attempt.size.is_late_since(number, case.now) + settings.timeout
    if case.now < due:
        core.agenda.wake(attempt.look, due)
    elif not attempt.size.is_given_up(number):
        wanted = owner.kind.wanted(owner.object) if owner.kind.resizes(owner.object) else {}
        times = attempt.size.times_late(wanted) + 1
        limit = settings.backoff_limit
        pause = backoff(times, settings.backoff_base, settings.backoff_max)
        attempt.size.gives_up(number, wanted, math.inf if limit is not None and times > limit else case.now + pause)
        slice_moments.rolled_back(core, case.known, texts.growth_not_ready(attempt.cluster, settings.timeout))
        core.mark_said_of(attempt)


def may_grow(core: Core, placed: Attempt, wanted: Counts, now: float) -> bool:
    """Say whether a record may grow to these counts: what was late before waits for its pause to be over."""
    until = placed.size.rests_until(wanted)
    if now < until < math.inf:
        core.agenda.wake(placed.look, until)
    return now >= until


def before(core: Core, chain: Chain) -> Counts | None:
    """Return the counts of the slice in whose place the record of a chain runs on; None where it is in nobody's."""
    if chain.record is None:
        return None
    below = [each for each in chain.past if each.number < chain.record.number and each.epoch == chain.record.epoch]
    known = [found for each in reversed(below) if (found := core.knowledge.workloads.get(each.key)) is not None]
    for one in known:
        over = find(one.status.conditions, texts.FINISHED)
        if over is not None and over.reason == REPLACED:
            return sizes.counts_of(one)
    return None


def _granted(case: Case) -> dict[str, int]:
    return sizes.lowered(record.granted(case.known), sizes.counts_of(case.known))


def _grows_from(case: Case, number: int) -> Counts | None:
    """Return the counts that ran before what is not ready yet of a growth; None where all of it was, or it is none."""
    chain = case.core.knowledge.slices.of(case.rec.uid)
    if chain is None or case.attempt.size.was_ready(number):
        return None
    found, granted = before(case.core, chain), _granted(case)
    return found if found is not None and sizes.lowered(granted, found) != granted else None
