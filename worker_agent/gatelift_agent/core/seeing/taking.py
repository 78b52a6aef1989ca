"""Takes what watches and answers say of objects. An exception belongs to the object: others are taken as ever.

What could not be taken is kept and taken again after a pause, or with the object's next word (`untaken`). Where it may
be of a placement that is not known here it is *unread* meanwhile (`World.unread`): absence proves nothing. So before
`ready`, and where a namespace is listed late, for each object that may be ours; later for what carries our marks and is
of no placement.
"""

from __future__ import annotations

import math

from gatelift_agent.core.seeing import doubts, early, observing
from gatelift_agent.core.state import condemned, containment, unknowns
from gatelift_agent.core.state.untaken import Subject, Word, subject_of
from gatelift_agent.core.state.world import World
from gatelift_kube.deciding.writes import KubeObject, ObjectGone, ObjectSeen
from gatelift_kube.objects.core import ConfigMap, Namespace, Node, Pod
from gatelift_kube.objects.kueue import ResourceFlavor
from gatelift_kube.values.resources import CONFIG_MAP, ObjectRef, Resource
from gatelift_wire.values.moments import soonest


def take(world: World, word: Word, now: float) -> None:
    """Take what a watch says of an object, and what was said before and could not be taken."""
    try:
        if world.untaken.kept and world.untaken.holds(word.resource, word.object.metadata):
            subject = subject_of(word)
            world.untaken.hear(word, unknown=subject.ref in world.unread)
            _take_kept(world, subject, now)
        else:
            _take(world, word, now)
        if world.unread or world.contained.resting:
            _try_soon(world, subject_of(word).ref, now)
    except Exception as error:  # noqa: BLE001 (containment: one object ends no process)
        _keep(world, subject_of(word), (word,), error, now)


def answer(world: World, resource: Resource, obj: KubeObject, raw: bytes, now: float) -> None:
    """Take the object that a write was answered with, as a watch would show it."""
    take(world, ObjectSeen(resource=resource, object=obj, raw=raw), now)


def again(world: World, now: float) -> None:
    """Take again what could not be taken and has rested."""
    if world.untaken.kept:
        for subject in world.untaken.due(now):
            _take_kept(world, subject, now)


def next_deadline(world: World) -> float | None:
    """Return when `again` has something to do."""
    if not world.unread and not world.untaken.kept:
        return None
    unread = min(world.unread.values(), default=math.inf) if world.ready else math.inf
    return soonest(None if unread == math.inf else unread, world.untaken.next_deadline())


def _try_soon(world: World, ref: ObjectRef, now: float) -> None:
    """Take that an object has changed, or is gone: what could not be handled of it is tried again soon."""
    if world.unread.get(ref, math.inf) != math.inf:
        world.unread[ref] = now
    if world.contained.resting:
        for placement in world.placements_at(ref):
            world.contained.changed(placement.key, now)


def _take_kept(world: World, subject: Subject, now: float) -> None:
    """Take what is kept of an object, the oldest word first."""
    words = world.untaken.words(subject)
    try:
        _take(world, words[0], now)
    except Exception as error:  # noqa: BLE001 (containment: one object ends no process)
        _keep(world, subject, words, error, now)
        return
    if len(words) > 1:  # the placement that is made of what was seen asks whether that is gone
        world.untaken.keep(subject, words[1:], now)
    else:
        world.untaken.drop(subject)
    world.contained.well(subject.ref)
    if subject.ref in world.unread:
        world.unread[subject.ref] = now  # placements are made of it (`rebuilding.read_again`)


def _keep(world: World, subject: Subject, words: tuple[Word, ...], error: Exception, now: float) -> None:
    again_at = containment.object_failed(world, subject.ref, error, now)
    is_kept = world.untaken.keep(subject, words, again_at)
    found = words[0].object
    if isinstance(words[0], ObjectSeen):
        if isinstance(found, Node):
            world.nodes.exists(found.metadata.name, now)  # what vanished may run there
        unnoticed = isinstance(found, Namespace) and found.metadata.name not in world.namespaces
        if unnoticed or unknowns.may_be_unknown(world, found):
            containment.not_read(world, subject.ref, math.inf)
    if not is_kept:
        world.note("warning", f"{subject.ref}: too many objects could not be taken; it is taken when it changes")


def _take(world: World, word: Word, now: float) -> None:
    if isinstance(word, ObjectSeen):
        _seen(world, word, now)
    else:
        _gone(world, word, now)


def _seen(world: World, word: ObjectSeen, now: float) -> None:
    obj = word.object
    match obj:
        case Namespace():
            name = obj.metadata.name
            before, unnoticed = world.namespaces.get(name, obj), subject_of(word).ref in world.unread
            world.namespaces[name] = obj
            condemned.seen(world, obj)
            if before.metadata.uid != obj.metadata.uid or world.untaken.holds(word.resource, obj.metadata):
                observing.namespace_left(world, name, now)
            if unnoticed:
                doubts.look_into(world, (name,))
            world.untaken.drop_others(subject_of(word))  # it is another one than before, and so is all in it
            world.namespace_left = world.capacity_changed = True
        case Node():
            world.untaken.drop_others(subject_of(word))
            world.nodes.seen(obj, word.raw, now)
            doubts.look_again(world, now)
        case ResourceFlavor():
            world.flavors[obj.metadata.name] = obj
        case ConfigMap() if word.resource == CONFIG_MAP:
            if not world.ready:  # later they only echo our own writes
                world.keeper.read(obj)
        case _:
            early.seen(world, obj)
            observing.seen(world, word.resource, obj, word.raw, now)


def _gone(world: World, word: ObjectGone, now: float) -> None:
    obj = word.object
    name = obj.metadata.name
    match obj:
        case Namespace():
            observing.namespace_left(world, name, now)
            world.namespaces.pop(name, None)
            world.condemned.pop(name, None)
            world.namespace_left = world.capacity_changed = True
            doubts.listed(world, now)
        case Node():
            world.nodes.gone(name)
            doubts.look_again(world, now)
        case ResourceFlavor():
            world.flavors.pop(name, None)
        case ConfigMap():
            pass  # the next write finds out and makes it anew
        case _:
            if isinstance(obj, Pod) and subject_of(word).ref in world.unread and not early.is_early(world, obj):
                doubts.unseen(world, obj, now)
            early.gone(world, word.resource, obj, now)
