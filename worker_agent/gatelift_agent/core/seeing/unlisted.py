"""Namespaces that accept work and that nobody lets us list: they keep no other one from being served.

What is there cannot be read, and nothing is concluded of it (R7): as long as such a one is `unlisted` no absence in
this cluster proves anything, no stop or commit of what is not known is answered, and nothing new is taken in there. Its
watches ask again by themselves; once it is listed, what is there is told of (`rebuilding.take_namespace`).
"""

from __future__ import annotations

from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state.world import World
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.keys import LABEL_ACCEPT
from gatelift_wire.values.refusals import Refusal

NAMED_MAX = 3
"""Namespaces that one line names."""

SAID_CHARS_MAX = 300


def refused(world: World, name: str, message: str) -> None:
    """Take that a namespace may not be listed."""
    if world.local or name in world.listed or name not in world.namespaces:
        return
    if name not in world.shut:
        world.note("warning", f"{way_out(name)}; nothing there is known, nor concluded", said=message)
        world.capacity_changed = True
    world.shut[name] = plain(message, SAID_CHARS_MAX)


def listed(world: World, name: str) -> None:
    """Take that a namespace is listed after all."""
    if world.shut.pop(name, None) is not None:
        world.note("info", f"namespace {name}: may be listed now")
        world.capacity_changed = True


def left(world: World, name: str, now: float) -> None:
    """Take that a namespace is watched no more: nothing was ever placed there, by all that is kept and was named."""
    world.shut.pop(name, None)
    if name in world.unlisted:
        world.unlisted.discard(name)
        doubts.settle(world, now)


def why_not(world: World, name: str) -> tuple[Refusal, str] | None:
    """Return why nothing new is taken in a namespace that cannot be looked into, None when it can."""
    said = world.shut.get(name)
    return None if said is None else (Refusal.NAMESPACE_NOT_ALLOWED, f"{way_out(name)}; the API server says: {said}")


def way_out(name: str) -> str:
    """Return what is wrong with such a namespace, and what a person does about it."""
    way = f"kubectl -n {name} apply -k deploy/agent/namespace, or take the label {LABEL_ACCEPT} off"
    return f"namespace {name}: accepts work, and the agent may not list it: {way}"


def summary(world: World) -> str:
    """Return that of all of them in one line, "" where there is none; what is being deleted is waited for elsewhere."""
    names = sorted(world.shut.keys() - world.condemned.keys())
    more = f"; and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return "; ".join(map(way_out, names[:NAMED_MAX])) + more
