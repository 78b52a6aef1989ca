"""An object that had a Workload of its own before it named a larger work stays alone under a new leader, too (HD-450).

Who knew it already keeps its kind (`intake`). Who leads next has only what it says now, and took it for a member: its
run was ended, and a pod that ran was deleted. The Workload of its own, by name and owner, is what tells; not where that
of the larger work names the object, since anybody may make one of such a name. Neighbour: `rebuilding` calls, once all
is listed and before anything is decided.
"""

from __future__ import annotations

from gatelift.core.records.work import Owner
from gatelift.core.state.core import Core
from gatelift_kube.values.resources import ObjectKey, ObjectRef


def keep(core: Core, key: ObjectKey) -> None:
    """Take the object of a Workload as what that was made for."""
    known = core.knowledge.workloads.get(key)
    for name in core.knowledge.names_of(known) if known is not None else ():
        resource, namespace, called, _ = name
        owner = core.knowledge.owners.get(ObjectRef(resource, ObjectKey(namespace, called)))
        if owner is None or owner.name != name or owner.work is owner.name or _is_member(core, owner):
            continue
        kind = core.kinds.alone(resource, owner.object, key.name)
        if kind is not None:
            core.knowledge.is_alone(owner, Owner(kind, owner.object, owner.raw), key)


def _is_member(core: Core, owner: Owner) -> bool:
    larger = core.knowledge.workloads.get(owner.workload)
    uid = owner.object.metadata.uid
    return larger is not None and any(one.uid == uid for one in larger.metadata.owner_references)
