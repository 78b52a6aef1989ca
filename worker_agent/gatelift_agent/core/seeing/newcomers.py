"""Sees pods that a driver makes at this worker by itself: they wait at their gate until somebody takes them in.

Only where the agent is told to (`AgentSettings.adopts`), and only what the gate's webhook has marked: a pod without our
gate, or with a node, runs or may, and is nobody's. Neighbours: `state.newcomers` keeps them, `adopting` decides.
"""

from __future__ import annotations

from gatelift_agent.core.state.newcomers import Newcomer
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held
from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import ObjectRef

WAIT_SECONDS = 600.0
"""How long one waits for its group to be placed here, in a session: a new epoch of it takes seconds."""


def seen(world: World, held: Held, now: float) -> None:
    """Take a version of an object that is no child of another."""
    if not world.settings.adopts:
        return
    meta, group = held.object.metadata, ownership.waits_here(held.object)
    tracked = any(each.objects[meta.name].uid == meta.uid for each in world.placements_at(held.ref))
    if not group or tracked or meta.deletion_timestamp is not None:
        gone(world, held.ref, meta.uid)
        return
    one = Newcomer(
        ref=held.ref,
        uid=meta.uid,
        group=(meta.namespace, group),
        role=meta.labels.get(markers.POD_GROUP_ROLE, ""),
        made_at=meta.creation_timestamp or "",
        since=now,
    )
    if world.newcomers.put(one):
        world.newcomers.alarms.ask(held.ref, now + WAIT_SECONDS)
    key = world.newcomers.placement(one.group)
    if key is not None:
        world.look(key)


def gone(world: World, ref: ObjectRef, uid: str) -> None:
    """Take that one is not there any more, or is nobody's to take in."""
    known = world.newcomers.at(ref)
    if known is not None and known.uid == uid:
        world.newcomers.drop(ref)
