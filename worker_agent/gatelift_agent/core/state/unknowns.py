"""What of ours may be here without being known: objects that could not be taken, and what could not be rebuilt. Pure.

As long as there is any, absence proves nothing (`World.unread`), and no stop or commit of what may be it is answered.
"""

from __future__ import annotations

from gatelift_agent.core.memory import records
from gatelift_agent.core.state.untaken import may_name
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import ref_of
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import ConfigMap, Namespace, Node
from gatelift_kube.objects.kueue import ResourceFlavor
from gatelift_kube.values.resources import CONFIG_MAP, POD, ObjectRef
from gatelift_wire.values.keys import LABEL_ORIGIN, PlacementKey


def may_be_unknown(world: World, obj: KubeObject) -> bool:
    """Say whether an object that could not be taken may be of a placement that is not known here; if in doubt, it may.

    What is of none, or of another management cluster, is not: it would make absence prove nothing for a whole cluster.
    """
    if isinstance(obj, Namespace | Node | ResourceFlavor | ConfigMap):
        return False
    origin = world.standing.origin or world.keeper.state.origin
    try:
        named = ownership.every_name(world.kinds, obj)
    except Exception:  # noqa: BLE001 (containment: whose it is cannot be said)
        return not origin or origin in repr(obj)
    return any(said in {origin, ""} or not origin for said, key in named if key not in world.placements)


def may_be_of(world: World, key: PlacementKey, *, all_of_it: bool = False) -> bool:
    """Say whether something that could not be taken or rebuilt may be of this placement.

    `all_of_it`: also where it is not known of which objects there are.
    """
    if not world.unread and not len(world.untaken):
        return False
    return world.untaken.may_be_of(key) or any(_is_of(world, each, key, all_of_it) for each in world.unread)


def objects(world: World) -> list[tuple[ObjectRef, KubeObject]]:
    """Return what is there and could not be taken, or of which no placement could be made."""
    here = {held.ref: held.object for held in world.objects.own() if held.ref in world.unread}
    here |= {ref: pod for pod in world.objects.all_children() if (ref := ref_of(POD, pod.metadata)) in world.unread}
    return [*here.items(), *world.untaken.objects()]


def key_of(world: World, obj: KubeObject) -> PlacementKey | None:
    """Return of which placement such an object says it is: by its labels, where it cannot be read otherwise."""
    try:
        found = None if world.local else ownership.placed_as(world.kinds, obj)
    except Exception:  # noqa: BLE001 (containment: what its labels say has to do)
        found = None
    labelled = (obj.metadata.labels.get(LABEL_ORIGIN, ""), ownership.key_of(obj.metadata))
    origin, key = found if found is not None else labelled
    return key if origin == world.standing.origin else None


def _is_of(world: World, what: ObjectRef | PlacementKey, key: PlacementKey, all_of_it: bool) -> bool:
    if isinstance(what, PlacementKey):
        return what == key
    if world.untaken.has(what):
        return False  # which was asked
    if what.resource == CONFIG_MAP:
        return what.key.name == records.data_key(key)
    held = world.objects.get(what)
    if held is not None:
        return may_name(held.object, key)
    pods = world.objects.all_children() if what.resource == POD else ()
    here = [pod for pod in pods if (pod.metadata.namespace, pod.metadata.name) == (what.key.namespace, what.key.name)]
    return any(may_name(pod, key) for pod in here) if here else all_of_it
