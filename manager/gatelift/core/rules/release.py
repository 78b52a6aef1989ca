"""When quota of pods that are being stopped is free again (KEP-6143): one table, and nothing is guessed. Pure.

The more specific wins: an annotation of the ClusterQueue, the configuration's word for the kind, then the default:
pods and Jobs as Kueue has them. `OnTerminating` is for Jobs what Kueue does with them: no active pod is left, and those
that are being deleted are not counted. Neighbours: `releasing` acts on it, `records.drains` has what the cluster said.
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift.core.records.attempts import Attempt
from gatelift.core.records.drains import AllLeave
from gatelift.core.state.core import Core
from gatelift.core.state.release_values import ReleaseSettings
from gatelift_kinds.kind import Kind
from gatelift_kube.objects.kueue import ClusterQueue, Workload
from gatelift_wire.values.keys import ANNOTATION_RELEASE, ANNOTATION_RELEASE_PARTIAL
from gatelift_wire.values.release import ReleaseRule


class Due(NamedTuple):
    """When quota is free, in monotonic seconds, and whether that is for want of a stop."""

    at: float
    by_deadline: bool = False


def rule_for(settings: ReleaseSettings, kind: Kind[object], queue: ClusterQueue | None) -> ReleaseRule:
    """Return the rule of a kind in a ClusterQueue. What a queue says that nobody knows is the later one.

    What is said of pods holds for groups of them as well.
    """
    said = queue.metadata.annotations.get(ANNOTATION_RELEASE) if queue is not None else None
    if said is not None:
        early = said == ReleaseRule.ON_TERMINATING.value
        return ReleaseRule.ON_TERMINATING if early else ReleaseRule.ON_TERMINAL
    chosen = settings.by_kind.get(kind.name) or settings.by_kind.get(kind.resource.kind)
    if chosen is not None:
        return chosen
    if kind.pods_are_children or settings.fast_pods:
        return ReleaseRule.ON_TERMINATING
    return ReleaseRule.AFTER_GRACE


def due(rule: ReleaseRule, leave: AllLeave, deadline: float) -> Due:
    """Return when quota of what leaves is free, should it not have stopped by then."""
    if leave.holds or rule is ReleaseRule.ON_TERMINAL:
        return Due(max(leave.at, leave.stops_by) + deadline, by_deadline=True)
    if rule is ReleaseRule.AFTER_GRACE:
        return Due(max(leave.at, leave.running_stops_by))
    return Due(leave.at)


def rule_of(core: Core, known: Workload, attempt: Attempt) -> ReleaseRule:
    """Return the rule of an attempt, by its kind and the ClusterQueue that it is charged to; unknown, the later one."""
    kind, _ = core.knowledge.readings[attempt.workload]
    admission = known.status.admission
    if admission is None and attempt.reserve is not None:
        admission = attempt.reserve.admission
    if kind is None or admission is None:
        return ReleaseRule.ON_TERMINAL
    queue = core.knowledge.cluster_queues.get(admission.cluster_queue)
    return rule_for(core.settings.release, kind, queue) if queue is not None else ReleaseRule.ON_TERMINAL


def is_partial(core: Core, known: Workload) -> bool:
    """Say whether members of a group give their own quota back as each is over, in the ClusterQueue that it is of."""
    admission = known.status.admission
    queue = core.knowledge.cluster_queues.get(admission.cluster_queue) if admission is not None else None
    return queue is not None and queue.metadata.annotations.get(ANNOTATION_RELEASE_PARTIAL) == "true"
