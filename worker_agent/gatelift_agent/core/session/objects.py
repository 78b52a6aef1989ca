"""Which objects may be placed here: by their number, names, templates, labels, and the policy of this cluster.

Neighbours: `commits` asks of all that a commit names, `members` of each that joins.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gatelift_agent.core.refusing import policy
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_kinds.kind import Kind
from gatelift_wire.values.messages import Commit, ObjectTemplate
from gatelift_wire.values.refusals import Refusal

OBJECTS_MAX = 4096
"""Objects of one placement: the largest group; each more costs at every look at it."""

NAME_SHOWN_MAX = 80
"""Bytes of a name that cannot be one in a refusal."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What the API server takes as a name of a Pod or Job; `..` would leave the collection in a URL."""


def why_not(world: World, commit: Commit) -> tuple[Refusal, str] | None:
    """Return why the objects of a commit cannot be placed here, None when they can."""
    kind = world.kinds.named(commit.kind)
    none_yet = not commit.objects and kind is not None and kind.gathers  # all that it has is yet to join (HD-410)
    if not (commit.objects or none_yet) or len({one.name for one in commit.objects}) != len(commit.objects):
        return Refusal.INVALID, "objects: must be at least one, each with a name of its own"
    if len(commit.objects) > OBJECTS_MAX:
        return Refusal.TOO_LARGE, f"objects: {len(commit.objects)} of one placement, at most {OBJECTS_MAX} are taken"
    if kind is None:
        return Refusal.KIND_NOT_SERVED, f"nothing is known of {commit.kind}"
    refused = why_no_additions(commit) or (_why_too_many(commit) if kind.gathers else None)
    if refused is not None or world.local:
        return refused
    return why_none_of(world, kind, commit.objects) or policy.additions_refusal(commit.pod_sets, world.settings.policy)


def why_none_of(world: World, kind: Kind[Any], objects: Sequence[ObjectTemplate]) -> tuple[Refusal, str] | None:
    """Return why objects cannot be made here, None when each can."""
    refused = why_no_metadata(world, objects)
    if refused is not None:
        return refused
    checked: set[str] = set()
    for one in objects:
        if one.template in checked:
            continue
        checked.add(one.template)
        content = world.templates.get(one.template)
        if content is None:
            return Refusal.TEMPLATE_MISSING, f"template {one.template[:12]} of {one.name} was not sent; send it again"
        refused = policy.spec_refusal(kind, content, world.settings.policy)
        if refused is not None:
            return refused
    return None


def _why_too_many(commit: Commit) -> tuple[Refusal, str] | None:
    """Look whether each object has a slot: it keeps that from the commit on (`room`)."""
    granted = {one.name: one.count for one in commit.pod_sets}
    for name, count in Counter(one.pod_set for one in commit.objects).items():
        if count > granted.get(name, 0):
            text = f"objects: {count} of pod set {name or '(none)'}, {granted.get(name, 0)} were granted"
            return Refusal.INVALID, f"{text}; commit no more than that"
    return None


def why_no_metadata(
    world: World, objects: Sequence[ObjectTemplate], *, again: bool = False
) -> tuple[Refusal, str] | None:
    """Look at what each object is called and carries; what many have in common, once.

    `again`: what it may carry here was judged when it was taken, and is again before a create.
    """
    looked_at: set[str] = set()
    for one in objects:
        if not _NAME.fullmatch(one.name):
            return _no_name(one)
        if one.marks in looked_at:
            continue
        looked_at |= {one.marks} if one.marks else set()
        found = metadata(world, one)
        if found is None:
            return Refusal.TEMPLATE_MISSING, f"labels {one.marks[:12]} of {one.name} were not sent; send them again"
        refused = _why_no_marks(one.name, found)
        if refused is None and not again:
            refused = policy.marks_refusal(found, world.settings.policy)
        if refused is not None:
            return refused
    return None


def metadata(world: World, one: ObjectTemplate) -> bytes | None:
    """Return the labels and annotations of an object: as they came with it, or as others have them, too."""
    return world.templates.get(one.marks) if one.marks else one.metadata


def _no_name(one: ObjectTemplate) -> tuple[Refusal, str]:
    return Refusal.INVALID, f"objects: name {one.name[:NAME_SHOWN_MAX]!r} is no DNS subdomain; rename the object"


def why_no_additions(commit: Commit) -> tuple[Refusal, str] | None:
    """Return why what checks want on the pods cannot be added."""
    for pod_set in commit.pod_sets:
        try:
            shapes.additions(pod_set.additions)
        except shapes.ShapeError as error:
            return Refusal.INVALID, f"pod set {pod_set.name}: {error}"
    return None


def _why_no_marks(name: str, metadata: bytes) -> tuple[Refusal, str] | None:
    try:
        shapes.marks(metadata)
    except shapes.ShapeError as error:
        return Refusal.INVALID, f"{name}: {error}"
    return None
