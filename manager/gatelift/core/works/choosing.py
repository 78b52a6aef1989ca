"""Which Workload of a work is its current one, which is to take its place, and which are too many. Pure.

One work is admitted and placed once, or it would run twice. Neighbours: `owners` deletes what is too many, `leaving`
stops it first; whose a Workload is says `records.work`.
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift.core.records.work import Work
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


class Chosen(NamedTuple):
    """What the Workloads of a work are to it; `target`: which is to take the place of the current one."""

    current: Workload | None = None
    target: Workload | None = None
    surplus: tuple[Workload, ...] = ()


NONE = Chosen()


def chosen(core: Core, work: Work) -> Chosen:
    """Choose among the Workloads of a work: at most one is its current one, at most one its target."""
    keys, known = work.workloads, core.knowledge.workloads
    if len(keys) <= 1:  # as nearly always
        for key in keys:
            return Chosen(known[key])
        return NONE
    current = known[_current(core, work)]
    others = [known[key] for key in sorted(keys) if known[key] is not current]
    kind = work.objects[0].kind if work.objects else None
    targets = [each for each in others if kind is not None and kind.replaces(each, current)]
    target = max(targets, key=lambda each: each.metadata.creation_timestamp or "", default=None)
    return Chosen(current, target, tuple(each for each in others if each is not target))


def is_surplus(core: Core, work: Work, known: Workload) -> bool:
    """Say whether a Workload of a work is one too many."""
    return len(work.workloads) > 1 and any(each is known for each in chosen(core, work).surplus)


def _current(core: Core, work: Work) -> ObjectKey:
    """Return the Workload of the name that its objects give it, else one that is placed, else any."""
    named = work.objects[0].workload if work.objects else None
    return min(work.workloads, key=lambda each: (each != named, not _is_placed(core, each), str(each)))


def _is_placed(core: Core, key: ObjectKey) -> bool:
    attempt = core.attempts.get(core.knowledge.workloads[key].metadata.uid)
    return attempt is not None and attempt.live
