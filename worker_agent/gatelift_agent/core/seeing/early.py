"""What a watch calls gone before placements were made of what is there: it is heard once they were (HD-254).

A watch by label says of what lost its label that it is gone. Once a placement is known, such a word is a question to
the API server (`hidden`, `progress`). Before the lists are complete, and at `local` before a session has said whose
objects are served, nobody can tell whose an object is: the word waits, the object stands as it was seen last, and the
placement that is made of it asks then. The list of what no watch shows ends before that, so it does not find it either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gatelift_agent.core.seeing import observing
from gatelift_agent.core.state.world import World
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.versions import is_older
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef, Resource

EARLY_MAX = 10_000
"""Words that wait. A start takes seconds; with more, absence proves nothing until the next one (`World.unread`)."""

TOO_MANY = ObjectRef(POD, ObjectKey("", "more than are kept"))
"""Stands for what was called gone and may be there."""


def seen(world: World, obj: KubeObject) -> None:
    """Take a version of an object: a newer one than that which was called gone is there."""
    word = world.early.get(obj.metadata.uid)
    if word is not None and is_older(word[1].metadata, obj.metadata):
        del world.early[obj.metadata.uid]


def gone(world: World, resource: Resource, obj: KubeObject, now: float) -> None:
    """Take the word of a watch, now or once it can be told whom it concerns."""
    if not is_early(world, obj):
        observing.gone(world, resource, obj, now)
    elif len(world.early) < EARLY_MAX or obj.metadata.uid in world.early:
        world.early[obj.metadata.uid] = (resource, obj)
    else:
        if TOO_MANY not in world.unread:
            text = f"more than {EARLY_MAX} objects went before it was known whose: absence proves nothing"
            world.note("warning", text)
        world.unread[TOO_MANY] = math.inf
        world.unheard = True
        observing.gone(world, resource, obj, now)


def due(world: World) -> Iterator[tuple[Resource, KubeObject]]:
    """Yield, and keep no longer, the words about what placements were made of by now."""
    for uid, (resource, obj) in tuple(world.early.items()):
        if not is_early(world, obj):
            del world.early[uid]
            yield resource, obj


def forget_namespace(world: World, namespace: str) -> None:
    """Forget the words about a namespace that is watched no more."""
    for uid, (_, obj) in tuple(world.early.items()):
        if obj.metadata.namespace == namespace:
            del world.early[uid]


def is_early(world: World, obj: KubeObject) -> bool:
    """Say whether it cannot be told yet whose an object is."""
    if not (world.ready and world.standing.origin):
        return True
    return not (world.local or obj.metadata.namespace in world.listed)
