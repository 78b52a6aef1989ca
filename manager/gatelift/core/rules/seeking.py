"""Users' objects that no cache has: what is missing there is read before it counts as gone, and its run is stopped.

One read at a time for each object, and none for one that was seen to go. Neighbours: `reconcile` asks, `intake` tells
what is there.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.knowledge import key_of
from gatelift.core.state import api_requests, forgetting
from gatelift.core.state.core import Core
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, ObjectRef


def is_gone(core: Core, workload: Workload, now: float) -> bool:
    """Say whether the user's object of a Workload, which no cache has, is known to be gone.

    Its absence proves nothing while nobody saw it go, since a watch may stand still: it is read by a quorum read, one
    at a time for each object, and the answer looks at the Workload again. Also of a Workload that is being deleted: the
    finalizer of a pod that lost its marks would stay for ever (HD-216).
    """
    for reference in owners_of(workload):
        resource = core.kinds.resource_of(reference)
        if resource is None or core.knowledge.saw_go(reference.uid):
            continue
        look = Key(Look.WORKLOAD, key_of(workload.metadata))
        ref = ObjectRef(resource, ObjectKey(workload.metadata.namespace, reference.name))
        core.sought.wait(ref, look)
        if not api_requests.blocked(core, ref, look, now, uid=reference.uid):
            api_requests.read(core, ref, Purpose.READ_BEFORE_END, reference.uid)
        return False
    return True


def is_sought(core: Core, workload: Workload) -> bool:
    """Say whether the answer to a read of its user's object will look at a Workload."""
    look = Key(Look.WORKLOAD, key_of(workload.metadata))
    resources = ((each, core.kinds.resource_of(each)) for each in owners_of(workload))
    return any(
        look in core.sought.of(ObjectRef(resource, ObjectKey(workload.metadata.namespace, each.name)))
        for each, resource in resources
        if resource is not None
    )


def found_out(core: Core, ref: ObjectRef) -> None:
    """Look at the Workloads that wait to know whether a user's object is there."""
    for look in core.sought.of(ref):
        core.agenda.mark(look)
    core.sought.take(ref)


def no_more(core: Core, workload: Workload) -> None:
    """Look for no object of a Workload that is gone."""
    look = Key(Look.WORKLOAD, key_of(workload.metadata))
    for reference in owners_of(workload):
        resource = core.kinds.resource_of(reference)
        ref = ObjectRef(resource, ObjectKey(look.object.namespace, reference.name)) if resource is not None else None
        if ref is not None and core.sought.leave(ref, look):
            forgetting.forget_trouble(core, ref)
