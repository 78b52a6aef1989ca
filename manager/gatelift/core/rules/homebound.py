"""What its queue and its object disagree about: where it is to run. It waits, and says so.

A Job whose pods the management cluster's own controller makes, or a pod that no gate of ours holds back, goes to no
worker: it could run in both places. Only MultiKueue's name in `spec.managedBy` keeps the Job controller away, for good,
since the field is immutable. Kueue rejects such a Job; here it waits. The other way round a Job with that name is not
admitted at home, where it would hold quota for ever and nobody would run it. The webhook sets the field, gates pods,
and refuses what does not fit before it is made. What can be charged nowhere waits in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift.core import texts
from gatelift.core.rules import targets

if TYPE_CHECKING:
    from gatelift.core.state.core import Core
    from gatelift_kube.objects.kueue import Workload


def waits(core: Core, known: Workload) -> tuple[str, str] | None:
    """Return reason and message of a Workload whose object must not run where its queue's work does; None: it may."""
    work = core.knowledge.work_of(known)
    if work.gathered is not None:
        return _by_queue(core, known, work.gathered.home_only, "")
    owner = work.only_object
    if owner is None:
        return None
    nowhere = owner.kind.nowhere(owner.object)
    if nowhere:
        return texts.MISCONFIGURED, texts.let_go_nowhere(nowhere)
    return _by_queue(core, known, owner.kind.home_only(owner.object), owner.kind.away_only(owner.object))


def _by_queue(core: Core, known: Workload, home_only: str, away_only: str) -> tuple[str, str] | None:
    if not (home_only or away_only):
        return None
    queue = core.knowledge.cluster_queues.get(core.knowledge.cluster_queue_of(known))
    if queue is None:
        return None
    strategy = queue.spec.admission_checks_strategy
    names = [rule.name for rule in strategy.admission_checks] if strategy is not None else []
    if targets.multikueue_check(core, names):
        return (texts.MISCONFIGURED, texts.not_managed_by_kueue(home_only)) if home_only else None
    if not away_only or any(name not in core.knowledge.checks for name in names):
        return None  # a check that is not there yet may be the one that sends work to other clusters
    return texts.MISCONFIGURED, texts.nobody_would_run(away_only)
