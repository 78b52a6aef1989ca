"""A Job whose pods the management cluster's own controller makes goes to no worker: it could run in both places.

Only MultiKueue's name in `spec.managedBy` keeps that controller away, for good, since the field is immutable. Kueue
rejects such a Job; here it waits, and says so. The webhook sets the field, and refuses such Jobs before they are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift.core import dispatch, texts

if TYPE_CHECKING:
    from gatelift.core.state import Core
    from gatelift_kube.objects.kueue import Workload


def waits(core: Core, known: Workload) -> tuple[str, str] | None:
    """Return reason and message of a Workload of a queue of worker clusters that may run at home only; None: it may."""
    owner = core.knowledge.owner_of(known)
    why = owner.kind.home_only(owner.object) if owner is not None else ""
    if not why:
        return None
    queue = core.knowledge.cluster_queues.get(core.knowledge.cluster_queue_of(known))
    strategy = queue.spec.admission_checks_strategy if queue is not None else None
    rules = strategy.admission_checks if strategy is not None else ()
    if not dispatch.multikueue_check(core, (rule.name for rule in rules)):
        return None
    return texts.MISCONFIGURED, texts.not_managed_by_kueue(why)
