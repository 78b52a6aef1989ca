"""A user's Job while it runs: whether we let it go, and what its user has done to it since. Pure.

But for elastic Jobs (`elastic`), what runs has the size that was admitted. A Job that is suspended, or that has another
size or shape, is stopped and queued anew as it is then; the webhook refuses growth before that.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import selector as job_selector
from gatelift_kinds.job import template_before
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.patches import stop_marked
from gatelift_kinds.shared.values import UserChange
from gatelift_kinds.shared.workload_document import same_needs
from gatelift_kube.decoding.unreadable_templates import is_unreadable
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_WORKLOAD_UID, PlacementKey

ANNOTATION_SHOWN = "gatelift.dev/shown"
"""On a user's Job whose pods run elsewhere, once it is unsuspended to show them: the placement, `uid@epoch`."""


def pods_at_once(obj: Job) -> int:
    """Return how many pods may run at once now: the smaller of parallelism and completions (default: parallelism)."""
    return job_partial.pods_at_once(job_partial.now(obj))


def elsewhere(obj: Job) -> bool:
    """Return whether its pods are never made here."""
    return obj.spec.managed_by == markers.MULTIKUEUE_MANAGER


def let_go(obj: Job, key: PlacementKey) -> bool:
    """Return whether the object says that we unsuspended it for this placement: here, or to show what runs elsewhere.

    At `local` its labels name the placement and its template has our additions; these go when it has stopped.
    """
    if elsewhere(obj):
        return obj.metadata.annotations.get(ANNOTATION_SHOWN) == str(key)
    labels = obj.metadata.labels
    named = (labels.get(LABEL_WORKLOAD_UID), labels.get(LABEL_EPOCH)) == (key.uid, str(key.epoch))
    return named and template_before.changed(obj)


def makes_none(obj: Job, key: PlacementKey, *, over: bool, seen: bool) -> bool:
    """Return whether a Job that is stopped has no active pod by its controller's word, and none comes anew.

    `over`: it has ended; `seen`: its controller has seen that it is suspended, which one that is deleted need not.
    """
    if over:
        return True
    held = bool(obj.spec.suspend) and stop_marked(obj.metadata, key)
    return held and (obj.metadata.deletion_timestamp is not None or (seen and not obj.status.active))


def user_change(
    obj: Job, workload: Workload, key: PlacementKey, granted: Mapping[str, int], *, any_size: bool = False
) -> UserChange | None:
    """Return what its user did to a Job with a live placement that ends it; None while it is as it was admitted.

    `any_size`: another size ends nothing.
    """
    if not obj.spec.suspend:
        runs = let_go(obj, key) or not elsewhere(obj)
        return None if _as_admitted(obj, workload, granted, runs=runs, any_size=any_size) else UserChange.RESIZED
    if let_go(obj, key) and not stop_marked(obj.metadata, key):
        return UserChange.SUSPENDED
    return None if _as_admitted(obj, workload, granted, runs=False, any_size=any_size) else UserChange.RESIZED


def _as_admitted(obj: Job, workload: Workload, granted: Mapping[str, int], *, runs: bool, any_size: bool) -> bool:
    """Return whether size and shape are those that were admitted.

    What runs has as many pods as were granted; what is still held back asks for as many as its Workload does. A count
    of the Workload that somebody lowered is no change of the Job. One that selects its pods itself was admitted by
    nobody, or by an earlier version: it stops, and waits.
    """
    if len(workload.spec.pod_sets) != 1 or job_selector.why_not(obj):
        return False
    admitted = workload.spec.pod_sets[0]
    count = granted.get(admitted.name, admitted.count)
    sizes = {count} if runs else {admitted.count, count}
    size = pods_at_once(obj) if runs else job_partial.pods_at_once(job_partial.asked(obj))
    shape = PodSet(name=markers.DEFAULT_POD_SET, template=obj.spec.template)
    started = template_before.changed(obj) or (not obj.spec.suspend and not elsewhere(obj))
    unknown = runs and is_unreadable(admitted)  # what runs cannot change its template: only its size may have changed
    return (any_size or size in sizes) and (unknown or same_needs(shape, admitted, started=started))
