"""Users' objects that no cache has: what is missing there is read before it counts as gone, and its run is stopped.

One read at a time for each object and for each Workload, and none for one that was seen to go. Neighbours: `reconcile`
asks, `intake` tells what is there, `state.asked_owners` knows how far it came.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.user_objects import Name, objects_of
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Work
from gatelift.core.state import api_requests, forgetting
from gatelift.core.state.asked_owners import Inquiry
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, ObjectRef

SOUGHT_MAX = 16
"""Objects of one work that are read at a time, since nobody saw them go."""


def is_gone(core: Core, workload: Workload, now: float) -> bool:
    """Say whether the user's object of a Workload, which no cache has, is known to be gone.

    Its absence proves nothing while nobody saw it go, since a watch may stand still: it is read by a quorum read, one
    at a time for each object, and the answer looks at the Workload again. Also of a Workload that is being deleted: the
    finalizer of a pod that lost its marks would stay for ever (HD-216). What it names besides and is known is not its
    own: it would have that one's work.
    """
    knowledge, uid = core.knowledge, workload.metadata.uid
    names = objects_of(core.kinds, workload, knowledge.names_of(workload))
    inquiry = core.asked_owners.begin(uid, names)
    name = inquiry.next_name(lambda each: knowledge.saw_object_go(each) or knowledge.works.knows(each))
    if name is not None:
        _ask(core, inquiry, name, Key(Look.WORKLOAD, key_of(workload.metadata)), now)
    return name is None


def is_object_gone(core: Core, name: Name, look: Key, now: float) -> bool:
    """Say whether one of several objects, which no cache has, is known to be gone: watches may not show it (HD-424).

    Else it is read, and the answer looks at its Workload again.
    """
    if core.knowledge.saw_object_go(name):
        return True
    resource, namespace, called, uid = name
    ref = ObjectRef(resource, ObjectKey(namespace, called))
    core.sought.wait(ref, look)
    if not api_requests.blocked(core, ref, look, now, uid=uid):
        api_requests.read(core, ref, Purpose.READ_BEFORE_END, uid)
    return False


def misses_any(core: Core, workload: Workload, work: Work, now: float) -> bool:
    """Say whether an object that a Workload of several names is not known, and may be there: no watch may show it.

    A new leader has never seen it, and the others would seem to be all (HD-610). Some are read at a time.
    """
    look, sought = Key(Look.WORKLOAD, key_of(workload.metadata)), 0
    for one in workload.metadata.owner_references:
        name = (*work.id[:2], one.name, one.uid)
        if one.kind == work.id[0].kind and not (core.knowledge.works.knows(name) or sought == SOUGHT_MAX):
            sought += not is_object_gone(core, name, look, now)
    return sought > 0


def _ask(core: Core, inquiry: Inquiry, name: Name, look: Key, now: float) -> None:
    """Have an object read, or wait for the answer of who has asked."""
    resource, namespace, called, uid = name
    ref = ObjectRef(resource, ObjectKey(namespace, called))
    if not inquiry.is_reading():
        _leave(core, inquiry.waits, look)
        inquiry.wait_no_more()
        if inquiry.pauses(now):
            core.agenda.wake(look, inquiry.not_before)
            return
        inquiry.ask(ref, now)
    core.sought.wait(ref, look)
    if not api_requests.blocked(core, ref, look, now, uid=uid):
        api_requests.read(core, ref, Purpose.READ_BEFORE_END, uid)


def _leave(core: Core, ref: ObjectRef | None, look: Key) -> None:
    if ref is not None and core.sought.leave(ref, look):
        forgetting.forget_trouble(core, ref)


def is_sought(core: Core, workload: Workload) -> bool:
    """Say whether the answer to a read of its user's object will look at a Workload."""
    ref = core.asked_owners.waits(workload.metadata.uid)
    return ref is not None and Key(Look.WORKLOAD, key_of(workload.metadata)) in core.sought.of(ref)


def found_out(core: Core, ref: ObjectRef) -> None:
    """Look at the Workloads that wait to know whether a user's object is there."""
    for look in core.sought.of(ref):
        core.agenda.mark(look)
    core.sought.take(ref)


def no_more(core: Core, workload: Workload) -> None:
    """Look for no object of a Workload that is gone."""
    uid = workload.metadata.uid
    _leave(core, core.asked_owners.waits(uid), Key(Look.WORKLOAD, key_of(workload.metadata)))
    core.asked_owners.forget(uid)
